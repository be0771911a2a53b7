"""From a table of values to text."""

from collections.abc import Callable, Collection, Sequence
from functools import partial

from klr_bench.report.render.document import Document, Grid, Placing, latex, markdown
from klr_bench.report.render.layout import comma_separated, document
from klr_bench.report.render.statistics import statistics_csv, statistics_document
from klr_bench.report.render.terminal import show, show_all
from klr_bench.report.table import Table

__all__ = ["WRITERS", "Document", "Grid", "Placing", "document", "show", "statistics_csv", "statistics_document"]
__all__ += ["show_all", "table_files", "texts_of"]

WRITERS: dict[str, Callable[[Document], str]] = {"md": markdown, "tex": latex}
"""What writes a document, by the suffix of its file."""


def texts_of(documents: Sequence[Document], stem: str, formats: Collection[str]) -> dict[str, str]:
    """Return the files <stem>.md and <stem>.tex of some documents, as far as these formats are asked for."""
    return {f"{stem}.{name}": "\n".join(map(write, documents)) for name, write in WRITERS.items() if name in formats}


def table_files(
    table: Table, said: Document, formats: Collection[str], placing: Placing | None = None
) -> dict[str, str]:
    """Return the files of the table of an experiment, LaTeX placed as asked; CSV has its values, not texts."""
    writers = WRITERS | {"tex": partial(latex, placing=placing)}
    files = {f"table.{name}": write(said) for name, write in writers.items() if name in formats}
    return files | ({"table.csv": comma_separated(table)} if "csv" in formats else {})
