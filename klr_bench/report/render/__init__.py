"""From a table of values to text: all print names of variants and all numbers are spelled here."""

from collections.abc import Callable, Collection

from klr_bench.report.render.csv import comma_separated
from klr_bench.report.render.document import Document, document
from klr_bench.report.render.latex import latex
from klr_bench.report.render.markdown import markdown
from klr_bench.report.render.terminal import show
from klr_bench.report.table import Table

__all__ = ["WRITERS", "Document", "document", "show", "table_files"]

WRITERS: dict[str, Callable[[Document], str]] = {"md": markdown, "tex": latex}
"""What spells a document, by the suffix of its file."""


def table_files(table: Table, said: Document, formats: Collection[str]) -> dict[str, str]:
    """Return the files of the table of an experiment; CSV has its values, not texts."""
    files = {f"table.{name}": spell(said) for name, spell in WRITERS.items() if name in formats}
    return files | ({"table.csv": comma_separated(table)} if "csv" in formats else {})
