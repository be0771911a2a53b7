"""A paper as a whole: each printed number has ours beside it where there is one, and a verdict."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from klr_bench.config.locations import folders
from klr_bench.errors import KlrBenchError
from klr_bench.parsing import parse
from klr_bench.report.measured import Entry
from klr_bench.report.page.content import Part
from klr_bench.report.page.html import fragment
from klr_bench.report.paper_pages import draw_figures, numbers_csv, report_papers, scoreboard_page, table_page
from klr_bench.report.papers.match import Match
from klr_bench.report.papers.model import Numbers, Printed, PrintedTable
from klr_bench.report.papers.reading import experiments_of, paper_files
from klr_bench.report.papers.reproduction import WholePaper, origin
from klr_bench.report.papers.verdicts import Verdict, counts, standard_error
from klr_bench.report.render.document import SEPARATOR, Grid
from klr_bench.report.render.layout import comma_separated, document
from klr_bench.report.table import build
from tests.report.folders import record, write

REFERENCE = Path(__file__).resolve().parents[3] / "results" / "reference"
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
PAPER: dict[str, Any] = {
    "title": "A paper",
    "authors": "Somebody",
    "venue": "Somewhere",
    "year": 2020,
    "reference": "Somebody (2020)",
    "tables": {
        "1": {"title": "Data", "layout": {"blocks": [], "rows": ["dataset"], "columns": ["metric"]}},
        "2": {"title": "Results", "experiments": ["mine"], "layout": {"rows": ["metric"], "columns": ["label"]}},
    },
    "stand_ins": {"moons": "magic"},
    "causes": [
        {
            "numbers": {"table": ["2"], "algorithm": ["oskl"], "params": {"G": [2]}},
            "because": "The paper scales by two.",
            "shown_by": ["mine"],
        }
    ],
    "absent": [{"numbers": {"dataset": ["adult"]}, "because": "It was never published."}],
}
CONFIG: dict[str, Any] = {
    "experiment": "mine",
    "title": "Mine",
    "repeats": 4,
    "datasets": {"digits": {"label": "Digits"}, "moons": {"label": "Moons"}},
    "algorithms": {"nc": {"label": "NC"}, "oskl": {"label": "OSKL"}},
    "sweep": {"oskl": {"G": [1, 2]}},
}


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., WholePaper]:
    """Return a function that makes an own paper, with changes, and its results."""
    monkeypatch.chdir(tmp_path)

    def made(**changes: Any) -> WholePaper:
        folder = tmp_path / "configs" / "paper" / "own"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "paper.yaml").write_text(yaml.safe_dump(PAPER | changes), encoding="utf-8")
        (folder / "tables.csv").write_text("\n".join([HEADER, *LINES]) + "\n", encoding="utf-8")
        experiment = tmp_path / "configs" / "experiment" / "mine.yaml"
        experiment.parent.mkdir(exist_ok=True)
        experiment.write_text("# @package _global_\n", encoding="utf-8")
        spread = (-0.006, -0.002, 0.002, 0.006)
        rows = []
        for repeat, away in enumerate(spread):
            sizes = {"n_train": 80, "n_test": 20, "n_features": 2, "nnz_per_instance": 1.52}
            rows += [
                record("nc", "", repeat, dataset="digits", accuracy=0.902 + away, fit_time_s=0.5, n_support=7, **sizes),
                record("oskl", "G=1", repeat, dataset="digits", accuracy=0.884 + away, n_support=5),
                record("oskl", "G=2", repeat, dataset="digits", accuracy=0.8 + away),
            ]
            moons = record("nc", "", repeat, dataset="moons", accuracy=0.5, n_train=9, n_test=9)
            rows.append(moons)
            moons.key += "-moons"
        write(tmp_path / "results" / "mine", rows, CONFIG)
        return WholePaper("own", paper_files(folders())["own"], tmp_path / "results")

    return made


def verdicts(whole: WholePaper) -> dict[str, list[Verdict]]:
    return {number: [one.verdict for one in judged] for number, judged in whole.judged.items()}


def test_each_number_has_its_verdict(make: Callable[..., WholePaper]) -> None:
    assert verdicts(make()) == {
        "1": [Verdict.WITHIN],
        "2": [
            Verdict.WITHIN,
            Verdict.COMPATIBLE,
            Verdict.EXPLAINED,
            Verdict.TIME,
            Verdict.STAND_IN,
            Verdict.ABSENT,
            Verdict.OPEN,
        ],
    }


def test_what_a_table_says_of_the_data_itself_stands_beside_what_was_learned(
    make: Callable[..., WholePaper], tmp_path: Path
) -> None:
    make()
    facts = [f"1,digits,,,{name},{value},,count,digits" for name, value in (("n_examples", 100), ("n_features", 3))]
    facts += ["1,digits,,,nnz_per_instance,1.5,,,digits", "1,magic,,,nnz_per_instance,1.5,,,magic"]
    folder = tmp_path / "configs" / "paper" / "own"
    (folder / "tables.csv").write_text("\n".join([HEADER, *LINES, *facts]) + "\n", encoding="utf-8")
    found = verdicts(WholePaper("own", folder, tmp_path / "results"))["1"]
    assert found == [Verdict.WITHIN, Verdict.WITHIN, Verdict.OFF, Verdict.WITHIN, Verdict.OPEN]


def test_a_lambda_that_all_fits_share_is_found_among_their_parameters(make: Callable[..., WholePaper]) -> None:
    make()
    with Path("configs/paper/own/tables.csv").open("a") as file:
        file.write("1,digits,,,lam,0.25,,fraction,digits\n1,digits,,,lam,0.5,,fraction,digits\n")
    sizes = {"n_train": 80, "n_test": 20, "n_features": 2}
    write(Path("results/mine"), [record("nc", "", 0, dataset="digits", params={"lam": 0.25}, **sizes)], CONFIG)
    judged = WholePaper("own", paper_files(folders())["own"], Path("results")).judged["1"]
    assert [one.verdict for one in judged] == [Verdict.WITHIN, Verdict.WITHIN, Verdict.OPEN]


def test_without_its_cause_a_number_is_off(make: Callable[..., WholePaper]) -> None:
    judged = make(causes=[], absent=[]).judged["2"]
    assert [judged[2].verdict, judged[5].verdict] == [Verdict.OFF, Verdict.OPEN]
    assert (judged[2].near, judged[1].near, judged[3].near, judged[4].near) == (False, True, None, None)


def test_a_cause_that_nothing_shows_does_not_count(make: Callable[..., WholePaper]) -> None:
    make()
    Path("configs/experiment/shows.yaml").write_text("# @package _global_\n", encoding="utf-8")
    cause = {**PAPER["causes"][0], "shown_by": ["mine", "shows"]}
    assert make(causes=[cause]).judged["2"][2].verdict is Verdict.OFF
    write(Path("results/shows"), [record("nc", "", 0, dataset="digits")], CONFIG)
    assert make(causes=[cause]).judged["2"][2].verdict is Verdict.EXPLAINED


def test_what_was_tried_is_no_cause(make: Callable[..., WholePaper]) -> None:
    tried = {**PAPER["causes"][0], "because": "Scaling changed nothing."}
    whole = make(causes=[], tried=[tried])
    judged = whole.judged["2"][2]
    assert (judged.verdict, judged.reason, judged.shown_by) == (Verdict.OFF, "Scaling changed nothing.", ("mine",))
    page = table_page(whole, "2")
    assert page.grids[0].rows[0][-1] == "80.0 ± 0.5*"
    said = "\n".join(page.caption)
    assert "Off, without a cause: digits, OSKL, G 2, Accuracy (%): 80.0 ± 0.5 against 70.0 ± 0.1." in said
    assert "Tried, for digits, OSKL, G 2, Accuracy (%): Scaling changed nothing. See mine." in said


def test_each_experiment_that_a_paper_names_is_for_something(make: Callable[..., WholePaper]) -> None:
    tried = {**PAPER["causes"][0], "because": "Scaling changed nothing.", "shown_by": ["other"]}
    make()
    Path("configs/experiment/other.yaml").write_text("# @package _global_\n", encoding="utf-8")
    named = make(tried=[tried]).paper.named()
    assert named["other"] == ["a cause"]
    assert "a cause" in named["mine"]
    assert experiments_of("own") == [*named]


def test_the_page_of_a_table(make: Callable[..., WholePaper]) -> None:
    page = table_page(make(), "2")
    digits = page.grids[0]
    assert digits.header == ["digits", "Baseline", "OSKL, G 1", "OSKL, G 2"]
    assert digits.rows == [
        ["Accuracy (%)", "90.2 ± 0.5", "88.4 ± 0.5~", "80.0 ± 0.5 [1]"],
        ["  paper", "90.0 ± 0.5", "88.0 ± 0.1", "70.0 ± 0.1"],
        ["Training time (s)", "0.50 ± 0.00", "-", "-"],
        ["  paper", "12.5 ± 0.1", "-", "-"],
    ]
    assert digits.papers == [1, 3]
    said = "\n".join(page.caption)
    cause = (
        "[1] The paper scales by two. Shown by mine. digits, OSKL, G 2, Accuracy (%): 80.0 ± 0.5 against 70.0 ± 0.1."
    )
    assert cause in said
    assert "magic: ours are of moons, which stand in for it" in said
    assert "Not to be had: 1 number (adult, Baseline). It was never published." in said
    assert "Not run: 1 number (covtype, Baseline)." in said


def test_the_scoreboard_counts_each_number_once(make: Callable[..., WholePaper]) -> None:
    whole = make()
    (board,) = scoreboard_page(whole).grids
    assert [row[0] for row in board.rows] == ["table 1", "table 2", "all"]
    total = dict(zip(board.header[1:], board.rows[-1][1:], strict=True))
    assert total["numbers"] == str(len(LINES))
    verdicts = ("within", "compatible", "explained", "off", "times", "other data", "absent", "not run")
    assert [total.get(verdict, "0") for verdict in verdicts] == list("21101111")


def test_the_scoreboard_says_of_what_commit_and_machine_the_records_are(make: Callable[..., WholePaper]) -> None:
    whole = make()
    (results,) = whole.behind.values()
    assert origin({}) == []
    frame = results.records.assign(host="vm", cpu="EPYC")
    one = replace(results, records=frame, manifest=results.manifest.model_copy(update={"git_commit": "a" * 40}))
    two = replace(results, manifest=results.manifest.model_copy(update={"git_commit": "b" * 40, "changed": ["x.py"]}))
    sentence = "Records of 1 experiment. One commit: aaaaaaaaaa. One machine: EPYC (vm)."
    assert origin({"one": one}) == [sentence]
    unmeasured = frame.head(1).assign(host=None, cpu=None, fit_time_s=None, status="timeout")
    assert origin({"one": replace(one, records=pd.concat([frame, unmeasured]))}) == [sentence]
    plus = replace(results, manifest=results.manifest.model_copy(update={"git_commit": f"{'c' * 40}+changes"}))
    assert "One commit: cccccccccc with changes." in origin({"one": plus})[0]
    assert origin({"one": one, "three": one, "two": two}) == [
        "Records of 3 experiments. 2 commits: aaaaaaaaaa, 2 experiments; bbbbbbbbbb with changes, 1 experiment. "
        "2 machines: EPYC (vm), 2 experiments; not known, 1 experiment."
    ]
    assert (
        scoreboard_page(whole).caption[-1] == "Records of 1 experiment. One commit: not known. One machine: not known."
    )


def test_every_number_is_a_row_of_csv(make: Callable[..., WholePaper]) -> None:
    rows = list(csv.DictReader(io.StringIO(numbers_csv([make()]))))
    assert len(rows) == len(LINES)
    explained = rows[3]
    assert float(explained["mean"]) == pytest.approx(0.8)
    assert float(explained["difference"]) == pytest.approx(0.1)
    assert (explained["verdict"], explained["shown_by"]) == ("off, with a cause", "mine")
    assert [row["difference"] for row in rows[4:]] == [""] * 4


def test_a_paper_is_written_once(make: Callable[..., WholePaper], tmp_path: Path) -> None:
    make()
    console, formats = Console(file=io.StringIO(), width=200), ("terminal", "md", "tex", "csv")
    paths = report_papers(["own"], tmp_path / "results", console=console, formats=formats)
    figures = ["mine_accuracy_support.png", "mine_accuracy_support.svg"]
    assert [path.name for path in paths] == ["tables.md", "tables.tex", "numbers.csv", *figures]
    assert "80.0 ± 0.5 [1]" in console.file.getvalue()  # type: ignore[attr-defined]
    assert "Somebody (2020), table 2: Results" in paths[0].read_text(encoding="utf-8")
    report_papers(["all"], tmp_path / "results", console=console, formats=("md",), output=tmp_path / "all")
    assert "| own " in (tmp_path / "all" / "tables.md").read_text(encoding="utf-8")


def test_the_figures_of_a_paper_have_its_published_points(make: Callable[..., WholePaper], tmp_path: Path) -> None:
    """Those of the tables that name the experiment: without them there are none."""
    lines = [*LINES, "2,digits,nc,,n_support,8,,count,Baseline"]
    folder = tmp_path / "configs" / "paper" / "own"
    make()
    (folder / "tables.csv").write_text("\n".join([HEADER, *lines]) + "\n", encoding="utf-8")
    whole = WholePaper("own", folder, tmp_path / "results")
    assert b"<!-- published -->" in draw_figures(whole).files["mine_accuracy_support.svg"]
    assert draw_figures(whole, "2").files == draw_figures(whole).files
    figures = {"1": {"title": "A figure", "experiments": ["mine"]}}
    assert b"<!-- published -->" not in draw_figures(make(figures=figures)).files["mine_accuracy_support.svg"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"causes": [{**PAPER["causes"][0], "shown_by": ["mien"]}]}, r"causes\[0\].shown_by.*'mien'.*'mine'"),
        (
            {"causes": [{**PAPER["causes"][0], "numbers": {"table": ["9"]}}]},
            r"causes\[0\].numbers: expected numbers of",
        ),
        ({"causes": [{**PAPER["causes"][0], "because": "no sentence"}]}, r"because: expected a sentence"),
        ({"absent": [{**PAPER["absent"][0], "numbers": {"metric": ["acuracy"]}}]}, r"absent\[0\].numbers"),
        ({"tables": {"2": {"title": "x", "layout": {"rows": ["metrics"]}}}}, "layout.rows.*Did you mean 'metric'"),
        ({"tables": {"2": {"title": "x", "counterparts": {"osk1": {"G": 1}}}}}, "counterparts.*Did you mean 'oskl'"),
    ],
)
def test_what_paper_yaml_says_of_no_number_is_refused(
    make: Callable[..., WholePaper], changes: dict[str, Any], message: str
) -> None:
    if "tables" in changes:
        changes = {"tables": PAPER["tables"] | changes["tables"], "causes": [], "absent": []}
    with pytest.raises(KlrBenchError, match=message):
        make(**changes)


def printed(mean: str, std: str, unit: str = "percent", metric: str = "accuracy") -> Printed:
    line = {"table": "1", "dataset": "data", "algorithm": "learner", "params": {}, "metric": metric}
    return parse(Printed, line | {"mean": mean, "std": std, "unit": unit, "label": ""})


@given(st.lists(st.floats(0.5, 1.0), min_size=2, max_size=30), st.floats(0.001, 0.05), st.integers(2, 30))
def test_the_standard_error_is_that_of_two_samples(values: list[float], std: float, repeats: int) -> None:
    """As scipy has it for Welch's test: difference / statistic."""
    from scipy.stats import ttest_ind_from_stats

    ours = np.array(values)
    published = printed("40.0", f"{100 * std:.6f}")
    entry = Entry(len(values), float(ours.mean()), float(ours.std(ddof=1)))
    assert published.spread is not None
    welch = ttest_ind_from_stats(
        ours.mean(), ours.std(ddof=1), len(values), 0.4, published.spread, repeats, equal_var=False
    )
    error = standard_error(entry, published.spread, repeats)
    assert error is not None
    assert (ours.mean() - 0.4) / error == pytest.approx(welch.statistic)


