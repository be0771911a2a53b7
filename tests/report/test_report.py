"""The report of an experiment: its records, the published numbers, and every failure."""

import csv
import io
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from klr_bench.console import PlainConsole
from klr_bench.errors import KlrBenchError
from klr_bench.metrics.metric import Metric
from klr_bench.parsing import parse
from klr_bench.report import report
from klr_bench.report.labels import line_label
from klr_bench.report.manifest import Manifest
from klr_bench.report.papers.verdicts import Verdict
from klr_bench.report.render import show
from klr_bench.report.render.caption import caption
from klr_bench.report.render.document import Document, Grid, heading
from klr_bench.report.render.layout import document
from klr_bench.report.table import Line
from klr_bench.results.record import Record
from klr_bench.results.store import was_run
from klr_bench.results.variants import Variant
from tests.report.folders import REFERENCE, Make, configuration, quiet, record, shown, table, write

ACCURACIES = {
    ("nc", ""): 0.858,
    ("pegasos", "lam=0.0001"): 0.84,
    ("pegasos", "lam=cv"): 0.85,
    ("oskl", "G=1"): 0.855,
    ("oskl", "G=10"): 0.823,
}
CONFIG: dict[str, Any] = {
    "experiment": "oskl_magic",
    "repeats": 3,
    "datasets": {"magic": {"label": "MAGIC"}},
    "algorithms": {"nc": {"label": "Baseline"}, "pegasos": {"label": "Pegasos"}, "oskl": {"label": "OSKL"}},
    "sweep": {"oskl": {"G": [1, 10]}, "pegasos": {"lam": [1e-4, "cv"]}},
}
ALONE = {"experiment": "demo"}
"""An experiment that no paper names."""


def row(algorithm: str, variant: str, repeat: int, **changes: Any) -> Record:
    accuracy = ACCURACIES.get((algorithm, variant), 0.8) + 0.002 * (repeat - 1)
    values = {
        "dataset": "magic",
        "accuracy": accuracy,
        "sparsity": 0.774,
        "n_support": 3440 + repeat,
        "fit_time_s": 0.5,
    }
    return record(algorithm, variant, repeat, **(values | changes))


