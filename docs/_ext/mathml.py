"""Sphinx extension that writes formulas as MathML, which browsers render without scripts."""

from __future__ import annotations

import re

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata
from sphinx.writers.html5 import HTML5Translator


def mathml(text: str, *, as_block: bool = False) -> str:
    """Return a LaTeX formula as MathML, without stretching the bars of norms."""
    return re.sub(
        r"<mo(?: class=\"mathopen\")?>‖</mo>", '<mo stretchy="false">‖</mo>', tex2mathml(text, as_block=as_block)
    )


def inline(translator: HTML5Translator, node: nodes.math) -> None:
    """Write an inline formula."""
    translator.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def block(translator: HTML5Translator, node: nodes.math_block) -> None:
    """Write a displayed formula, which scrolls on a narrow page."""
    text = node.astext().strip()
    if "\\\\" in text and "\\begin" not in text:
        text = f"\\begin{{aligned}}{text}\\end{{aligned}}"
    translator.body.append(f'<div class="math" tabindex="0">{mathml(text, as_block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