@pytest.mark.parametrize(
    ("std", "printed_std", "repeats", "error"),
    [
        (0.01, "", None, math.sqrt(0.01**2 / 4 + 0.01**2)),  # one run, whose spread is taken from ours
        (0.01, "", 4, math.sqrt(2 * 0.01**2 / 4)),
        (None, "1.0", 4, math.sqrt(2 * 0.01**2 / 4)),
        (0.01, "0.0", 4, 0.005),
        (None, "", 4, None),
    ],
)
def test_where_one_side_has_no_spread(
    std: float | None, printed_std: str, repeats: int | None, error: float | None
) -> None:
    assert standard_error(Entry(4, 0.9, std), printed("89.0", printed_std).spread, repeats) == (
        None if error is None else pytest.approx(error)
    )


@pytest.mark.parametrize(
    ("numbers", "holds"),
    [
        ({}, True),
        ({"table": ["2"]}, True),
        ({"table": ["3"]}, False),
        ({"dataset": ["magic", "adult"], "metric": ["sparsity"]}, True),
        ({"algorithm": ["nc"]}, False),
        ({"params": {"G": [1, 2]}}, True),
        ({"params": {"G": [4]}}, False),
        ({"params": {"R": [1]}}, False),
    ],
)
def test_a_set_of_numbers(numbers: dict[str, Any], holds: bool) -> None:
    values = {"table": "2", "dataset": "magic", "algorithm": "oskl", "params": {"G": 2}, "metric": "sparsity"}
    line = parse(Printed, values | {"mean": "1", "std": "", "unit": "percent", "label": ""})
    assert parse(Numbers, numbers).holds(line) is holds


