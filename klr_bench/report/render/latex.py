"""A document as LaTeX."""

from __future__ import annotations

import re

from klr_bench.report.render.document import Document

TEX_ESCAPES = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$"},
    **{
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        '"': r"\textquotedbl{}",
        "`": r"\textasciigrave{}",
    },
}


def latex(document: Document) -> str:
    """Return a document as LaTeX, a ``table`` a grid, for the booktabs package."""
    parts = [r"% needs \usepackage{booktabs} and \usepackage[T1]{fontenc}"]
    for block in document.grids:
        sentences = [f"{block.header[0]}.", *document.caption, *(f"{note}." for note in block.notes)]
        lines = [
            r"\begin{table}",
            r"\centering\small\setlength{\tabcolsep}{4pt}",
            rf"\caption{{{_tex(' '.join(sentences))}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(block.header) - 1)}}}",
            r"\toprule",
            _tex_row(block.header),
            r"\midrule",
            *map(_tex_row, block.rows),
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _tex_row(row: list[str]) -> str:
    first = _tex(row[0])
    first = "{}" + first if first.startswith(("[", "*")) else first  # else an argument of the \\ above
    return " & ".join([(r"\quad " if row[0].startswith(" ") else "") + first, *map(_tex, row[1:])]) + r" \\"


def _tex(text: str) -> str:
    """Escape what LaTeX takes for markup; signs of numbers become mathematics."""
    escaped = "".join(TEX_ESCAPES.get(character, character) for character in text.strip())
    return re.sub(r"^([+-])(?=\d)", r"$\1$", escaped)
