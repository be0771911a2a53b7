"""The best of a column and what is not distinguishable from it are marked as the records say, in every format."""

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
from klr_bench.report.manifest import Column
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
"""The second is alike, the third is not."""
PAPER = {"title": "A paper", "authors": "Me", "venue": "Here", "year": 2026, "reference": "Me (2026)"}
SIZES = {"n_train": 80, "n_test": 20}
SPLIT = {"test_size": 0.2}


def rows(values: dict[str, Sequence[float | None]], metric: str = "accuracy", **more: Any) -> list[Record]:
    return [
        record(
            algorithm, "", repeat, **({"dataset": "moons", metric: value, "fit_time_s": 0.5 + repeat} | SIZES | more)
        )
        for algorithm, of_repeats in values.items()
        for repeat, value in enumerate(of_repeats)
    ]


def made(folder: Path, records: Sequence[Record], split: dict[str, Any] | None = SPLIT, **config: Any) -> Path:
    asked: dict[str, Any] = {"title": "Marks", "repeats": 5, "algorithms": {}, "sweep": {}, "experiment": "demo"}
    datasets = {"moons": {"label": "Moons"} | ({"split": split} if split else {})}
    return write(folder / "demo", records, asked | {"datasets": datasets} | config)


def marks(built: Table, metric: str = "accuracy") -> dict[str, Mark]:
    (block,) = built.blocks
    return {algorithm: mark for (algorithm, _), mark in block.marks.get(metric, Marks()).lines.items()}


def places(folder: Path, metric: str = "accuracy") -> dict[str, str]:
    return {algorithm: mark.place for algorithm, mark in marks(table(folder), metric).items()}


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


def test_of_a_loss_the_lowest_is_the_best(tmp_path: Path) -> None:
    folder = made(tmp_path, rows(ACCURACIES, "log_loss"))
    assert places(folder, "log_loss") == {"oskl": "best", "margin": "", "nc": ""}
    assert all((mark.difference or 0) >= 0 for mark in marks(table(folder), "log_loss").values())


def test_times_and_memory_and_what_has_no_direction_have_no_marks(tmp_path: Path) -> None:
    unmarked = ["fit_time_s", "n_updates", "peak_memory_mb", "load", "objective", "setup_time_s"]
    records = rows(ACCURACIES, pass_time_s=0.1)
    for number, one in enumerate(records):  # no column is constant
        one.metrics.update({"n_updates": number, "peak_memory_mb": 20.0 + number, "load": 0.01 * number})
        one.metrics.update({"objective": 3.0 + number, "fit_time_s": 0.5 + number})
    built = table(made(tmp_path, records, metrics=[*unmarked, "accuracy"]))
    assert list(built.shown) == [*unmarked, "accuracy"]
    assert list(built.blocks[0].marks) == ["accuracy"]


@pytest.mark.parametrize(("n", "repeats"), [(1, "1 repeat"), (2, "2 repeats")])
def test_too_few_repeats_are_said_and_nothing_is_told_apart(tmp_path: Path, n: int, repeats: str) -> None:
    folder = made(tmp_path, rows({name: values[:n] for name, values in ACCURACIES.items()}))
    built = table(folder)
    assert places(folder) == {"nc": "best", "margin": "", "oskl": ""}
    assert {mark.p for mark in marks(built).values()} == {None}
    sentence = (
        "‡ (bold): the best mean of a column. What is not distinguishable from it cannot be told: "
        f"{repeats}; a comparison needs at least 3."
    )
    assert sentence in caption(built)


def test_one_line_or_a_constant_column_has_no_marks(tmp_path: Path) -> None:
    assert places(made(tmp_path / "one", rows({"nc": ACCURACIES["nc"]}))) == {}
    constant = {name: [0.5, 0.6, 0.7] for name in ACCURACIES}
    built = table(made(tmp_path / "constant", rows(constant)))
    assert built.blocks[0].marks == {}
    assert not any("‡" in line for line in caption(built))


def test_equal_means_are_both_the_best(tmp_path: Path) -> None:
    values = {"nc": [0.9, 0.8, 0.7], "oskl": [0.9, 0.8, 0.7], "margin": [0.9, 0.8, 0.6]}
    assert places(made(tmp_path, rows(values))) == {"nc": "best", "oskl": "best", "margin": "alike"}


def test_only_repeats_that_both_ended_well_are_compared(tmp_path: Path) -> None:
    records = rows(ACCURACIES)
    records += [record("nc", "", 5, dataset="moons", accuracy=0.1, **SIZES)]  # that no other has
    failed = [
        record("oskl", "", repeat, dataset="moons", status="timeout", accuracy=0.9, **SIZES) for repeat in (0, 1, 2)
    ]
    built = table(made(tmp_path, [*records, *failed]))
    found = marks(built)
    assert found["margin"].place == "best"
    assert (found["nc"].n, found["oskl"].n) == (5, 2)
    assert found["nc"].difference == pytest.approx(0.0012)
    assert (found["oskl"].place, found["oskl"].p) == ("", None)
    sentence = "Not compared with the best: 1 of 2 lines (2 repeats; a comparison needs at least 3)."
    assert sentence in caption(built)


