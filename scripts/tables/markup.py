"""Tables of cells that are Markdown themselves."""

from __future__ import annotations

from tabulate import tabulate


def table(head: list[str], rows: list[list[str]], texts: int) -> str:
    """Return a pipe table; the first columns, so many, are texts, the others numbers, which stand at the right."""
    align = ["left" if number < texts else "right" for number in range(len(head))]
    return tabulate(rows, head, tablefmt="pipe", colalign=align, disable_numparse=True)
