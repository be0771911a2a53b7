"""Sphinx extension that links public names in Markdown pages to their reference.

In the text the first mention of a name becomes a link, in tables each of them.  Pages write `OSKL` or `OSKL(G=2)`, and
`stream()` for a function, which also reads well without Sphinx.
"""

from __future__ import annotations

import inspect
import re

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util.typing import ExtensionMetadata

import klr_bench

CALL = re.compile(r"(\w+)(\(.*\))?")


class CodeLinks(SphinxTransform):
    """Make links of the public names in a page."""

    default_priority = 500

    def apply(self) -> None:
        """Wrap the literals in cross-references."""
        if not str(self.env.doc2path(self.env.docname)).endswith(".md"):
            return
        linked: set[str] = set()
        for literal in list(self.document.findall(nodes.literal)):
            target = f"klr_bench.{literal.astext().partition('(')[0]}"
            repeated = target in linked and not _is_inside(literal, nodes.table)
            if repeated or not is_public(literal.astext()) or _is_inside(literal, nodes.reference, nodes.title):
                continue
            linked.add(target)
            xref = pending_xref(refdomain="py", reftype="obj", reftarget=target, refexplicit=True, refwarn=True)
            xref["refdoc"] = self.env.docname
            literal.replace_self(xref)
            xref += literal


def is_public(code: str) -> bool:
    """Return True if code names a public class, alone or called, or calls a public function."""
    match = CALL.fullmatch(code)
    return bool(match and match[1] in klr_bench.__all__ and (match[2] or inspect.isclass(getattr(klr_bench, match[1]))))


def _is_inside(node: nodes.Node | None, *kinds: type[nodes.Node]) -> bool:
    """Return True if a node is inside a node of one of these kinds."""
    while node is not None and not isinstance(node, kinds):
        node = node.parent
    return node is not None


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the transform."""
    app.add_transform(CodeLinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
