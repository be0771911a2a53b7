"""The best methods of a column, and those not distinguishable from them, are marked in every format."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from klr_bench.parsing import parse
from klr_bench.report import report
from klr_bench.report.load import read_results
from klr_bench.report.measured import measure
from klr_bench.report.papers.match import Source
from klr_bench.report.papers.model import Paper
from klr_bench.report.render.caption import caption
from klr_bench.report.significance import MOST_LINES, Mark, Marks
from klr_bench.report.table import Table, build
from klr_bench.results.store import Record
from tests.report.folders import quiet, record, shown, table, write
from tests.report.statistics import reference

ACCURACIES = {
    "nc": [0.90, 0.91, 0.89, 0.92, 0.905],
    "margin": [0.899, 0.907, 0.892, 0.915, 0.906],
    "oskl": [0.80, 0.83, 0.79, 0.81, 0.80],
}
"""The second method is not distinguishable from the first, the third one is."""
PAPER = {"title": "A paper", "authors": "Me", "venue": "Here", "year": 2026, "reference": "Me (2026)"}
SIZES = {"n_train": 80, "n_test": 20}


def rows(
    values: dict[str, Sequence[float | None]], metric: str = "accuracy", lam: str = "", **more: Any
) -> list[Record]:
    return [
        record(name, lam, repeat, **({"dataset": "moons", metric: value, "fit_time_s": 0.5 + repeat} | SIZES | more))
        for name, of_repeats in values.items()
        for repeat, value in enumerate(of_repeats)
    ]


def made(folder: Path, records: Sequence[Record], split: dict[str, Any] | None = None, **config: Any) -> Path:
    """Write results; by default the manifest does not say how they are split, which counts as split again."""
    datasets = {"moons": {"label": "Moons"} | ({"split": split} if split else {})}
    asked = {"title": "Marks", "repeats": 5, "datasets": datasets, "algorithms": {}, "sweep": {}, "experiment": "demo"}
    return write(folder / "demo", records, asked | config)


def marks(built: Table, metric: str = "accuracy") -> dict[str, Mark]:
    (block,) = built.blocks
    return {algorithm: mark for (algorithm, _), mark in block.marks.get(metric, Marks()).lines.items()}


def places(built: Table, metric: str = "accuracy") -> dict[str, str]:
    return {algorithm: mark.place for algorithm, mark in marks(built, metric).items()}


@pytest.mark.parametrize(
    ("split", "ratio"),
    [
        ({"test_size": 0.2}, 0.25),
        ({"folds": 5}, 0.25),
        ({"n_test": 20, "n_train": 80}, 0.25),
        ({"official": True}, 0.0),
        ({"n_train": 80}, 0.0),
        ({"runs": [[80, 1], [20, 1]]}, 0.0),
        (None, 0.25),
        ({"unheard_of": 3}, 0.25),
    ],
)
def test_marks_are_those_of_a_slow_reference(tmp_path: Path, split: dict[str, Any] | None, ratio: float) -> None:
    found = marks(table(made(tmp_path, rows(ACCURACIES), split)))
    pairs = list(combinations(ACCURACIES, 2))
    compared = [
        reference.interval([a - b for a, b in zip(ACCURACIES[i], ACCURACIES[j], strict=True)], ratio, 0.95)
        for i, j in pairs
    ]
    adjusted = reference.holm([p for *_, p in compared])
    assert found.pop("nc") == Mark("best")
    for (i, other), (mean, low, high, p), p_holm in zip(pairs, compared, adjusted, strict=True):
        if i == "nc":
            mark = found.pop(other)
            assert mark.place == ("alike" if p_holm >= 0.05 else "")
            numbers = (mark.n, mark.difference, mark.low, mark.high, mark.p, mark.p_holm)
            assert numbers == pytest.approx((5, -mean, -high, -low, p, p_holm), rel=1e-9)
    assert found == {}


def test_the_lowest_loss_is_the_best(tmp_path: Path) -> None:
    built = table(made(tmp_path, rows(ACCURACIES, "log_loss")))
    assert places(built, "log_loss") == {"oskl": "best", "margin": "", "nc": ""}
    assert all((mark.difference or 0) >= 0 for mark in marks(built, "log_loss").values())


def test_times_memory_and_metrics_without_a_direction_have_no_marks(tmp_path: Path) -> None:
    unmarked = ["fit_time_s", "n_updates", "peak_memory_mb", "load", "objective", "setup_time_s"]
    records = rows(ACCURACIES, pass_time_s=0.1)
    for number, one in enumerate(records):  # no column is constant
        one.metrics.update({name: number for name in ("fit_time_s", "n_updates", "peak_memory_mb", "objective")})
        one.metrics["load"] = 0.01 * number
    built = table(made(tmp_path, records, metrics=[*unmarked, "accuracy"]))
    assert list(built.shown) == [*unmarked, "accuracy"]
    assert list(built.blocks[0].marks) == ["accuracy"]


SOME = [0.9, 0.8, 0.7]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"nc": SOME}, {}),
        ({"nc": SOME, "oskl": SOME}, {}),
        ({"nc": SOME, "oskl": SOME, "margin": [0.9, 0.8, 0.6]}, {"nc": "best", "oskl": "best", "margin": "alike"}),
    ],
)
def test_equal_means_are_all_the_best_but_not_in_a_constant_column(tmp_path: Path, values: Any, expected: Any) -> None:
    built = table(made(tmp_path, rows(values)))
    assert places(built) == expected
    assert any("‡" in line for line in caption(built)) == bool(expected)


OTHER_SEED = [*rows({"nc": ACCURACIES["nc"]}, seed=0), *rows({"oskl": ACCURACIES["oskl"]}, seed=1)]


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        (rows({name: values[:1] for name, values in ACCURACIES.items()}), "1 repeat in common; a comparison needs"),
        (rows({name: values[:2] for name, values in ACCURACIES.items()}), "2 repeats in common; a comparison needs"),
        (OTHER_SEED, "0 repeats in common; a comparison needs at least 3"),
        (rows({"nc": [0.3, 0.4, 0.5], "oskl": [0.3, math.inf, 0.9]}, "log_loss"), "some values are infinite"),
        (rows(ACCURACIES, n_train=None), "the numbers of training and test rows are not known"),
        (
            [one for G in range(MOST_LINES + 1) for one in rows({"nc": [0.5 + 0.001 * G] * 3}, lam=f"G={G}")],
            f"{MOST_LINES + 1} methods; at most {MOST_LINES} are compared",
        ),
    ],
)
def test_what_cannot_be_compared_has_a_reason(tmp_path: Path, records: list[Record], reason: str) -> None:
    built = table(made(tmp_path, records))
    ((_, of_metric),) = built.blocks[0].marks.items()
    found = list(of_metric.lines.values())
    assert sorted(mark.place for mark in found) == [*[""] * (len(found) - 1), "best"]
    assert {mark.p for mark in found} == {None}
    sentences = caption(built)
    assert "‡ (bold): the best mean of a column." in sentences
    assert any(line.startswith(f"Not compared with the best on Moons: {reason}") for line in sentences)


def test_only_repeats_that_succeeded_for_both_are_compared(tmp_path: Path) -> None:
    records = [*rows(ACCURACIES), record("nc", "", 5, dataset="moons", accuracy=0.1, **SIZES)]
    failed = [record("oskl", "", n, dataset="moons", status="timeout", accuracy=0.9, **SIZES) for n in range(3)]
    built = table(made(tmp_path, [*records, *failed]))
    found = marks(built)
    assert found["margin"].place == "best"
    assert (found["nc"].n, found["oskl"].n) == (5, 2)
    assert found["nc"].difference == pytest.approx(0.0012)
    assert (found["oskl"].place, found["oskl"].p) == ("", None)
    reason = "1 of 2 methods (2 repeats in common; a comparison needs at least 3)"
    assert f"Not compared with the best on Moons: {reason}." in caption(built)


def test_in_a_table_of_parameter_values_methods_are_compared_in_their_column(tmp_path: Path) -> None:
    worse = {name: [value - 0.3 for value in values] for name, values in ACCURACIES.items()}
    results = read_results(made(tmp_path, rows(worse, lam="lam=0.5") + rows(ACCURACIES, lam="lam=0.2")))
    by_lam = parse(Paper, PAPER | {"tables": {"1": {"title": "Results", "columns": "lam"}}})
    built = build(measure(results), [Source("a paper", by_lam, [], ["1"])])
    found = {
        (name, variant["lam"]): mark.place for (name, variant), mark in built.blocks[0].marks["accuracy"].lines.items()
    }
    expected = zip(ACCURACIES, ("best", "alike", ""), strict=True)
    assert found == {(name, lam): place for name, place in expected for lam in (0.5, 0.2)}
    assert any(line.startswith("‡ (bold): the best mean of a metric in its column; †") for line in caption(built))


def test_the_marks_are_in_every_format(tmp_path: Path) -> None:
    folder = made(tmp_path, rows(ACCURACIES))
    report(folder, console=quiet(), formats=["md", "tex", "csv"])
    files = {kind: (folder / "report" / f"table.{kind}").read_text(encoding="utf-8") for kind in ("md", "tex", "csv")}
    text = shown(folder)
    for line in (r"nc +5/5 +90\.5 ± 1\.1‡ ", r"margin +5/5 +90\.4 ± 0\.9† ", r"oskl +5/5 +80\.6 ± 1\.5  "):
        assert re.search(line, text), line
    for cell in ("| **90.5 ± 1.1‡** |", "| 90.4 ± 0.9† |", "| 80.6 ± 1.5 |"):
        assert cell in re.sub(" +", " ", files["md"])
    for cell in (r"& \textbf{90.5 $\pm$ 1.1$^\ddagger$} &", r"& 90.4 $\pm$ 0.9$^\dagger$ &", r"& 80.6 $\pm$ 1.5 &"):
        assert cell in files["tex"]
    assert not re.search("[†‡]", files["tex"])
    values = {row["algorithm"]: row for row in csv.DictReader(io.StringIO(files["csv"])) if row["metric"] == "accuracy"}
    assert [values[name]["best"] for name in ACCURACIES] == ["best", "alike", ""]
    mark = marks(table(folder))["oskl"]
    numbers = [float(values["oskl"][name]) for name in ("difference_to_best", "low", "high", "p_holm")]
    assert numbers == [mark.difference, mark.low, mark.high, mark.p_holm]
    assert {values["nc"][name] for name in ("difference_to_best", "low", "high", "p_holm")} == {""}


def test_on_a_terminal_the_marks_are_more_than_a_style(tmp_path: Path) -> None:
    class Ascii(io.StringIO):
        encoding = "ascii"

    folder = made(tmp_path, rows(ACCURACIES))
    text = shown(folder, force_terminal=True, color_system="standard", width=120)
    assert "\x1b[1m90.5 ± 1.1‡\x1b[0m" in text
    assert "\x1b[4m90.4 ± 0.9†\x1b[0m" in text
    file = Ascii()
    report(folder, console=Console(file=file, width=120))
    text = " ".join(file.getvalue().split())
    for words in ("90.5 +- 1.1^ ", "90.4 +- 0.9= ", "^ (bold): the best mean of a column; =: not distinguishable"):
        assert words in text
