"""A paper as a whole: each printed number has ours beside it where there is one, and a verdict."""

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from rich.console import Console

from klr_bench.config.locations import folders
from klr_bench.errors import KlrBenchError
from klr_bench.report.load import Results
from klr_bench.report.page.content import Part
from klr_bench.report.page.html import fragment
from klr_bench.report.paper_pages import draw_figures, numbers_csv, report_papers, scoreboard_page, table_page
from klr_bench.report.paper_picture import paper_picture
from klr_bench.report.papers.match import Match
from klr_bench.report.papers.reading import check_numbers, experiments_of, paper_files
from klr_bench.report.papers.reproduction import Reproduction, provenance
from klr_bench.report.papers.scoreboard import AGREE, COMPARED, NUMBERS, POWER, counts
from klr_bench.report.papers.verdicts import WEAK_MARK, Kind, Verdict
from klr_bench.report.render.document import SEPARATOR, Grid
from klr_bench.report.render.layout import comma_separated, document
from klr_bench.report.table import build
from tests.report.folders import REFERENCE, record, reproduction, table, write

HEADER = "table,dataset,algorithm,params,metric,mean,std,unit,label"
LINES = [
    "1,digits,,,n_train,80,,count,digits",
    "2,digits,nc,,accuracy,90.0,0.5,percent,Baseline",
    '2,digits,oskl,"{""G"": 1}",accuracy,88.0,0.1,percent,"OSKL, G 1"',
    '2,digits,oskl,"{""G"": 2}",accuracy,70.0,0.1,percent,"OSKL, G 2"',
    "2,digits,nc,,fit_time_s,12.5,0.1,s,Baseline",
    "2,magic,nc,,accuracy,85.0,,percent,Baseline",
    "2,adult,nc,,accuracy,85.0,,percent,Baseline",
    "2,covtype,nc,,accuracy,79.0,,percent,Baseline",
]
PAPER: dict[str, Any] = yaml.safe_load("""
title: A paper
authors: Somebody
venue: Somewhere
year: 2020
reference: Somebody (2020)
tables:
  "1": {title: Data, layout: {blocks: [], rows: [dataset], columns: [metric]}}
  "2": {title: Results, experiments: [mine], layout: {rows: [metric], columns: [label]}}
stand_ins: {moons: magic}
causes:
- numbers: {table: ["2"], algorithm: [oskl], params: {G: [2]}}
  because: The paper scales by two.
  shown_by: [mine]
  statements:
  - {metric: accuracy, of: {algorithms: [nc]}, relation: above, than: {algorithms: [oskl], experiments: [published]}}
absent:
- {numbers: {dataset: [adult]}, because: It was never published.}
""")
CAUSE, ABSENT = PAPER["causes"][0], PAPER["absent"][0]
CONFIG: dict[str, Any] = {
    "repeats": 4,
    "datasets": {"digits": {"label": "Digits"}, "moons": {"label": "Moons"}},
    "algorithms": {"nc": {"label": "NC"}, "oskl": {"label": "OSKL"}},
    "sweep": {"oskl": {"G": [1, 2]}},
}


