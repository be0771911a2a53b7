"""The report says what the rows say, beside what the paper says, and hides no failure."""

from __future__ import annotations

import csv
import re
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klr_bench.errors import KlrBenchError
from klr_bench.metrics.labels import METRICS
from klr_bench.metrics.metric import Metric
from klr_bench.parsing import parse
from klr_bench.report import report
from klr_bench.report.labels import line_label, path_label
from klr_bench.report.manifest import Manifest
from klr_bench.report.render.caption import caption
from klr_bench.report.render.layout import document
from klr_bench.report.table import Line
from klr_bench.results.store import Bin, Checkpoint, Record
from klr_bench.results.variants import Variant
from tests.report.folders import Make, quiet, record, shown, table, write

ACCURACIES = {
    ("nc", ""): 0.858,
    ("pegasos", "lam=0.0001"): 0.84,
    ("pegasos", "lam=cv"): 0.85,
    ("oskl", "G=1"): 0.855,
    ("oskl", "G=10"): 0.823,
}
CONFIG: dict[str, Any] = {
    "experiment": "oskl_magic",
    "title": "Online sparse kernel learning",
    "repeats": 3,
    "datasets": {"magic": {"label": "MAGIC"}},
    "algorithms": {"nc": {"label": "Baseline"}, "pegasos": {"label": "Pegasos"}, "oskl": {"label": "OSKL"}},
    "sweep": {"oskl": {"G": [1, 10]}, "pegasos": {"lam": [1e-4, "cv"]}},
}
ALONE = {"experiment": "demo"}
"""An experiment that no paper names."""