def test_repeats_of_other_seeds_are_other_splits(tmp_path: Path) -> None:
    records = rows({"nc": ACCURACIES["nc"]}, seed=0) + rows({"oskl": ACCURACIES["oskl"]}, seed=1)
    built = table(made(tmp_path, records))
    assert marks(built)["oskl"] == Mark("")
    assert any("no repeat in common; a comparison needs at least 3" in line for line in caption(built))


def test_infinite_values_are_not_compared(tmp_path: Path) -> None:
    values = {"nc": [0.3, 0.4, 0.5], "oskl": [0.3, math.inf, 0.9]}
    built = table(made(tmp_path, rows(values, "log_loss")))
    assert marks(built, "log_loss")["nc"].place == "best"
    assert (marks(built, "log_loss")["oskl"].place, marks(built, "log_loss")["oskl"].p) == ("", None)
    assert any("some values are infinite" in line for line in caption(built))


def test_without_the_numbers_of_rows_nothing_is_corrected_nor_compared(tmp_path: Path) -> None:
    built = table(made(tmp_path, rows(ACCURACIES, n_train=None)))
    assert marks(built)["oskl"].p is None
    assert any("the numbers of training and test rows are not known" in line for line in caption(built))


def test_too_many_lines_are_not_compared(tmp_path: Path) -> None:
    records = [
        record("oskl", f"G={number}", repeat, dataset="moons", accuracy=0.5 + 0.001 * number, **SIZES)
        for number in range(MOST_LINES + 1)
        for repeat in range(3)
    ]
    built = table(made(tmp_path, records))
    places = [mark.place for mark in built.blocks[0].marks["accuracy"].lines.values()]
    assert (places.count("best"), places.count("")) == (1, MOST_LINES)
    assert any(f"{MOST_LINES + 1} lines; at most {MOST_LINES} are compared" in line for line in caption(built))


def test_in_a_table_with_a_column_a_value_lines_are_compared_in_their_column(tmp_path: Path) -> None:
    def column(lam: str, shift: float) -> list[Record]:
        return [
            record(name, lam, repeat, dataset="moons", accuracy=value - shift, **SIZES)
            for name, values in ACCURACIES.items()
            for repeat, value in enumerate(values)
        ]

    results = read_results(made(tmp_path, column("lam=0.5", 0.3) + column("lam=0.2", 0.0)))
    by_lam = parse(Paper, PAPER | {"tables": {"1": {"title": "Results", "columns": "lam"}}})
    built = build(measure(results), [Source("a paper", by_lam, [], ["1"])])
    found: dict[Column, Mark] = dict(built.blocks[0].marks["accuracy"].lines)
    assert {(name, variant["lam"]): mark.place for (name, variant), mark in found.items()} == {
        (name, lam): place for name, place in zip(ACCURACIES, ("best", "alike", ""), strict=True) for lam in (0.5, 0.2)
    }
    assert any(line.startswith("‡ (bold): the best mean of a metric in its column; †") for line in caption(built))


TESTS = {
    "corrected": (
        {"test_size": 0.2},
        ", corrected for repeats that split one set again (Nadeau and Bengio), with Holm",
    ),
    "plain": ({"official": True}, ", which differ in the order of the rows and the seed alone, with Holm's"),
}


@pytest.mark.parametrize("kind", TESTS)
def test_the_caption_names_the_test(tmp_path: Path, kind: str) -> None:
    split, words = TESTS[kind]
    (said,) = [line for line in caption(table(made(tmp_path, rows(ACCURACIES), split))) if "‡" in line]
    assert said.startswith("‡ (bold): the best mean of a column; †: not distinguishable from it at 5 % by a paired t")
    assert words in said
    assert said.endswith("over all pairs of lines. Times are not marked.")


def test_the_marks_stand_in_every_format(tmp_path: Path) -> None:
    folder = made(tmp_path, rows(ACCURACIES))
    report(folder, console=quiet(), formats=["md", "tex", "csv"])
    files = {kind: (folder / "report" / f"table.{kind}").read_text(encoding="utf-8") for kind in ("md", "tex", "csv")}
    text = shown(folder)
    for line in (r"nc +5/5 +90\.5 ± 1\.1‡ ", r"margin +5/5 +90\.4 ± 0\.9† ", r"oskl +5/5 +80\.6 ± 1\.5  "):
        assert re.search(line, text), line
    for cell in ("| **90.5 ± 1.1‡** |", "|  90.4 ± 0.9† |", "|   80.6 ± 1.5 |"):
        assert re.sub(" +", " ", cell) in re.sub(" +", " ", files["md"])
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
    text = shown(made(tmp_path, rows(ACCURACIES)), force_terminal=True, color_system="standard", width=120)
    assert "\x1b[1m90.5 ± 1.1‡\x1b[0m" in text
    assert "\x1b[4m90.4 ± 0.9†\x1b[0m" in text


def test_an_encoding_without_daggers_has_other_marks(tmp_path: Path) -> None:
    class Ascii(io.StringIO):
        encoding = "ascii"

    file = Ascii()
    report(made(tmp_path, rows(ACCURACIES)), console=Console(file=file, width=120))
    text = " ".join(file.getvalue().split())
    assert "90.5 +- 1.1^ " in text
    assert "90.4 +- 0.9= " in text
    assert "^ (bold): the best mean of a column; =: not distinguishable" in text