Make = Callable[..., Reproduction]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Return a function that writes a paper, with changes and further lines, and returns it with its results."""
    monkeypatch.chdir(tmp_path)
    folder, experiments = tmp_path / "configs" / "paper" / "own", tmp_path / "configs" / "experiment"
    folder.mkdir(parents=True)
    experiments.mkdir()
    for name in ("mine", "other"):
        (experiments / f"{name}.yaml").write_text("# @package _global_\n", encoding="utf-8")
    rows = []
    for repeat, away in enumerate((-0.006, -0.002, 0.002, 0.006)):
        sizes = {"n_train": 80, "n_test": 20, "n_features": 2, "nnz_per_instance": 1.52, "params": {"lam": 0.25}}
        rows += [
            record("nc", "", repeat, dataset="digits", accuracy=0.902 + away, fit_time_s=0.5, n_support=7, **sizes),
            record("oskl", "G=1", repeat, dataset="digits", accuracy=0.884 + away, n_support=5),
            record("oskl", "G=2", repeat, dataset="digits", accuracy=0.8 + away),
            record("nc", "", repeat, key=f"moons-{repeat}", dataset="moons", accuracy=0.5, n_train=9, n_test=9),
        ]
    write(tmp_path / "results" / "mine", rows, CONFIG)

    def made(*lines: str, **changes: Any) -> Reproduction:
        (folder / "paper.yaml").write_text(yaml.safe_dump(PAPER | changes), encoding="utf-8")
        (folder / "tables.csv").write_text("\n".join([HEADER, *LINES, *lines]) + "\n", encoding="utf-8")
        return Reproduction("own", folder, tmp_path / "results")

    return made


def verdicts(matches: Iterable[Match]) -> list[str]:
    return [match.not_compared.name if match.not_compared else match.verdict.name for match in matches]


def test_each_number_has_its_verdict(make: Make) -> None:
    whole = make()
    assert {number: verdicts(judged) for number, judged in whole.matches_by_table.items()} == {
        "1": ["EXACT"],
        "2": ["STATISTICAL", "STATISTICAL", "EXPLAINED", "TIME", "OTHER_DATA", "UNAVAILABLE", "NOT_RUN"],
    }
    boards = scoreboard_page(whole).grids
    assert [[row[0] for row in board.rows] for board in boards] == [["table 1", "table 2", "all"]] * 2
    headline, beside = (dict(zip(board.header[1:], board.rows[-1][1:], strict=True)) for board in boards)
    counted = {"numbers": "8", COMPARED: "3", AGREE: "2", Verdict.EXPLAINED.value: "1"}  # two repeats have no power
    assert headline == counted | {"agree, not calibrated": "2"}
    assert beside == {"facts": "1 of 1", Verdict.NOT_COMPARED.value: "4"}
    rows = list(csv.DictReader(io.StringIO(numbers_csv([whole]))))
    assert [row["difference"][:4] for row in rows] == ["0.0", "0.00", "0.00", "0.10", "", "", "", ""]
    assert (float(rows[3]["mean"]), rows[3]["shown_by"]) == (pytest.approx(0.8), "mine")


def test_properties_of_a_data_set_are_compared_with_those_of_the_records(make: Make) -> None:
    facts = {"n_examples": (100, "EXACT"), "n_features": (3, "UNEXPLAINED"), "nnz_per_instance": (1.5, "EXACT")}
    facts |= {"lam": (0.25, "EXACT")}
    units = {"nnz_per_instance": "", "lam": "fraction"}
    lines = [f"1,digits,,,{name},{value},,{units.get(name, 'count')},x" for name, (value, _) in facts.items()]
    lines += ["1,magic,,,nnz_per_instance,1.5,,,x", "1,digits,,,lam,0.5,,fraction,x"]
    matches = make(*lines).matches_by_table["1"]
    assert verdicts(matches)[1:] == [*(verdict for _, verdict in facts.values()), "NOT_RUN", "NOT_RUN"]


def test_a_cause_counts_if_the_experiments_that_show_it_were_run(make: Make) -> None:
    assert verdicts(make(causes=[], absent=[]).matches_by_table["2"])[2::3] == ["UNEXPLAINED", "NOT_RUN"]
    cause = CAUSE | {"shown_by": ["mine", "other"]}
    whole = make(causes=[cause])
    assert whole.matches_by_table["2"][2].verdict is Verdict.UNEXPLAINED
    assert "Examined by mine, other. Not run: other." in "\n".join(table_page(whole, "2").caption)
    write(Path("results/other"), [record("nc", "", 0, dataset="digits")], CONFIG)
    assert make(causes=[cause]).matches_by_table["2"][2].verdict is Verdict.EXPLAINED


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"relation": "below"}, "Does not hold: Digits, Accuracy: NC 90.2 % must be below published 70.0 %."),
        ({"times": 1.288}, "Undecided: Digits, Accuracy: NC 90.2 % must be above 1.288 times published 70.0 %."),
        ({"metric": "n_iter"}, "The results lack a comparison that it requires."),
    ],
)
def test_a_cause_that_its_run_does_not_show_explains_nothing(make: Make, change: dict[str, Any], text: str) -> None:
    first = CAUSE["statements"][0]
    whole = make(causes=[CAUSE | {"statements": [first, first | change]}])
    judged = whole.matches_by_table["2"][2]
    assert (judged.verdict, judged.reason) == (Verdict.UNEXPLAINED, "")
    page = table_page(whole, "2")
    assert page.grids[0].rows[0][-1] == "80.0 ± 0.5*"
    possible = "Possible cause that is not shown, for Digits, OSKL, G 2, Accuracy (%): The paper scales by two."
    (sentence,) = (line for line in page.caption if line.startswith(possible))
    assert sentence.endswith(f"Examined by mine. {text}")
    rows = list(csv.DictReader(io.StringIO(numbers_csv([whole]))))
    assert (rows[3]["reason"], rows[3]["shown_by"]) == ("", "")
    assert make(causes=[CAUSE]).matches_by_table["2"][2].verdict is Verdict.EXPLAINED


def test_the_difference_is_what_a_cause_explains(make: Make) -> None:
    """Our mean is 10 points from the published 70 %."""
    of_difference = {"algorithms": ["oskl"], "experiments": ["difference"]}
    for times, verdict in ((8.9, Verdict.EXPLAINED), (9.2, Verdict.UNEXPLAINED)):
        statement = CAUSE["statements"][0] | {"than": of_difference, "times": times}
        assert make(causes=[CAUSE | {"statements": [statement]}]).matches_by_table["2"][2].verdict is verdict


def test_what_was_tried_is_no_cause(make: Make) -> None:
    whole = make(causes=[], tried=[CAUSE | {"because": "Scaling changed nothing."}])
    judged = whole.matches_by_table["2"][2]
    assert (judged.verdict, judged.reason) == (Verdict.UNEXPLAINED, "Scaling changed nothing.")
    page = table_page(whole, "2")
    assert page.grids[0].rows[0][-1] == "80.0 ± 0.5*"
    assert "Tried, for Digits, OSKL, G 2, Accuracy (%): Scaling changed nothing. See mine. Holds: " in "\n".join(
        page.caption
    )


def test_a_number_with_a_calibrated_setting_is_marked_and_shown_without_it(make: Make) -> None:
    calibrated = {"setting": "G was chosen.", "instead": {"G": 2}}
    calibrated |= {"numbers": {"algorithm": ["oskl"], "params": {"G": [1]}}}
    whole = make(calibrated=[calibrated])
    assert [match.is_calibrated for match in whole.matches_by_table["2"]][:3] == [False, True, False]
    page = table_page(whole, "2")
    assert page.grids[0].rows[0] == ["Accuracy (%)", "90.2 ± 0.5~°", "88.4 ± 0.5§~°", "80.0 ± 0.5 [1]"]
    assert "§ G was chosen. With G=2: Digits, OSKL, G 1, Accuracy (%): 80.0 ± 0.5." in page.caption
    board, _ = scoreboard_page(whole).grids
    assert board.header[-4:] == ["calibrated", "agree, not calibrated", "paper's protocol run", "agree with it"]
    assert board.rows[-1][-4:] == ["1", "1", "1", "0"], "80.0 in place of 88.4 differs from 88.0"
    elsewhere = {key: value for key, value in calibrated.items() if key != "instead"} | {"instead_in": "other"}
    rows = [record("oskl", "G=1", repeat, dataset="digits", accuracy=0.88) for repeat in range(4)]
    write(Path("results/other"), rows, CONFIG)
    of_both = {"experiments": ["mine", "other"]}
    tables = PAPER["tables"] | {"2": PAPER["tables"]["2"] | of_both}
    other = make(calibrated=[elsewhere], tables=tables)
    assert "§ G was chosen. In other: Digits, OSKL, G 1, Accuracy (%): 88.0 ± 0.0." in table_page(other, "2").caption
    assert scoreboard_page(other).grids[0].rows[-1][-1] == "1"
    alone = make(
        calibrated=[elsewhere], tables=PAPER["tables"] | {"2": PAPER["tables"]["2"] | {"experiments": ["other"]}}
    )
    assert "88.0" in table_page(alone, "2").grids[0].rows[0][2]
    assert not any(match.is_calibrated for match in alone.matches)
    rows = csv.DictReader(io.StringIO(numbers_csv([whole])))
    assert [row["calibrated"] for row in rows][2:4] == ["G was chosen.", ""]
    of_table = {"counterparts": {"oskl": {"G": 2}}}
    third = make(calibrated=[calibrated], tables=PAPER["tables"] | {"2": PAPER["tables"]["2"] | of_table})
    assert not any(match.is_calibrated for match in third.matches)


def test_a_paper_says_what_each_experiment_is_for(make: Make) -> None:
    named = make(tried=[CAUSE | {"shown_by": ["other"]}]).paper.named()
    assert named == {"mine": ["table 2", "a cause"], "other": ["a cause"]}
    assert experiments_of("own") == [*named]


def test_the_page_of_a_table(make: Make) -> None:
    page = table_page(make(), "2")
    digits = page.grids[0]
    assert digits.header == ["digits", "Baseline", "OSKL, G 1", "OSKL, G 2"]
    assert digits.rows == [
        ["Accuracy (%)", "90.2 ± 0.5~°", "88.4 ± 0.5~°", "80.0 ± 0.5 [1]"],
        ["  paper", "90.0 ± 0.5", "88.0 ± 0.1", "70.0 ± 0.1"],
        ["Training time (s)", "0.50 ± 0.00", "-", "-"],
        ["  paper", "12.5 ± 0.1", "-", "-"],
    ]
    assert digits.papers == [1, 3]
    for words in (
        "[1] The paper scales by two. Shown by mine. Holds: Digits, Accuracy: NC 90.2 % is above published 70.0 %. "
        "Digits, OSKL, G 2, Accuracy (%): 80.0 ± 0.5 against 70.0 ± 0.1.",
        "magic: measured on other data (Moons), so the values are not compared.",
        "Unavailable: 1 number (adult, Baseline). It was never published.",
        "Not run: 1 number (covtype, Baseline).",
        "° agrees statistically, but with fewer than 5 measured repeats.",
    ):
        assert words in "\n".join(page.caption)


def test_a_sentence_names_the_commits_and_machines_of_records(make: Make) -> None:
    whole = make()
    unknown = "Records of 1 experiment. One commit: not known. One machine: not known."
    assert (provenance({}), scoreboard_page(whole).caption[-1]) == ([], unknown)
    (results,) = whole.all_results.values()
    frame = results.records.assign(host="vm", cpu="EPYC")
    killed = frame.head(1).assign(host=None, cpu=None, fit_time_s=None, status="killed")

    def made(frame: pd.DataFrame, **manifest: Any) -> Results:
        return replace(results, records=frame, manifest=results.manifest.model_copy(update=manifest))

    first = made(pd.concat([frame, killed]), git_commit="a" * 40)
    second = made(results.records, git_commit="b" * 40, changed=["file.py"])
    assert provenance({"one": first}) == ["Records of 1 experiment. One commit: aaaaaaaaaa. One machine: EPYC (vm)."]
    assert provenance({"one": first, "three": first, "two": second}) == [
        "Records of 3 experiments. 2 commits: aaaaaaaaaa, 2 experiments; bbbbbbbbbb with changes, 1 experiment. "
        "2 machines: EPYC (vm), 2 experiments; not known, 1 experiment."
    ]


def test_a_paper_is_written_once(make: Make, tmp_path: Path) -> None:
    make()
    console, formats = Console(file=io.StringIO(), width=200), ("terminal", "md", "tex", "csv")
    paths = report_papers(["own"], tmp_path / "results", console=console, formats=formats)
    figures = [f"{name}.{kind}" for name in ("published_measured", "mine_accuracy_support") for kind in ("png", "svg")]
    assert [path.name for path in paths] == ["tables.md", "tables.tex", "references.bib", "numbers.csv", *figures]
    assert "80.0 ± 0.5 [1]" in console.file.getvalue()  # type: ignore[attr-defined]
    assert "Somebody (2020), table 2: Results" in paths[0].read_text(encoding="utf-8")
    report_papers(["all"], tmp_path / "results", console=console, formats=("md",), output=tmp_path / "all")
    assert "| own " in (tmp_path / "all" / "tables.md").read_text(encoding="utf-8")


def test_figures_show_the_published_points_of_the_tables_that_name_the_experiment(make: Make) -> None:
    whole = make("2,digits,nc,,n_support,8,,count,Baseline")
    assert b"<!-- published -->" in draw_figures(whole).files["mine_accuracy_support.svg"]
    assert draw_figures(whole).files == paper_picture(whole) | draw_figures(whole, "2").files
    drawing = paper_picture(whole)["published_measured.svg"].decode()
    texts = [
        "Accuracy (%)",
        "Support vectors",
        "Properties of the data",
        *(verdict.value for verdict in list(Verdict)[:4]),
    ]
    assert [drawing.count(f"<!-- {text} -->") for text in texts] == [1] * len(texts)
    figures = {"1": {"title": "A figure", "experiments": ["mine"]}}
    assert b"<!-- published -->" not in draw_figures(make(figures=figures)).files["mine_accuracy_support.svg"]


WITHOUT = {key: value for key, value in CAUSE.items() if key != "statements"}


def changed(**values: Any) -> dict[str, Any]:
    """Return the cause with another statement."""
    return CAUSE | {"statements": [CAUSE["statements"][0] | values]}


def test_what_paper_yaml_says_of_no_number_is_refused(make: Make) -> None:
    for changes, message in (
        ({"causes": [CAUSE | {"shown_by": ["mien"]}]}, r"causes\[0\].shown_by.*'mien'.*'mine'"),
        ({"causes": [CAUSE | {"numbers": {"table": ["9"]}}]}, r"causes\[0\].numbers: expected numbers of"),
        ({"causes": [CAUSE | {"because": "no sentence"}]}, r"because: expected a sentence"),
        (
            {"causes": [WITHOUT]},
            r"causes\[0\].statements: expected comparisons that the experiments of `shown_by` must",
        ),
        ({"causes": [], "tried": [WITHOUT]}, r"tried\[0\].statements: expected comparisons"),
        ({"causes": [changed(than=None)]}, r"causes\[0\].statements\[0\]: expected a comparison, with `than`"),
        ({"causes": [changed(metric="acuracy")]}, r"causes\[0\]\[0\].metric.*Did you mean 'accuracy'"),
        ({"causes": [changed(of={"algorithms": ["nc"], "experiments": ["benchmark"]})]}, "unknown value 'benchmark'"),
        ({"absent": [ABSENT | {"numbers": {"metric": ["acuracy"]}}]}, r"absent\[0\].numbers"),
        ({"inferred_spreads": [{"metric": ["n_support"]}]}, r"inferred_spreads\[0\]: expected numbers with a standard"),
        ({"layout": {"rows": ["metrics"]}}, "layout.rows.*Did you mean 'metric'"),
        ({"counterparts": {"osk1": {"G": 1}}}, "counterparts.*Did you mean 'oskl'"),
    ):
        table = {"causes": [], "absent": [], "tables": PAPER["tables"] | {"2": {"title": "x"} | changes}}
        with pytest.raises(KlrBenchError, match=message):
            make(**(changes if {*changes} <= {*PAPER, "inferred_spreads", "tried"} else table))


PAPERS = paper_files(folders()[:1])


@pytest.mark.parametrize("name", PAPERS)
def test_every_published_number_has_a_verdict(name: str) -> None:
    whole = reproduction(name)
    judged = [match for numbers in whole.matches_by_table.values() for match in numbers]
    assert sorted(id(match.printed) for match in judged) == sorted(map(id, whole.lines))
    assert all(match.reason for match in judged if match.verdict is Verdict.EXPLAINED)
    assert all((match.not_compared is None) == (match.verdict is not Verdict.NOT_COMPARED) for match in judged)
    compared = counts(judged)
    differing = compared[Verdict.EXPLAINED.value] + compared[Verdict.UNEXPLAINED.value]
    assert compared[COMPARED] == compared[AGREE] + differing
    beside = Counter(match.kind for match in judged if match.kind is not Kind.RESULT and match.not_compared is None)
    n_not_compared = sum(match.not_compared is not None for match in judged)
    assert compared[NUMBERS] == len(whole.lines) == compared[COMPARED] + beside.total() + n_not_compared
    grids = [grid for number in whole.matches_by_table for grid in table_page(whole, number).grids]
    assert all(len(row) == len(grid.header) for grid in grids for row in grid.rows)


def test_the_published_table_3_is_reproduced() -> None:
    matches = reproduction("zhang2013icml").matches_by_table["3"]
    numbers = counts(matches)
    assert (numbers[NUMBERS], numbers[COMPARED], numbers[AGREE] >= 40, numbers[POWER] >= 32) == (96, 45, True, True)
    unexplained = {match.printed.algorithm for match in matches if match.verdict is Verdict.UNEXPLAINED}
    assert unexplained <= {"pegasos"}, "whose lambda is cross-validated, as in the paper"


def test_values_for_what_a_number_leaves_open_are_calibrated_or_stated(tmp_path: Path) -> None:
    for name in PAPERS:
        paper, lines = reproduction(name).paper, reproduction(name).lines
        for number, printed in paper.tables.items():
            for algorithm in printed.counterparts:
                bare = [
                    calibration
                    for calibration in paper.calibrated
                    if algorithm not in (calibration.numbers.algorithm or [algorithm])
                ]
                tables = paper.tables | {number: printed.model_copy(update={"as_stated": {}})}
                with pytest.raises(KlrBenchError, match=r"counterparts\.\w+: expected values in `calibrated`"):
                    check_numbers(paper.model_copy(update={"calibrated": bare, "tables": tables}), lines)


SIGNS = {Verdict.EXACT: "", Verdict.STATISTICAL: "~", Verdict.UNEXPLAINED: "*", Verdict.EXPLAINED: "]"}


def signs(texts: Iterable[str]) -> Counter[str]:
    """Count the marks of verdicts of some printed numbers."""
    ends = (text.strip().rstrip(WEAK_MARK)[-1] for text in texts if text.strip() not in ("", "-"))
    return Counter(end if end in "~*]" else "" for end in ends)


def expected(matches: Iterable[Match]) -> Counter[str]:
    return Counter(SIGNS.get(match.verdict, "") for match in matches if match.mean is not None)


def test_each_mark_occurs_in_one_of_two_papers() -> None:
    marks = {mark for name in ("zhang2013icml", "qin2011") for mark in expected(reproduction(name).matches)}
    assert marks == {"", *SIGNS.values()}


@pytest.mark.parametrize("name", ["zhang2013icml", "qin2011"])
def test_a_number_has_one_verdict_in_tables_printed_tables_scoreboard_csv_and_pages(name: str) -> None:
    whole = reproduction(name)
    rows = list(csv.DictReader(io.StringIO(numbers_csv([whole]))))
    assert [row["verdict"] for row in rows] == [match.verdict.value for match in whole.matches]
    board, _ = scoreboard_page(whole).grids
    total = dict(zip(board.header, board.rows[-1], strict=True))
    results = [match for match in whole.matches if match.kind is Kind.RESULT and match.not_compared is None]
    assert total[AGREE] == str(sum(match.agrees for match in results))
    assert total[POWER] == str(sum(match.has_power for match in results))
    for verdict in (Verdict.EXPLAINED, Verdict.UNEXPLAINED):
        assert total.get(verdict.value, "-").replace("-", "0") == str(
            sum(match.verdict is verdict for match in results)
        )
    printed = [table_page(whole, number) for number in whole.matches_by_table]
    html = fragment([Part("paper", name, name, printed)], name)
    for verdict in SIGNS:
        count = sum(match.verdict is verdict and not match.is_weak for match in whole.matches)
        assert verdict is Verdict.EXACT or html.count(f'<span class="{verdict.name.lower()}">') == count
    assert html.count('<span class="weak">') == sum(match.is_weak for match in whole.matches) > 0
    grids = [grid for page in printed for grid in page.grids]
    ours = [row[1:] for grid in grids for number, row in enumerate(grid.rows) if number not in grid.papers]
    assert signs(text for row in ours for cell in row for text in cell.split(SEPARATOR)) == expected(whole.matches)

    chosen = {
        (match.printed.table, match.printed.metric, match.experiment, match.dataset, match.column): match
        for match in whole.matches
    }
    shared = 0
    for experiment in whole.results:
        tables = [number for number, entry in whole.paper.tables.items() if experiment in entry.experiments]
        table = build(whole.measured[experiment], [whole.source(tables)], {name: whole.rows(tables, experiment)})
        for match in (match for block in table.blocks for match in block.matches):
            same = chosen.get(
                (match.printed.table, match.printed.metric, match.experiment, match.dataset, match.column)
            )
            shared += same is not None
            assert same is None or (match.verdict, match.reason, match.is_weak) == (
                same.verdict,
                same.reason,
                same.is_weak,
            )
        differences = [text for grid in document(table).grids for text in difference_cells(grid)]
        assert signs(differences) == expected(match for match in table.compared_matches if not match.stand_in)
        places = [(line, metric) for block in table.blocks for line in block.lines for metric in block.metrics]
        in_order = [line.matches[metric.name].verdict.value for line, metric in places if metric.name in line.matches]
        rows = list(csv.DictReader(io.StringIO(comma_separated(table))))
        assert [row["verdict"] for row in rows if row["verdict"]] == in_order
    assert shared > 50


def difference_cells(grid: Grid) -> list[str]:
    """Return the differences from published numbers in a table: those of its columns, or of its rows, called diff."""
    places = [place for place, head in enumerate(grid.header) if head == "diff"]
    cells = [row[place] for row in grid.rows for place in places]
    return cells + [text for row in grid.rows if row[0] == "  diff" for text in row[1:]]


@pytest.mark.parametrize("name", ["cw_covtype", "cw_covtype_toolbox", "oskl_magic", "l1_mnist49"])
def test_the_table_of_an_experiment_has_the_verdicts_of_the_paper(name: str) -> None:
    built = table(REFERENCE / name)
    (source,) = built.sources
    paper = reproduction(source.name)
    compared = {
        (match.printed.table, match.dataset, match.column, match.printed.metric): match.verdict
        for match in paper.matches
        if match.experiment == name
    }
    verdicts = [
        (match.verdict, compared.get((match.printed.table, match.dataset, match.column, match.printed.metric)))
        for match in built.compared_matches
    ]
    assert any(verdict is paper for verdict, paper in verdicts)
    assert all(verdict in (paper, Verdict.NOT_COMPARED) for verdict, paper in verdicts)
    assert all(paper in (None, Verdict.NOT_COMPARED) for verdict, paper in verdicts if verdict is Verdict.NOT_COMPARED)
