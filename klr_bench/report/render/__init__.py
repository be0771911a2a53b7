"""Render tables as text for the terminal, or as Markdown, LaTeX or CSV."""

from collections.abc import Collection, Sequence

from klr_bench.report.render.document import Document, Grid, markdown
from klr_bench.report.render.latex import Placing, bibliography, latex
from klr_bench.report.render.layout import comma_separated, document
from klr_bench.report.render.terminal import show, show_all
from klr_bench.report.table import Table

__all__ = ["Document", "Grid", "Placing", "document", "show", "show_all", "table_files", "texts_of"]


def texts_of(
    documents: Sequence[Document], stem: str, formats: Collection[str], placing: Placing | None = None
) -> dict[str, str]:
    """Return <stem>.md, and <stem>.tex with references.bib, if requested, keyed by file name."""
    files = {f"{stem}.md": "\n".join(map(markdown, documents))} if "md" in formats else {}
    if "tex" in formats:
        files[f"{stem}.tex"] = "\n".join(latex(document, placing) for document in documents)
        papers = {name: paper for document in documents for name, paper in document.papers.items()}
        files |= {"references.bib": bibliography(papers)} if papers else {}
    return files


def table_files(
    table: Table, texts: Document, formats: Collection[str], placing: Placing | None = None
) -> dict[str, str]:
    """Return the files of a table in the requested formats: contents keyed by file name."""
    files = texts_of([texts], "table", formats, placing)
    return files | ({"table.csv": comma_separated(table)} if "csv" in formats else {})
