"""The chart "which method?", drawn from the records of results/reference."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from comparison import NO_BREAK
from markup import two_digits
from methods import ABOUT, BUDGET, TITLES, means_of
from real_tables import KLR, losses

WIDTH, ROW, TOP = 480, 62, 10
"""Width of the chart, height of a choice, and margin, in units of the drawing."""
HEAD = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{shown_width:.0f}" '
    'height="{shown:.0f}" role="img" font-family="Helvetica, Arial, sans-serif" font-size="13">\n'
    "<title>Which method? Start with the first one; each line below names a reason for another one</title>\n"
    "<style>\ntext {{ fill: #1b1b1b; }}\n.take {{ fill: #00548a; font-weight: bold; }}\n"
    ".seen {{ fill: #555555; font-size: 11.5px; }}\nrect {{ fill: #ffffff; stroke: #8a8a8a; }}\n"
    ".first {{ fill: #dbe9f6; stroke: #0072b2; }}\npath {{ fill: none; stroke: #444444; }}\n</style>\n"
    '<rect x="0.5" y="0.5" width="{inner}" height="{inner_height}" rx="8" stroke="#cccccc"/>\n'
)


class Choice(NamedTuple):
    """A situation, the method for it, and what the records say about it."""

    when: str
    take: str
    seen: Callable[[Path], str]


def _tables(reference: Path) -> str:
    loss, seconds = losses(reference / "tables")
    lowest = (loss.idxmin(axis=1) == KLR).sum()
    return (
        f"lowest log loss of {loss.shape[1]} methods on {lowest} of {len(loss)} tables; "
        f"{two_digits(seconds[KLR].median())} s"
    )


def _large(reference: Path) -> str:
    rows = pd.read_csv(reference / "benchmark" / "many_rows.csv").query("dataset == 'covtype'")
    rows = rows[rows["n"] == rows["n"].max()].set_index("method")
    ours, others = rows.loc["PartitionedKLR"], rows[~rows.index.str.startswith("PartitionedKLR")]
    best = others.loc[others["accuracy"].idxmax()]
    shown = [f"{100 * row['accuracy']:.1f}{NO_BREAK}%, {two_digits(row['seconds'])}{NO_BREAK}s" for row in (ours, best)]
    return f"{TITLES['covtype']}, {ours['n']:,} rows: {shown[0]}; {best.name}: {shown[1]}"


def _quick(reference: Path) -> str:
    loss, seconds = losses(reference / "tables")
    lower = (loss["oskl_default"] < loss["lightgbm"]).sum()
    ours, others = (two_digits(seconds[name].median()) for name in ("oskl_default", "lightgbm"))
    return f"OSKL() {ours}{NO_BREAK}s; log loss below LightGBM's ({others}{NO_BREAK}s) on {lower} of {len(loss)} tables"


def _fits(folder: Path, dataset: str, algorithm: str) -> list[pd.Series]:
    """Return the means of each variant of an algorithm on a data set."""
    return [row for key, row in means_of(folder).iterrows() if key[:2] == (dataset, algorithm)]


def _stream(reference: Path) -> str:
    folder = reference / "stream_covtype"
    best = {name: max(row["accuracy"] for row in _fits(folder, "covtype_stream", name)) for name in STREAMED}
    shown = ", ".join(f"{label} {100 * best[name]:.1f}{NO_BREAK}%" for name, label in STREAMED.items())
    return f"Covertype in file order: {shown}"


def _small(reference: Path) -> str:
    refit = max(
        (row for row in _fits(reference / "budget_all", "magic", "budget_oskl") if row["n_support"] <= BUDGET),
        key=lambda row: row["accuracy"],
    )
    (points,) = _fits(reference / "defaults", "magic", "prototype_default")
    return (
        f"MAGIC: {100 * refit['accuracy']:.1f}{NO_BREAK}% with {refit['n_support']:,.0f} support vectors, "
        f"{100 * points['accuracy']:.1f}{NO_BREAK}% with {points['n_support']:.0f} points"
    )


def _features(reference: Path) -> str:
    fits = _fits(reference / "sbcw_rcv1", "rcv1_subset", "fgm_converged")
    nearest = min(fits, key=lambda row: abs(row["n_selected"] - ABOUT))
    return (
        f"Subset of RCV1: {100 * nearest['accuracy']:.1f}{NO_BREAK}% with {nearest['n_selected']:.0f} of its features"
    )


def _texts(reference: Path) -> str:
    shown = []
    for name, label in {"oskl_default": "OSKL", "lr_linear": "linear"}.items():
        (row,) = _fits(reference / "defaults", "rcv1_subset", name)
        shown.append(f"{label} {100 * row['accuracy']:.1f}{NO_BREAK}%, log loss {row['log_loss']:.3f}")
    return f"Subset of RCV1: {'; '.join(shown)}"


STREAMED = {"budget_oskl": "BudgetOSKL", "fogd": "FOGD"}
FIRST = Choice("Start with", "KLR()", _tables)
CHOICES = (
    Choice("The rows are a stream, or do not fit into memory", "BudgetOSKL(average=False), FOGD()", _stream),
    Choice("The model must be small", "BudgetOSKL(budget=B, refit=True), PrototypeKLR()", _small),
    Choice("A person has to understand it", "logistic regression, FeatureGeneratingMachine()", _features),
    Choice("Texts: very many, sparse features", "OSKL(); a linear model is nearly as accurate", _texts),
    Choice("More than some 100,000 rows", "PartitionedKLR(); compare with gradient boosting", _large),
    Choice("Training must take less than a second", "OSKL(), DualCDKLR(); gradient boosting", _quick),
)
"""Reasons for another method than the first one."""


def chart(reference: Path) -> bytes:
    """Return the chart as an SVG file."""
    height = 2 * TOP + ROW * (len(CHOICES) + 1) + 22
    frame = {"width": WIDTH, "height": height, "inner": WIDTH - 1, "inner_height": height - 1}
    parts = [HEAD.format(**frame, shown=1.25 * height, shown_width=1.25 * WIDTH)]
    parts += _box(TOP, FIRST, reference, first=True)
    below = TOP + ROW
    parts.append(
        f'<text class="seen" x="14" y="{below + 12}">unless one of these holds; the first that does decides:</text>\n'
    )
    for number, choice in enumerate(CHOICES):
        parts += _box(below + 22 + number * ROW, choice, reference)
    return ("".join(parts) + "</svg>\n").encode()


def _box(top: float, choice: Choice, reference: Path, *, first: bool = False) -> list[str]:
    kind = ' class="first"' if first else ""
    lines = [("when", choice.when), ("take", choice.take), ("seen", choice.seen(reference))]
    texts = [
        f'<text class="{name}" x="16" y="{top + 17 + 16.5 * place:g}">{escape(text)}</text>\n'
        for place, (name, text) in enumerate(lines)
    ]
    return [f'<rect{kind} x="8" y="{top:g}" width="{WIDTH - 16}" height="{ROW - 6}" rx="5"/>\n', *texts]


def described(folder: str) -> Callable[[Path], dict[str, str]]:
    """Return a function that returns the chart in Markdown, from a path to its folder."""

    def which(reference: Path) -> dict[str, str]:
        reasons = "; ".join(f"{choice.when}: {choice.take}" for choice in CHOICES)
        words = f"{FIRST.when} {FIRST.take}, unless one of these holds. {reasons}"
        return {"which": f"![{words}]({folder}choose.svg)"}

    return which
