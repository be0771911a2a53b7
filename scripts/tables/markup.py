"""Pipe tables of Markdown cells."""

from __future__ import annotations

from tabulate import tabulate


def table(head: list[str], rows: list[list[str]], texts: int) -> str:
    """Return a pipe table with the first `texts` columns left-aligned, the others right-aligned."""
    align = ["left" if number < texts else "right" for number in range(len(head))]
    return tabulate(rows, head, tablefmt="pipe", colalign=align, disable_numparse=True)
