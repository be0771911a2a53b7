"""Pipe tables of Markdown cells."""

from __future__ import annotations

import math

from tabulate import tabulate


def table(head: list[str], rows: list[list[str]], texts: int) -> str:
    """Return a pipe table with the first `texts` columns left-aligned, the others right-aligned."""
    align = ["left" if number < texts else "right" for number in range(len(head))]
    return tabulate(rows, head, tablefmt="pipe", colalign=align, disable_numparse=True)


def two_digits(value: float) -> str:
    """Return a number with two significant digits, or as an integer."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.{max(0, 1 - math.floor(math.log10(value)))}f}"
