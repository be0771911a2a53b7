"""From a table of values to text: all print names of variants and all numbers are spelled here."""

from collections.abc import Callable, Collection
from functools import partial

from klr_bench.report.render.csv import comma_separated
from klr_bench.report.render.document import Document, document
from klr_bench.report.render.latex import Placing, latex
from klr_bench.report.render.markdown import markdown
from klr_bench.report.render.statistics import statistics_csv, statistics_document
from klr_bench.report.render.terminal import show
from klr_bench.report.table import Table

__all__ = ["WRITERS", "Document", "Placing", "document", "show", "statistics_csv", "statistics_document", "table_files"]

WRITERS: dict[str, Callable[[Document], str]] = {"md": markdown, "tex": latex}
"""What spells a document, by the suffix of its file."""


def table_files(
    table: Table, said: Document, formats: Collection[str], placing: Placing | None = None
) -> dict[str, str]:
    """Return the files of the table of an experiment, LaTeX placed as asked; CSV has its values, not texts."""
    writers = WRITERS | {"tex": partial(latex, placing=placing)}
    files = {f"table.{name}": spell(said) for name, spell in writers.items() if name in formats}
    return files | ({"table.csv": comma_separated(table)} if "csv" in formats else {})