def row(algorithm: str, variant: str, repeat: int, **changes: Any) -> Record:
    values: dict[str, Any] = {
        "key": f"magic-{algorithm}-{variant}-{repeat}",
        "dataset": "magic",
        "accuracy": ACCURACIES.get((algorithm, variant), 0.8) + 0.002 * (repeat - 1),
        "sparsity": 0.774,
        "n_support": 3440 + repeat,
        "fit_time_s": 0.5,
    }
    return record(algorithm, variant, repeat, **(values | changes))


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Return a function that makes a results folder: the default rows with some replaced, or other rows."""

    def folder(
        rows: Sequence[Record] = (),
        *,
        only: bool = False,
        traces: Sequence[Checkpoint] = (),
        bins: Sequence[Bin] = (),
        **config: Any,
    ) -> Path:
        default = [] if only else [row(*column, repeat) for column in ACCURACIES for repeat in range(3)]
        place = tmp_path / "results" / "demo"
        return write(place, [*default, *rows], CONFIG | config, traces=traces, bins=bins)

    return folder


def lines(folder: Path) -> dict[str, Line]:
    return {line_label(line): line for line in table(folder).blocks[0].lines}


def test_lines_are_in_the_order_of_the_configuration_and_the_unknown_after_them(make: Make) -> None:
    extra = [row("oskl", "G=5", 0), row("oskl", "G=2", 0), row("forgetron", "", 0)]
    folder = make(extra, sweep=CONFIG["sweep"] | {"oskl": {"G": [10, 1]}})
    labels = [
        "Baseline",
        "Pegasos lam=0.0001",
        "Pegasos lam=cv",
        "OSKL G=10",
        "OSKL G=1",
        "OSKL G=2",
        "OSKL G=5",
    ]
    assert list(lines(folder)) == [*labels, "forgetron"]


def test_a_cell_is_mean_and_std_beside_the_published_number(make: Make) -> None:
    line = lines(make())["OSKL G=1"]
    cell, match = line.entries["accuracy"], line.matches["accuracy"]
    assert (cell.n, match.printed.mean, match.printed.std) == (3, "85.5", "0.5")
    assert cell.mean == pytest.approx(0.855)
    assert cell.std == pytest.approx(0.002), "of a sample: n - 1"
    assert match.difference == pytest.approx(0.0)
    assert match.outside is False


def test_the_mark_stands_where_ours_is_outside_the_published_spread(make: Make) -> None:
    folder = make([row("nc", "", repeat, accuracy=0.849) for repeat in range(3)])
    block = document(table(folder)).grids[0]
    assert [text.strip() for text in block.rows[0][:4]] == ["Baseline", "3/3", "84.9 ± 0.0", "-0.9*"]
    assert [text.strip() for text in block.rows[1][:4]] == ["paper", "", "85.8 ± 0.4", ""]
    assert block.rows[4][3].strip() == "+1.0", "within twice the published 0.7"


def test_times_have_a_ratio_and_no_mark(make: Make) -> None:
    assert lines(make())["Baseline"].matches["fit_time_s"].ratio == pytest.approx(11.8 / 0.5)
    block = document(table(make())).grids[0]
    assert block.header[-2:] == ["Training time (s)", "ratio"]
    assert [text.strip() for text in block.rows[0][-2:]] == ["0.500 ± 0.000", "24x"]
    assert block.rows[1][-2].strip() == "11.8 ± 0.0"


HERE = {"host": "here", "cpu": "A CPU, 1 thread", "load": 0.01}


def of_all(**conditions: Any) -> list[Record]:
    return [row(*column, repeat, **conditions) for column in ACCURACIES for repeat in range(3)]


@pytest.mark.parametrize(("of_records", "machine"), [(HERE, "here, A CPU, 1 thread"), ({}, "A CPU & co")])
def test_the_caption_names_the_machine_of_the_records_or_of_the_manifest(
    make: Make, of_records: dict[str, Any], machine: str
) -> None:
    said = caption(table(make(of_all(**of_records))))
    assert any(line.startswith(f"Training times were measured on {machine}; ratio:") for line in said)
    assert not any("cannot be compared" in line for line in said)


def test_the_name_of_a_machine_is_printed_without_what_is_not_printable(make: Make) -> None:
    said = caption(table(make(of_all(**HERE | {"host": "\x1b[31mhere\n" + 1000 * "x"}))))
    (line,) = [line for line in said if line.startswith("Training times were measured on ")]
    assert "here" in line
    assert line.isprintable()
    assert len(line) < 500


ELSEWHERE = (
    "Times of different machines, which cannot be compared with the others; they have no ratio: Baseline on MAGIC"
)


@pytest.mark.parametrize(
    ("one_repeat", "said"),
    [
        (HERE | {"host": "there"}, f"{ELSEWHERE} (there, A CPU, 1 thread)."),
        ({}, f"{ELSEWHERE} (a machine that the records do not name)."),
        (
            HERE | {"load": 0.34},
            "Others used more than 10 % of the machine when fits began: Baseline on MAGIC (34 %); these times cannot "
            "be compared and have no ratio.",
        ),
    ],
)
def test_times_of_other_conditions_have_no_ratio_and_are_named(
    make: Make, one_repeat: dict[str, Any], said: str
) -> None:
    folder = make([*of_all(**HERE), row("nc", "", 2, **one_repeat)])
    assert lines(folder)["Baseline"].matches["fit_time_s"].ratio is None
    assert lines(folder)["Baseline"].matches["accuracy"].difference is not None
    assert lines(folder)["OSKL G=1"].matches["fit_time_s"].ratio is not None
    assert said in caption(table(folder))


def test_times_are_in_the_unit_of_the_paper(make: Make) -> None:
    folder = make([row("nc", "", 0, key="c", dataset="covtype", fit_time_s=90.0)], only=True, datasets={"covtype": {}})
    block = document(table(folder)).grids[0]
    assert block.header[-2] == "Training time (min)"
    assert (block.rows[0][-2].strip(), block.rows[1][-2].strip()) == ("1.50", "761 ± 47")


def test_one_repeat_has_no_standard_deviation(make: Make) -> None:
    folder = make([row("nc", "", 0)], only=True, repeats=1)
    assert lines(folder)["Baseline"].entries["accuracy"].std is None
    text = shown(folder)
    assert "One repeat, so no standard deviation." in text
    assert re.search(r"Baseline +1/1 +85\.6 +-0\.2 ", text)


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
    message = "Baseline: 1 of 4 repeats ok; error (repeat 1): ValueError: bad value; timeout (repeat 2); 1 not run"
    assert message in " ".join(text.split())
    assert "OSKL G=1: 2 of 4 repeats ok; killed (repeat 0); 1 not run" in text
    assert "OSKL G=10: 3 of 4 repeats ok; 1 not run" in text


def test_columns_and_data_sets_that_were_not_run_yet_are_shown(make: Make) -> None:
    datasets = {"magic": {"label": "MAGIC"}, "adult": {"label": "Adult"}}
    datasets |= {"mine": {"label": "yours", "source": {"format": "file", "path": "mine.csv"}}}
    folder = make([row("nc", "", 0), row("nc", "", 0, key="f", dataset="mine-abc123")], only=True, datasets=datasets)
    text = shown(folder)
    assert re.search(r"OSKL G=10 +0/3 +- +- +- ", text)
    assert "OSKL G=10: 0 of 3 repeats ok; 3 not run" in text
    assert "No results yet: adult." in text
    assert [block.label for block in table(folder).blocks] == ["MAGIC", "mine-abc123"]


def test_a_table_where_all_failed(make: Make) -> None:
    failed = [row("nc", "", 0, status="error", accuracy=None, sparsity=None, n_support=None, fit_time_s=None)]
    folder = make(failed, only=True, algorithms={"nc": {}}, repeats=1, **ALONE)
    text = shown(folder)
    assert re.search(r"nc +0/1", text)
    assert report(folder, console=quiet(), formats=["csv"]) == [folder / "report" / "table.csv"]


def test_without_published_numbers_there_are_no_columns_of_them(make: Make) -> None:
    rows = [row("nc", "", repeat, log_loss=0.3) for repeat in range(3)]
    folder = make(rows, **ALONE)
    block = document(table(folder)).grids[0]
    heads = ["Accuracy (%)", "Log loss", "Sparsity (%)", "Support vectors", "Training time (s)"]
    assert block.header == ["MAGIC", "ok", *heads]
    assert block.rows[0][3].strip() == "0.300 ± 0.000"
    assert block.rows[1][3].strip() == "-"
    assert "paper" not in shown(folder)
    assert "Log loss" not in " ".join(document(table(make(rows))).grids[0].header), "table 3 has no log loss"


def test_what_is_no_terminal_gets_plain_text_in_which_no_number_is_cut_off(make: Make) -> None:
    text = shown(make(), width=20)
    assert "\x1b" not in text
    assert "…" not in text
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 120
    for label, line in lines(make()).items():
        mean = line.entries["accuracy"].mean
        assert mean is not None
        assert re.search(rf"{re.escape(label)} +3/3 +{100 * mean:.1f} ± 0\.2[‡ ] .* 3,441 ± 1 +0\.500 ± 0\.000", text)


def test_columns_limits_the_width_of_what_is_no_terminal(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def widest() -> int:
        lines = shown(make(), width=60).partition("MAGIC")[2].splitlines()
        return max(len(line.rstrip()) for line in lines)

    assert widest() > 100
    monkeypatch.setenv("COLUMNS", "60")
    assert widest() <= 60


def test_the_table_fits_a_terminal_of_100_columns(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    text = shown(make(), width=100, force_terminal=True, no_color=True, color_system=None)
    assert len(re.findall(r"^\S.* 3/3 .* ± .* ± .* ± .* ± .*x *$", text, flags=re.MULTILINE)) == len(ACCURACIES)
    assert len(re.findall(r"^  paper .* ± .* ± .*,?\d+ .* ± \d", text, flags=re.MULTILINE)) == len(ACCURACIES)


def test_verdicts_are_colours_of_a_terminal_unless_no_color_is_set(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    values = {0: 0.8, 1: 0.85, 2: 0.88}  # statistically compatible with 0.823 +- 0.003
    folder = make(
        [row("nc", "", n, accuracy=0.5) for n in values] + [row("oskl", "G=10", n, accuracy=values[n]) for n in values]
    )
    text = shown(folder, force_terminal=True, color_system="standard")
    assert re.search(r"\x1b\[1;31m *-35\.8\*", text)
    assert re.search(r"\x1b\[36m *\+2\.0~", text)
    monkeypatch.setenv("NO_COLOR", "1")
    assert not re.search(r"\x1b\[[\d;]*3[1-7]m", shown(folder, force_terminal=True, color_system="standard"))


def test_markdown_is_a_table_in_every_row(make: Make) -> None:
    folder = make()
    (path,) = (p for p in report(folder, console=quiet(), formats=["md"]) if p.suffix == ".md")
    rows = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    assert len(rows) == 2 + 2 * len(ACCURACIES)
    assert {len(re.split(r"(?<!\\)\|", line)) for line in rows} == {11}
    texts = [[text.strip() for text in line.strip("|").split("|")] for line in rows]
    assert texts[0][:4] == ["MAGIC", "ok", "Accuracy (%)", "diff"]
    assert texts[2][:4] == ["Baseline", "3/3", "**85.8 ± 0.2‡**", "0.0"]
    assert texts[3][:3] == ["&emsp;paper", "", "85.8 ± 0.4"]


def test_csv_has_a_row_a_metric_with_all_digits(make: Make) -> None:
    folder = make([row("nc", "", repeat, accuracy=0.849) for repeat in range(3)])
    report(folder, console=quiet(), formats=["csv"])
    with (folder / "report" / "table.csv").open(encoding="utf-8", newline="") as file:
        rows = {(r["algorithm"], r["variant"], r["metric"]): r for r in csv.DictReader(file)}
    assert len(rows) == 4 * len(ACCURACIES)
    accuracy = rows["nc", "{}", "accuracy"]
    texts = [accuracy[name] for name in ("n_ok", "n_repeats", "n", "outside", "verdict")]
    assert texts == ["3", "3", "3", "True", "off, without a cause"]
    assert float(accuracy["difference"]) == statistics.fmean([0.849] * 3) - 0.858
    assert [accuracy[name] for name in ("published_mean", "published_std", "ratio")] == ["0.858", "0.004", ""]
    time = rows["nc", "{}", "fit_time_s"]
    assert (float(time["ratio"]), time["difference"], time["outside"]) == (11.8 / 0.5, "", "")
    assert rows["oskl", '{"G": 1}', "n_support"]["published_mean"] == "3443.0"


def budgets(**metrics: Any) -> tuple[list[Record], dict[str, Any]]:
    """Return a row of tables 4 and 5 of zhang2013icml, and the changes to the configuration."""
    changes: dict[str, Any] = {
        "experiment": "budget_magic",
        "algorithms": {"forgetron": {"label": "Forgetron"}},
        "sweep": {"forgetron": {"budget": [962]}},
    }
    return [row("forgetron", "budget=962", 0, **metrics)], changes


def test_another_table_of_the_paper(make: Make) -> None:
    rows, changes = budgets(last_accuracy=0.76)
    folder = make(rows, only=True, **changes)

    def printed(number: str | None, metric: str) -> list[str | None]:
        matches = [line.matches.get(metric) for line in table(folder, number).blocks[0].lines]
        return [match.printed.mean if match else None for match in matches]

    assert printed(None, "last_accuracy") == printed("4", "last_accuracy") == ["76.3"]
    assert [metric.name for metric in table(folder, "4").blocks[0].metrics] == ["last_accuracy", "fit_time_s"]
    assert (printed("4", "accuracy"), printed("5", "accuracy")) == ([None], ["82.9"])
    with pytest.raises(KlrBenchError, match=r"table=3: expected a table of zhang2013icml .*: 4, 5\."):
        table(folder, "3")
    with pytest.raises(KlrBenchError, match=r"table=9: expected"):
        table(folder, "9")


def test_what_cannot_be_reported_is_refused(make: Make, tmp_path: Path) -> None:
    folder, empty = make(**ALONE), write(tmp_path / "empty", [], CONFIG)
    with pytest.raises(KlrBenchError, match=r"table=3: the experiment demo is in no table of a paper\.yaml"):
        table(folder, "3")
    with pytest.raises(KlrBenchError, match=r"no records\.csv .*no experiment of this name\. Did you mean 'demo'\?"):
        report(folder.with_name("demos"), console=quiet())
    with pytest.raises(KlrBenchError, match=r"no rows in it\. Make some with: klr-bench run experiment=empty"):
        report(empty, console=quiet())
    formats = r"format: unknown value 'texx'\. Did you mean 'tex'\?"
    with pytest.raises(KlrBenchError, match=formats):
        report(folder, console=quiet(), formats=["md", "texx"])
    assert not (folder / "report").exists()
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(KlrBenchError, match=r"taken: expected a folder, got a file\. .*output="):
        report(folder, console=quiet(), formats=["md"], output=tmp_path / "taken")


def test_the_import_is_quick() -> None:
    heavy = "{'pandas', 'matplotlib', 'numpy', 'rich'}"
    code = f"import sys, klr_bench.report; sys.exit(len({heavy} & set(sys.modules)))"
    root = Path(__file__).resolve().parents[2]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0


@given(st.lists(st.one_of(st.integers(1, 1000), st.just("cv")), min_size=1, max_size=6, unique=True))
def test_variants_keep_the_order_of_the_sweep(values: list[int | str]) -> None:
    manifest = parse(Manifest, {"experiment": "demo", "config": CONFIG | {"sweep": {"oskl": {"G": values}}}})
    asked = manifest.columns()
    assert sorted(asked[::-1], key=manifest.order) == asked
    unknown = [("oskl", Variant({"G": 2000})), ("oskl", Variant({"G": 10000})), ("zzz", Variant())]
    assert sorted([*unknown, *asked], key=manifest.order) == [*asked, *unknown]


def test_records_of_before_there_were_all_columns(make: Make) -> None:
    folder = make([row("nc", "", 0)])
    path = folder / "records.csv"
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    frame.drop(columns=["last_accuracy", "ece"]).to_csv(path, index=False)
    assert table(folder).blocks[0].lines[0].entries["last_accuracy"].mean is None


def test_the_report_says_where_another_method_finds_more(make: Make) -> None:
    def said(folder: Path) -> list[str]:
        return [sentence for sentence in caption(table(folder)) if "the other methods have" in sentence]

    assert said(make()) == []
    found = {
        ("sbcw", 10): 0.2,
        ("sbcw", 30): 0.6,
        ("fgm", 10): 0.2,
        ("fgm", 20): 0.41,
        ("sofs", 30): 0.1,
        ("fgm", 40): 1.0,
    }
    rows = [
        row(name, f"n_features_to_select={p}", 0, n_selected=p, relevant_found=share)
        for (name, p), share in found.items()
    ]
    algorithms = {"sbcw": {"label": "SBCW"}, "fgm": {"label": "FGM"}, "sofs": {"label": "SOFS"}}
    sweep = {name: {"n_features_to_select": [10, 20, 30, 40]} for name in algorithms}
    config = {"algorithms": algorithms, "sweep": sweep, "experiment": "demo"}
    begin = (
        "MAGIC: the other methods have 3 points from 10 to 30 features. With the same number of features, SBCW finds "
        "at least as many of the relevant ones as"
    )
    folder = make(rows, only=True, **config)
    assert said(folder) == [f"{begin} 2 of these points, and fewer than 1: FGM at 20 (41.0 against 40.0 %)."]
    rows[3] = row("fgm", "n_features_to_select=20", 0, n_selected=20, relevant_found=0.4)
    assert said(make(rows, only=True, **config)) == [f"{begin} 3 of these points, and fewer than 0."]


def test_parameters_have_the_names_of_the_estimator(make: Make) -> None:
    algorithms = {"auxiliary": {"label": "Auxiliary"}}
    rows = [row("auxiliary", "aux_gamma=2; R=1", 0)]
    (line,) = table(make(rows, only=True, algorithms=algorithms, sweep={})).blocks[0].lines[-1:]
    assert (line_label(line), line.algorithm_label) == ("Auxiliary aux_gamma=2; R=1", "Auxiliary")
    assert path_label(line) == line_label(line)
    assert line.variant == {"aux_gamma": 2, "R": 1}


def test_each_metric_of_the_catalogue_has_an_entry(make: Make) -> None:
    assert list(lines(make())["Baseline"].entries) == list(METRICS)


def test_when_a_fit_had_nearly_its_final_accuracy(make: Make) -> None:
    rises, wavers = (0.5, 0.796, 0.795, 0.8), (0.8, 0.79, 0.7, 0.71)  # 0.795 is within half a point, 0.794 is not
    rows = [row("nc", "", 0), row("nc", "", 1), row("oskl", "G=1", 0)]
    for fitted, values in zip(rows, (rises, wavers), strict=False):
        points = [(t, 0.1 * t, "accuracy", value) for t, value in enumerate(values, 1)]
        folder = make([fitted], only=True, traces=[*points, (9, 9.0, "n_support", 3.0)])
    make(rows[2:], only=True, metrics=["accuracy", "settled_s"])
    text = shown(folder)
    assert "Settled" in text
    assert "0.300 ± 0.141" in text, "0.2 and 0.4 s"
    assert "at most 0.5 percentage points below its final" in text
    assert "Settled" not in shown(make(metrics=["accuracy"]))


def test_a_fit_that_a_time_limit_ended_has_not_settled(make: Make) -> None:
    points = [(t, 0.1 * t, "accuracy", 0.5) for t in (1, 2)]
    folder = make([row("nc", "", 0, status="timeout")], only=True, traces=points, metrics=["accuracy", "settled_s"])
    assert lines(folder)["Baseline"].entries["accuracy"].mean is not None
    assert lines(folder)["Baseline"].entries["settled_s"].mean is None


def test_the_size_of_a_data_set_stands_beside_the_papers(make: Make) -> None:
    sizes = {"n_train": 450000, "n_test": 131012, "n_features": 54}
    rows = [row("arow", "", 0, dataset="covtype_450k", error_rate=0.25, pass_time_s=None, **sizes)]
    config = {"experiment": "cw_covtype", "datasets": {"covtype_450k": {}}, "metrics": ["error_rate"]}
    folder = make(rows, only=True, **config)
    assert caption(table(folder))[-1] == (
        "covtype_450k: 450,000 training rows, 131,012 test rows, 54 features. "
        "Table 1 says of covtype: 54 features, 581,012 training rows, 12 non-zero entries per row."
    )
    (printed,) = [texts for texts in document(table(folder)).grids[0].rows if "24.61 ± 0.00" in texts[2]]
    assert printed[0] == "  paper"


PROBABLE: dict[str, Any] = {"log_loss": 0.3, "brier": 0.1, "ece": 0.02, "auc": 0.9}


def test_borrowed_budgets_stand_beside_the_papers_own(make: Make) -> None:
    _, changes = budgets()
    ours = [3460, 1830, 970, 410]
    rows = [row("forgetron", f"budget={budget}", 0, accuracy=0.83, last_accuracy=0.76) for budget in ours]
    changes |= {"sweep": {"forgetron": {"budget": ours}}, "budget": "from:oskl_magic/oskl"}

    def beside(**more: Any) -> list[str | None]:
        found = table(make(rows, only=True, **changes | more)).blocks[0].lines
        published = [line.matches.get("last_accuracy") for line in found]
        return [number and number.printed.mean for number in published]

    assert beside() == ["78.2", "76.7", "76.3", "75.5"]
    assert beside(budget=ours) == [None] * 4, "budgets that are given are compared as they are"
    assert beside(sweep={"forgetron": {"budget": [*ours, 200]}})[:4] == [None] * 4, "which of five is meant?"


def test_an_experiment_asks_for_its_columns(make: Make) -> None:
    rows = [row("nc", "", repeat, **PROBABLE) for repeat in range(3)]
    usual = ["accuracy", "log_loss", "sparsity", "n_support", "fit_time_s"]
    assert [metric.name for metric in table(make(rows, **ALONE)).blocks[0].metrics] == usual
    asked = ["auc", "accuracy", "ece", "brier", "last_accuracy", "auc"]
    block = document(table(make(rows, metrics=asked, **ALONE))).grids[0]
    assert block.header == ["MAGIC", "ok", "AUC", "Accuracy (%)", "ECE", "Brier score"], "no row has a last accuracy"
    assert [text.strip() for text in block.rows[0][2:5]] == ["0.900 ± 0.000", "85.8 ± 0.2‡", "0.020 ± 0.000"]


def test_published_numbers_of_variants(make: Make) -> None:
    changes: dict[str, Any] = {
        "experiment": "klr_rcv1",
        "datasets": {"rcv1": {"label": "RCV1"}},
        "algorithms": {"auxiliary": {"label": "Auxiliary"}, "pegasos": {"label": "Pegasos"}},
        "sweep": {"auxiliary": {"aux_gamma": [1.01, 2]}, "pegasos": {"lam": [1e-5, 1e-6]}},
    }
    columns = [("auxiliary", "aux_gamma=1.01"), ("auxiliary", "aux_gamma=2"), ("pegasos", "lam=1e-05")]
    rows = [row(*column, 0, key=f"{column}", dataset="rcv1", accuracy=0.98) for column in columns]
    found = table(make(rows, only=True, **changes))
    published = [line.matches.get("accuracy") for line in found.blocks[0].lines]
    assert [number and number.printed.mean for number in published] == ["0.9794", "0.9783", "0.9778", None]
    block = document(found).grids[0]
    assert [text.strip() for text in block.rows[1]][:4] == ["paper", "", "97.94", ""], "percents under percents"
    assert [text.strip() for text in block.rows[1]][4:] == ["96.36", "", "24,654", "20779", ""]


def test_a_stand_in_has_the_published_numbers_beside_it_and_nothing_else(make: Make) -> None:
    config: dict[str, Any] = {
        "experiment": "cw_epsilon50k",
        "datasets": {"epsilon_50k_generated": {"label": "Generated"}},
        "algorithms": {"arow": {"label": "AROW"}},
        "sweep": {},
        "metrics": ["error_rate", "fit_time_s"],
    }
    folder = make([row("arow", "", 0, dataset="epsilon_50k_generated", error_rate=0.9)], only=True, **config)
    match = table(folder).blocks[0].lines[0].matches["error_rate"]
    assert (match.printed.mean, match.difference, match.ratio, match.outside) == ("0.1105", None, None, None)
    block = document(table(folder)).grids[0]
    assert block.header == ["Generated", "ok", "Error rate (%)", "Training time (s)"]
    assert [text.strip() for text in block.rows[1]] == ["paper", "", "11.05 ± 0.04", "3506.0"]
    sentences = caption(table(folder))
    assert any(said.startswith("Generated stands in for the paper's epsilon_50k") for said in sentences)
    assert not any("diff:" in said or "ratio:" in said for said in sentences)


def test_a_file_is_written_only_if_its_content_changes(make: Make) -> None:
    folder = make([row("nc", "", 0)])
    paths = report(folder, console=quiet(), formats=["md", "csv"])
    stamps = {path: path.stat().st_mtime_ns for path in paths}
    assert len(stamps) >= 4
    assert report(folder, console=quiet(), formats=["md", "csv"]) == paths
    assert {path: path.stat().st_mtime_ns for path in paths} == stamps
    make([row("nc", "", 0, accuracy=0.5)])
    assert report(folder, console=quiet(), formats=["md", "csv"]) == paths
    assert all(path.stat().st_mtime_ns > stamps[path] for path in paths if path.suffix in (".md", ".csv"))


def test_a_metric_of_the_users_own(make: Make) -> None:
    rows = [row("nc", "", repeat, n_trees=10 + repeat) for repeat in range(3)]
    folder = make(rows, only=True, metrics=["n_trees"], **ALONE)
    write(
        folder,
        [],
        CONFIG | ALONE | {"metrics": ["n_trees"]},
        own_metrics={"n_trees": Metric("n_trees", "Trees", "count").described()},
    )
    block = document(table(folder)).grids[0]
    assert (block.header, block.rows[0][2].strip()) == (["MAGIC", "ok", "Trees"], "11 ± 1")