def of_all(**conditions: Any) -> list[Record]:
    return [row(*column, repeat, **conditions) for column in ACCURACIES for repeat in range(3)]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Return a function that makes a results folder: the default rows with some replaced, or other rows."""

    def folder(rows: Sequence[Record] = (), *, only: bool = False, traces: Any = (), **config: Any) -> Path:
        return write(
            tmp_path / "results" / "demo", [*([] if only else of_all()), *rows], CONFIG | config, traces=traces
        )

    return folder


def lines(folder: Path) -> dict[str, Line]:
    return {line_label(line): line for line in table(folder).blocks[0].lines}


def test_means_are_compared_with_the_published_numbers(make: Make) -> None:
    folder = make([row("nc", "", repeat, accuracy=0.849) for repeat in range(3)])
    line = lines(folder)["OSKL G=1"]
    cell, match = line.entries["accuracy"], line.matches["accuracy"]
    assert (cell.n, match.printed.mean, match.printed.std) == (3, "85.5", "0.5")
    assert (cell.mean, cell.std) == (pytest.approx(0.855), pytest.approx(0.002)), "of a sample: n - 1"
    assert (match.difference, match.verdict) == (pytest.approx(0.0), Verdict.EXACT)
    block = document(table(folder)).grids[0]
    rows = [[text.strip() for text in texts] for texts in block.rows]
    assert block.header[-2:] == ["Training time (s)", "ratio"]
    assert (rows[0][:4], rows[0][-2:]) == (["Baseline", "3/3", "84.9 ± 0.0", "-0.9*"], ["0.500 ± 0.000", "24x"])
    assert (rows[1][:4], rows[1][-2]) == (["paper", "", "85.8 ± 0.4", ""], "11.8 ± 0.0")
    assert rows[2][3] == "0.0", "without a verdict: the paper's number is compared with the cross-validated lam"
    assert rows[4][3].startswith("+1.0§~")


HERE = {"host": "here", "cpu": "A CPU, 1 thread", "load": 0.01}


def test_the_caption_names_the_machine_of_the_records_or_of_the_manifest(make: Make) -> None:
    hostile = HERE | {"host": "\x1b[31mhere\n" + 1000 * "x"}
    for of_records, machine in ((HERE, "here, A CPU, 1 thread; ratio:"), ({}, "A CPU & co; ratio:"), (hostile, "")):
        sentences = caption(table(make(of_all(**of_records))))
        (sentence,) = [text for text in sentences if text.startswith(f"Training times were measured on {machine}")]
        assert sentence.isprintable()
        assert len(sentence) < 500
        assert not any("cannot be compared" in text for text in sentences)


@pytest.mark.parametrize(
    ("one_repeat", "sentence"),
    [
        (HERE | {"host": "there"}, "they have no ratio: Baseline on MAGIC (there, A CPU, 1 thread)."),
        ({}, "they have no ratio: Baseline on MAGIC (a machine that the records do not name)."),
        (HERE | {"load": 0.34}, "when these fits began: Baseline on MAGIC (34.0 %); these times cannot be compared"),
    ],
)
def test_times_of_other_conditions_have_no_ratio_and_are_named(
    make: Make, one_repeat: dict[str, Any], sentence: str
) -> None:
    folder = make([*of_all(**HERE), row("nc", "", 2, **one_repeat)])
    assert lines(folder)["Baseline"].matches["fit_time_s"].ratio is None
    assert lines(folder)["Baseline"].matches["accuracy"].difference is not None
    assert lines(folder)["OSKL G=1"].matches["fit_time_s"].ratio is not None
    assert sentence in " ".join(caption(table(folder)))


def test_times_are_in_the_unit_of_the_paper_and_one_repeat_has_no_deviation(make: Make) -> None:
    folder = make([row("nc", "", 0, key="c", dataset="covtype", fit_time_s=90.0)], only=True, datasets={"covtype": {}})
    block = document(table(folder)).grids[0]
    assert block.header[-2] == "Training time (min)"
    assert (block.rows[0][-2].strip(), block.rows[1][-2].strip()) == ("1.50", "761 ± 47")
    assert lines(folder)["Baseline"].entries["accuracy"].std is None
    assert "One repeat, so no standard deviation." in shown(make([row("nc", "", 0)], only=True, repeats=1))


def test_failures_are_counted_and_named_and_enter_no_mean(make: Make) -> None:
    failed = [
        row("nc", "", 1, status="error", message="ValueError: bad\nvalue", accuracy=None),
        row("nc", "", 2, status="timeout", accuracy=0.1),
        row("oskl", "G=1", 0, status="killed", accuracy=None),
    ]
    folder = make(failed, repeats=4)
    line = lines(folder)["Baseline"]
    assert (line.n_ok, line.n_repeats, line.entries["accuracy"].n) == (1, 4, 1)
    assert line.entries["accuracy"].mean == pytest.approx(0.856)
    text = shown(folder)
    assert re.search(r"Baseline +1/4 +85\.6‡ ", text)
    message = (
        "Baseline: 1 of 4 repeats ok; error (repeat 1): ValueError: bad value; timeout (repeat 2); 1 not run so far"
    )
    assert message in " ".join(text.split())
    assert "OSKL G=1: 2 of 4 repeats ok; killed (repeat 0); 1 not run so far" in text
    assert text.count("3 of 4 repeats ok; 1 not run so far") == 1, "methods with the same words share a note"


def test_columns_and_data_sets_that_were_not_run_yet_are_shown(make: Make) -> None:
    datasets = {"magic": {"label": "MAGIC"}, "adult": {"label": "Adult"}}
    datasets |= {"mine": {"label": "yours", "source": {"format": "file", "path": "mine.csv"}}}
    folder = make([row("nc", "", 0), row("nc", "", 0, key="f", dataset="mine-abc123")], only=True, datasets=datasets)
    text = shown(folder)
    assert re.search(r"OSKL G=10 +0/3 +- +- +- ", text)
    assert "0 of 3 repeats ok; 3 not run so far" in text
    assert "No results yet: adult." in text
    assert len(re.findall(r"OSKL G=10 +0/3", text)) == 2, "the user's own file has another name in records"
    assert [block.label for block in table(folder).blocks] == ["MAGIC", "mine-abc123"]


def test_deviations_of_fits_that_a_time_limit_ended_are_explained(make: Make) -> None:
    ended = [row("nc", "", n, status="timeout") for n in range(3)]
    sentences = caption(table(make(ended, only=True, algorithms={"nc": {}}, **ALONE)))
    assert sentences[0].startswith("Mean ± standard deviation")


def test_a_table_where_all_failed(make: Make) -> None:
    failed = [row("nc", "", 0, status="error", accuracy=None, sparsity=None, n_support=None, fit_time_s=None)]
    folder = make(failed, only=True, algorithms={"nc": {}}, repeats=1, **ALONE)
    assert re.search(r"nc +0/1", shown(folder))
    assert "No repeat has a value." in caption(table(folder))
    assert report(folder, console=quiet(), formats=["csv"]) == [folder / "report" / "table.csv"]


def test_without_published_numbers_there_are_no_columns_of_them(make: Make) -> None:
    rows = [row("nc", "", repeat, log_loss=0.3, auc=0.9) for repeat in range(3)]
    folder = make(rows, **ALONE)
    block = document(table(folder)).grids[0]
    heads = ["Accuracy (%)", "Log loss", "Sparsity (%)", "Support vectors", "Training time (s)"]
    assert block.header == ["MAGIC", "ok", *heads]
    assert [line[3].strip() for line in block.rows[:2]] == ["0.300 ± 0.000", "-"]
    assert "paper" not in shown(folder)
    assert "Log loss" not in " ".join(document(table(make(rows))).grids[0].header), "table 3 has no log loss"


def test_no_number_is_cut_off(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def widest(text: str) -> int:
        return max(len(line.rstrip()) for line in text.partition("MAGIC")[2].splitlines())

    folder = make()
    text = shown(folder, width=20)
    assert not {"\x1b", "…"} & {*text}
    assert 100 < widest(text) <= 120
    for label, line in lines(folder).items():
        mean = f"{100 * (line.entries['accuracy'].mean or 0):.1f}"
        assert re.search(rf"{re.escape(label)} +3/3 +{mean} ± 0\.2[‡ ] .* 3,441 ± 1 .* 0\.500 ± 0\.000", text)
    monkeypatch.setenv("TERM", "xterm")
    text = shown(folder, width=116, force_terminal=True, no_color=True, color_system=None)
    assert len(re.findall(r"^\S.* 3/3 .* ± .* ± .* ± .* ± .*x *$", text, flags=re.MULTILINE)) == len(ACCURACIES)
    assert len(re.findall(r"^  paper .* ± .* ± .*,?\d+ .* ± \d", text, flags=re.MULTILINE)) == len(ACCURACIES)


NUMBER = re.compile(r"[\d,.]+(?: ± [\d,.]+)?[‡†§~*]*")


@pytest.mark.parametrize("name", ["oskl_magic", "l1_mnist49", "defaults"])
@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_narrow_table_omits_columns_and_breaks_no_number(
    name: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    console, made = Console(width=width), document(table(REFERENCE / name))
    with console.capture() as capture:
        show(made, console)
    text = capture.get()
    assert max(map(len, text.splitlines())) <= width
    omitted = " ".join(text.split()).partition("Omitted at this width: ")[2].partition("; format=md")[0].split(", ")
    numbers = set(NUMBER.findall(text))
    for grid in made.grids:
        assert not {"Accuracy (%)", "Support vectors"} & {*omitted}
        for place, head in enumerate(grid.header[1:], 1):
            for row in grid.rows if heading(grid.header, place) not in omitted else ():
                cells = {cell := row[place].strip()}
                if place in grid.times and "spread of times" in omitted:  # of this grid, or of another
                    cells.add(cell.partition(" ± ")[0])
                assert not NUMBER.fullmatch(cell) or cells & numbers, (head, cell)
    if width == 120 and name == "oskl_magic":
        assert omitted == [""]
    elif width == 80 and name != "l1_mnist49":
        assert omitted[0] == "spread of times"


def test_verdicts_are_colours_of_a_terminal_unless_no_color_is_set(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    values = enumerate((0.8, 0.85, 0.88))  # statistically compatible with 0.823 +- 0.003
    off = [row("nc", "", n, accuracy=0.5) for n in range(3)]
    folder = make([*off, *(row("oskl", "G=10", n, accuracy=value) for n, value in values)])
    text = shown(folder, force_terminal=True, color_system="standard")
    assert re.search(r"\x1b\[1;31m *-35\.8\*", text)
    assert re.search(r"\x1b\[2;36m *\+2\.0~°", text)
    monkeypatch.setenv("NO_COLOR", "1")
    assert not re.search(r"\x1b\[[\d;]*3[1-7]m", shown(folder, force_terminal=True, color_system="standard"))


def test_csv_has_a_row_a_metric_with_all_digits(make: Make) -> None:
    folder = make([row("nc", "", repeat, accuracy=0.849) for repeat in range(3)])
    report(folder, console=quiet(), formats=["csv"])
    rows = list(csv.DictReader((folder / "report" / "table.csv").read_text("utf-8").splitlines()))
    assert len(rows) == 4 * len(ACCURACIES)
    accuracy, time = (
        {(r["algorithm"], r["metric"]): r for r in rows}["nc", name] for name in ("accuracy", "fit_time_s")
    )
    texts = [accuracy[name] for name in ("n_ok", "n_repeats", "n", "verdict", "ratio")]
    assert texts == ["3", "3", "3", "differs, unexplained", ""]
    assert [accuracy[name] for name in ("published_mean", "published_std")] == ["0.858", "0.004"]
    assert float(accuracy["difference"]) == 0.849 - 0.858
    assert (float(time["ratio"]), time["difference"]) == (11.8 / 0.5, "")


BUDGETS: dict[str, Any] = {"experiment": "budget_magic", "algorithms": {"forgetron": {"label": "Forgetron"}}}
"""Of tables 4 and 5 of zhang2013icml."""


def test_another_table_of_the_paper(make: Make) -> None:
    rows = [row("forgetron", "budget=962", 0, last_accuracy=0.76)]
    folder = make(rows, only=True, **BUDGETS, sweep={"forgetron": {"budget": [962]}})

    def printed(number: str | None, metric: str) -> list[str | None]:
        matches = [line.matches.get(metric) for line in table(folder, number).blocks[0].lines]
        return [match.printed.mean if match else None for match in matches]

    assert printed(None, "last_accuracy") == printed("4", "last_accuracy") == ["76.3"]
    assert [metric.name for metric in table(folder, "4").blocks[0].metrics] == ["last_accuracy", "fit_time_s"]
    assert (printed("4", "accuracy"), printed("5", "accuracy")) == ([None], ["82.9"])
    with pytest.raises(KlrBenchError, match=r"table=9: expected a table of a paper that names .* Known: 2, 3, 4, 5\."):
        table(folder, "9")


def test_a_run_that_ended_before_its_first_cell_does_not_count(tmp_path: Path) -> None:
    assert not was_run(write(tmp_path / "empty", [], {}))
    assert not was_run(tmp_path)
    assert was_run(REFERENCE / "oskl_magic")


def test_what_cannot_be_reported_is_refused(make: Make, tmp_path: Path) -> None:
    folder = make(**ALONE)
    (tmp_path / "taken").write_text("a file")
    for where, options, message in (
        (folder.with_name("demos"), {}, r"no records\.csv .*no experiment of this name\. Did you mean 'demo'\?"),
        (write(tmp_path / "empty", [], {}), {}, r"the file has no rows\. Create them with: klr-bench run"),
        (folder, {"formats": ["md", "texx"]}, r"format: unknown value 'texx'\. Did you mean 'tex'\?"),
        (
            folder,
            {"output": tmp_path / "taken", "formats": ["md"]},
            r"taken: expected a folder, got a file\. .*output=",
        ),
    ):
        with pytest.raises(KlrBenchError, match=message):
            report(where, console=quiet(), **options)
    with pytest.raises(KlrBenchError, match=r"table=3: expected a table of a paper that names demo\."):
        table(folder, "3")
    assert not (folder / "report").exists()


def test_the_import_is_quick() -> None:
    heavy = "{'pandas', 'matplotlib', 'numpy', 'rich'}"
    code = f"import sys, klr_bench.report; sys.exit(len({heavy} & set(sys.modules)))"
    root = Path(__file__).resolve().parents[2]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0


@given(st.lists(st.one_of(st.integers(1, 1000), st.just("cv")), min_size=1, max_size=6, unique=True))
def test_variants_keep_the_order_of_the_sweep(values: list[int | str]) -> None:
    config = configuration(CONFIG | {"sweep": {"oskl": {"G": values}}})
    manifest = parse(Manifest, {"experiment": "demo", "config": config})
    methods = manifest.columns(next(iter(manifest.config.datasets)))
    assert sorted(methods[::-1], key=manifest.order) == methods
    unknown = [("oskl", Variant({"G": 2000})), ("oskl", Variant({"G": 10000})), ("zzz", Variant())]
    assert sorted([*unknown, *methods], key=manifest.order) == [*methods, *unknown]


def test_earlier_records_lack_columns(make: Make) -> None:
    folder = make([row("nc", "", 0)])
    path = folder / "records.csv"
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    frame.drop(columns=["last_accuracy", "ece"]).to_csv(path, index=False)
    assert lines(folder)["Baseline"].entries["last_accuracy"].mean is None


def test_the_time_to_final_accuracy(make: Make) -> None:
    rises, wavers = (0.5, 0.796, 0.795, 0.8), (0.8, 0.79, 0.7, 0.71)  # 0.795 is within half a point, 0.794 is not
    for repeat, accuracies in enumerate((rises, wavers)):
        points = [(t, 0.1 * t, "accuracy", value) for t, value in enumerate(accuracies, 1)]
        folder = make([row("nc", "", repeat)], only=True, traces=[*points, (9, 9.0, "n_support", 3.0)])
    limited = row("oskl", "G=1", 0, status="timeout")
    make([limited], only=True, traces=points, metrics=["accuracy", "settled_s"])
    text = shown(folder)
    assert "final accuracy (s)" in " ".join(text.split())
    assert "0.300 ± 0.141" in text, "0.2 and 0.4 s"
    assert "at most 0.5 percentage points below its final" in " ".join(text.split())
    assert lines(folder)["OSKL G=1"].entries["accuracy"].mean is not None
    assert lines(folder)["OSKL G=1"].entries["settled_s"].mean is None, "its last checkpoint is not its end"
    assert "final accuracy" not in shown(make(metrics=["accuracy"]))


def test_borrowed_budgets_stand_beside_the_papers_own(make: Make) -> None:
    ours = [3460, 1830, 970, 410]
    rows = [row("forgetron", f"budget={budget}", 0, accuracy=0.83, last_accuracy=0.76) for budget in ours]
    changes = BUDGETS | {"sweep": {"forgetron": {"budget": ours}}, "budget": "from:oskl_magic/oskl"}

    def beside(**more: Any) -> list[str | None]:
        found = table(make(rows, only=True, **changes | more)).blocks[0].lines
        published = [line.matches.get("last_accuracy") for line in found]
        return [number and number.printed.mean for number in published]

    assert beside() == ["78.2", "76.7", "76.3", "75.5"]
    assert beside(budget=ours) == [None] * 4, "budgets that are given are compared as they are"
    assert beside(sweep={"forgetron": {"budget": [*ours, 200]}})[:4] == [None] * 4, "which of five is meant?"


def test_an_experiment_asks_for_its_columns(make: Make) -> None:
    rows = [row("nc", "", repeat, log_loss=0.3, brier=0.1, ece=0.02, auc=0.9) for repeat in range(3)]
    asked = ["auc", "accuracy", "ece", "brier", "last_accuracy", "auc"]
    block = document(table(make(rows, metrics=asked, **ALONE))).grids[0]
    assert block.header == ["MAGIC", "ok", "AUC", "Accuracy (%)", "ECE", "Brier score"], "no row has a last accuracy"
    assert [text.strip() for text in block.rows[0][2:5]] == ["0.900 ± 0.000", "85.8 ± 0.2‡", "0.020 ± 0.000"]


def test_a_file_is_written_only_if_its_content_changes(make: Make) -> None:
    folder = make([row("nc", "", 0)], only=True)
    paths = report(folder, console=quiet(), formats=["md", "csv"])
    stamps = {path: path.stat().st_mtime_ns for path in paths}
    assert report(folder, console=quiet(), formats=["md", "csv"]) == paths
    assert {path: path.stat().st_mtime_ns for path in paths} == stamps
    make([row("nc", "", 0, accuracy=0.5)], only=True)
    assert report(folder, console=quiet(), formats=["md", "csv"]) == paths
    assert all(path.stat().st_mtime_ns > stamps[path] for path in paths if path.suffix in (".md", ".csv"))


def test_a_metric_of_the_users_own(make: Make) -> None:
    rows = [row("nc", "", repeat, n_trees=10 + repeat) for repeat in range(3)]
    metrics = {"n_trees": Metric("n_trees", "Trees", "count").description()}
    folder = write(make(), rows, CONFIG | ALONE | {"metrics": ["n_trees"]}, own_metrics=metrics)
    block = document(table(folder)).grids[0]
    assert (block.header, block.rows[0][2].strip()) == (["MAGIC", "ok", "Trees"], "11 ± 1")


def test_on_a_terminal_the_notes_are_no_longer_than_the_table_and_the_longest_are_omitted() -> None:
    notes = ["Short.", "some words " * 30, "more words " * 50]
    for n_rows, width, omitted in ((3, 80, 1), (30, 80, 0), (3, 40, 2)):
        text = Document("Title", [Grid(["name", "value"], [["a", "1"]] * n_rows)], notes)
        file = io.StringIO()
        show(text, PlainConsole(file=file, width=width, force_terminal=True, color_system=None))
        printed = " ".join(file.getvalue().split())
        assert [note.strip() in printed for note in notes] == [True, omitted < 2, omitted < 1]
        assert ("format=md shows all" in printed) == bool(omitted)
    file = io.StringIO()
    show(text, PlainConsole(file=file, width=40))
    assert all(note.strip() in " ".join(file.getvalue().split()) for note in notes), "a file has them all"
