"""Render tables as text for the terminal, or as Markdown, LaTeX or CSV."""

from collections.abc import Collection, Sequence

from klr_bench.report.render.document import Document, Grid, Placing, latex, markdown
from klr_bench.report.render.layout import comma_separated, document
from klr_bench.report.render.terminal import show, show_all
from klr_bench.report.table import Table

__all__ = ["Document", "Grid", "Placing", "document", "show", "show_all", "table_files", "texts_of"]


def texts_of(
    documents: Sequence[Document], stem: str, formats: Collection[str], placing: Placing | None = None
) -> dict[str, str]:
    """Return the contents of <stem>.md and <stem>.tex, if requested, keyed by file name."""
    files = {
        f"{stem}.md": "\n".join(map(markdown, documents)),
        f"{stem}.tex": "\n".join(latex(document, placing) for document in documents),
    }
    return {name: text for name, text in files.items() if name.rpartition(".")[2] in formats}


def table_files(
    table: Table, texts: Document, formats: Collection[str], placing: Placing | None = None
) -> dict[str, str]:
    """Return the files of a table in the requested formats: contents keyed by file name."""
    files = texts_of([texts], "table", formats, placing)
    return files | ({"table.csv": comma_separated(table)} if "csv" in formats else {})
