"""Test of the Sphinx extension for docstrings in plain text."""

import pytest

from tests.extensions import extension

plain = extension("plain_docstrings")


@pytest.mark.parametrize(
    ("text", "markup"),
    [
        ("|a_i| and n_support_, 2 * x", r"\|a_i\| and n_support\_, 2 \* x"),
        ("as `OSKL`, by `fit`", "as :class:`~klr_bench.OSKL`, by ``fit``"),
        ("as for `L1KLR.fit`", "as for :meth:`L1KLR.fit <klr_bench.L1KLR.fit>`"),
        ("see docs/scale/streams.md.", "see :doc:`/scale/streams`."),
    ],
)
def test_special_characters_are_escaped_and_names_become_links_or_code(text, markup):
    assert plain.plain(text) == markup


def test_formulas_examples_and_headings_are_unchanged():
    lines = ["Of x_", "", ".. math::", "", "    x_ * y", "", "Attributes", "----------", "t_ : x_", "    A *."]
    lines += ["", "Examples", "--------", ">>> x_ * y", "x_"]
    markup = plain.as_markup(lines)
    changes = {line: new for line, new in zip(lines, markup, strict=True) if line != new}
    assert changes == {"Of x_": r"Of x\_", "t_ : x_": r"t\_ : x\_", "    A *.": r"    A \*."}
