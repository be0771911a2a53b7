"""Tests of the Sphinx extensions for shared parameters and for docstrings in plain text."""

import inspect

import pytest

import klr_bench
from tests.extensions import extension

shared, plain = extension("shared_parameters"), extension("plain_docstrings")


class Base:
    """A base.

    Parameters
    ----------
    width : float, default=1.0
        Width > 0.

        Two paragraphs.
    """


class Derived(Base):
    """A class that refers to its base.

    Parameters
    ----------
    own : bool, default=False
        Its own.
    width
        See `Base`; width is at most 9.

    Examples
    --------
    >>> 1
    1
    """


def in_full(cls):
    return "\n".join(shared.in_full(cls, inspect.getdoc(cls).splitlines()))


def test_references_are_replaced_by_full_entries():
    text = in_full(Derived)
    assert text.startswith("A class that refers to its base.\n\nParameters\n----------\nown : bool, default=False\n")
    assert "\nwidth : float, default=1.0\n    Width > 0.\n\n    Two paragraphs.\n    Width is at most 9.\n" in text
    assert text.endswith("Examples\n--------\n>>> 1\n1")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("height\n    See `Base`.", "Base has no entry 'height' in Parameters, but another class refers to it."),
        ("width\n    See `Bottom`.", "refers to `Bottom`, which is not a known class."),
        ("width: float\n    A width.", "expected 'name' or 'name : type' in its docstring, got 'width: float'."),
    ],
)
def test_an_invalid_reference_fails_the_build(entry, message):
    broken = type("Broken", (Base,), {"__doc__": f"One line.\n\nParameters\n----------\n{entry}\n"})
    broken.__module__ = __name__
    with pytest.raises(LookupError) as error:
        in_full(broken)
    assert message in str(error.value)


def test_every_public_class_has_full_entries():
    for cls in filter(inspect.isclass, (getattr(klr_bench, name) for name in klr_bench.__all__)):
        for heading, lines in shared.sections(in_full(cls).splitlines()):
            for entry in shared.entries(cls, lines) if heading in shared.SECTIONS else ():
                assert entry.type, (cls, entry.names)
                assert entry.text, (cls, entry.names)
                assert "See `" not in " ".join(entry.text)


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