def test_a_variant_is_meant_by_the_values_it_varies() -> None:
    def meant(chosen: Any, variant: dict[str, Any]) -> bool:
        table = parse(PrintedTable, {"title": "A table", "counterparts": {"nc": {"lam": chosen}}})
        return table.is_counterpart("nc", variant)

    assert meant(1e-4, {"lam": 1e-4})
    assert not meant(1e-4, {"lam": "cv"})
    assert meant(1e-4, {})
    assert meant([1e-4, 1e-5], {"lam": 1e-5})
    assert not meant([1e-4, 1e-5], {"lam": "cv"})


PAPERS = paper_files(folders()[:1])


@pytest.mark.parametrize("name", PAPERS)
def test_every_published_number_has_a_verdict(name: str) -> None:
    whole = WholePaper(name, PAPERS[name], REFERENCE)
    judged = [one for numbers in whole.judged.values() for one in numbers]
    assert sorted(id(one.printed) for one in judged) == sorted(map(id, whole.lines))
    assert counts(judged)["numbers"] == len(whole.lines)
    assert all(one.reason for one in judged if one.verdict in (Verdict.EXPLAINED, Verdict.ABSENT))
    for number in whole.judged:
        page = table_page(whole, number)
        assert all(len(row) == len(grid.header) for grid in page.grids for row in grid.rows)


