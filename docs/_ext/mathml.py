"""Formulas as MathML, which browsers draw by themselves: no script, no network, no LaTeX."""

from __future__ import annotations

import re

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata
from sphinx.writers.html5 import HTML5Translator


def mathml(text: str, *, as_block: bool = False) -> str:
    """Return a formula as MathML; bars of a norm are as high as those of a number, which browsers would stretch."""
    return re.sub(
        r"<mo(?: class=\"mathopen\")?>‖</mo>", '<mo stretchy="false">‖</mo>', tex2mathml(text, as_block=as_block)
    )


def inline(translator: HTML5Translator, node: nodes.math) -> None:
    """Write a formula within a line."""
    translator.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def block(translator: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula on a line of its own, which scrolls where the page is narrow."""
    text = node.astext().strip()
    if "\\\\" in text and "\\begin" not in text:
        text = f"\\begin{{aligned}}{text}\\end{{aligned}}"
    translator.body.append(f'<div class="math">{mathml(text, as_block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