def test_the_published_table_3_stands_beside_ours() -> None:
    whole = WholePaper("zhang2013icml", PAPERS["zhang2013icml"], REFERENCE)
    found = counts(whole.judged["3"])
    assert found["numbers"] == 96
    assert found["compared"] >= 69
    assert found["near"] >= 0.9 * found["compared"]


SIGNS = {Verdict.WITHIN: "", Verdict.COMPATIBLE: "~", Verdict.OFF: "*", Verdict.EXPLAINED: "]"}
CLASSES = {"compatible": Verdict.COMPATIBLE, "off": Verdict.OFF, "explained": Verdict.EXPLAINED}


def signs(texts: Iterable[str]) -> Counter[str]:
    """Count the marks of verdicts of some printed numbers."""
    ends = (text.strip()[-1] for text in texts if text.strip() not in ("", "-"))
    return Counter(end if end in "~*]" else "" for end in ends)


def expected(matches: Iterable[Match]) -> Counter[str]:
    return Counter(SIGNS.get(one.verdict, "") for one in matches if one.mean is not None)


@pytest.mark.parametrize("name", ["zhang2013icml", "qin2011"])
def test_a_number_has_one_verdict_in_tables_printed_tables_scoreboard_csv_and_pages(name: str) -> None:
    whole = WholePaper(name, PAPERS[name], REFERENCE)
    assert expected(whole.numbers).keys() == {*SIGNS.values()}
    chosen = {(id(one.printed), one.experiment, one.dataset, one.column): one for one in whole.numbers}

    rows = list(csv.DictReader(io.StringIO(numbers_csv([whole]))))
    assert [row["verdict"] for row in rows] == [one.verdict.value for one in whole.numbers]
    (board,) = scoreboard_page(whole).grids
    total = dict(zip(board.header, board.rows[-1], strict=True))
    for title, verdict in {"within": Verdict.WITHIN, **CLASSES}.items():
        assert int(total[title]) == sum(one.verdict is verdict for one in whole.numbers)

    printed = [table_page(whole, number) for number in whole.judged]
    ours = [
        row[1:] for page in printed for grid in page.grids for n, row in enumerate(grid.rows) if n not in grid.papers
    ]
    assert signs(text for row in ours for cell in row for text in cell.split(SEPARATOR)) == expected(whole.numbers)
    html = fragment([Part("paper", name, name, printed)], name)
    for css, verdict in CLASSES.items():
        assert html.count(f'<span class="{css}">') == sum(one.verdict is verdict for one in whole.numbers)

    shared = 0
    for experiment in whole.results:
        source = whole.source([number for number, one in whole.paper.tables.items() if experiment in one.experiments])
        table = build(whole.measured[experiment], [source])
        for match in table.matches:
            same = chosen.get((id(match.printed), match.experiment, match.dataset, match.column))
            shared += same is not None
            assert same is None or (match.verdict, match.reason) == (same.verdict, same.reason)
        differences = [text for grid in document(table).grids for text in difference_cells(grid)]
        assert signs(differences) == expected(one for one in table.compared if not one.stand_in)
        rows = list(csv.DictReader(io.StringIO(comma_separated(table))))
        shown = [row["verdict"] for row in rows if row["verdict"]]
        metrics = {block.dataset: block.metrics for block in table.blocks}
        assert shown == [
            line.matches[metric.name].verdict.value
            for block in table.blocks
            for line in block.lines
            for metric in metrics[block.dataset]
            if metric.name in line.matches
        ]
    assert shared > 50


def difference_cells(grid: Grid) -> list[str]:
    """Return the differences from published numbers in a table: those of its columns, or of its rows, called diff."""
    places = [place for place, head in enumerate(grid.header) if head == "diff"]
    found = [row[place] for row in grid.rows for place in places]
    return found + [text for row in grid.rows if row[0] == "  diff" for text in row[1:]]
