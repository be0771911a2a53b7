"""The docstrings of the public names: sections, examples that run, parameters and attributes as they are, a source."""

import ast
import doctest
import inspect
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs, make_moons

import klr_bench
from tests.estimators.samples import small

pytestmark = pytest.mark.usefixtures("short_search")
NAMES = [name for name in klr_bench.__all__ if name != "__version__"]
CLASSES = [name for name in NAMES if inspect.isclass(getattr(klr_bench, name))]
SECTIONS = ["", "Parameters", "Attributes", "Notes", "References", "Examples"]
FOR_USERS = {"TablePreparer"}
"""Classes whose algorithm is what a user sees of them, so that it needs no notes."""
OTHERS = {"n_samples": 60, "n_features": 2}


def sections(thing):
    """Return the numpydoc sections of a docstring, text by heading; "" is the text before the first."""
    text, *parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", inspect.getdoc(thing) + "\n", flags=re.MULTILINE)
    assert len(set(parts[::2])) == len(parts[::2]), "a section stands there twice"
    return {"": text} | dict(zip(parts[::2], parts[1::2], strict=True))


def entries(thing, section):
    """Return the type of each name in a section, "" for **parameters.  Each name has a description."""
    _, *parts = re.split(r"^(\S.*)\n", sections(thing).get(section, ""), flags=re.MULTILINE)
    kinds = {}
    for head, text in zip(parts[::2], parts[1::2], strict=True):
        names, _, kind = head.partition(" : ")
        for name in names.split(", "):
            assert name not in kinds, f"{name} stands there twice"
            assert kind or name.startswith("**"), f"{head}: expected 'name : type'"
            assert text.strip(), f"{name} is not described"
            kinds[name.lstrip("*")] = kind
    return kinds


def default(kind):
    """Return the default that a type such as 'float, default=1.0' names, or inspect.Parameter.empty."""
    found = re.search(r"default=(.+)$", kind)
    return ast.literal_eval(found[1]) if found else inspect.Parameter.empty


def fits(value, kind, sizes):
    """Return True if a value has one of the types and shapes that a docstring names; `sizes` are those of names."""
    names = "ndarray|int|float|bool|list|tuple|dict|DataFrame|Pipeline|DualCDKLR|LeafModels|OSKL"
    types = re.findall(rf"\b({names})\b", kind)
    if not types:
        return repr(value).replace("'", '"') in kind
    if not isinstance(value, np.ndarray):
        return type(value).__name__ in types
    shapes = [re.findall(r"[^\s,][^,]*", shape) for shape in re.findall(r"\(([^)]*)\)", kind)]
    return "ndarray" in types and any(
        len(shape) == value.ndim and all(sizes.get(n) in (None, m) for n, m in zip(shape, value.shape, strict=True))
        for shape in shapes
    )


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_has_all_sections_in_their_order_a_formula_and_a_source(name):
    """A source has authors and a year, and the algorithm, equation, figure, section or theorem that the code is."""
    by_heading = sections(getattr(klr_bench, name))
    headings = [heading for heading in by_heading if heading in SECTIONS]
    expected = [heading for heading in SECTIONS if heading != "Notes" or name not in FOR_USERS]
    assert headings == expected, f"{name}: expected the sections {', '.join(expected[1:])}, got {', '.join(headings)}"
    formulas = re.findall(r"^\.\. math::\n\n((?: {4}.*\n?)+)", by_heading.get("Notes", by_heading[""]), re.MULTILINE)
    assert formulas, f"{name}: expected a block of its formula, .. math::, in the section Notes"
    assert all(formula.count("{") == formula.count("}") for formula in formulas)
    references = by_heading["References"]
    assert re.search(r"[A-Z]\w+.*\b(19|20)\d\d\b", references, re.DOTALL), f"{name} names no author and year"


@pytest.mark.parametrize("name", [name for name in CLASSES if name not in FOR_USERS])
def test_a_docstring_says_first_when_to_use_the_class_and_what_it_costs(name):
    """The algorithm is in the notes."""
    _, purpose, *others = sections(getattr(klr_bench, name))[""].strip().split("\n\n")
    assert others == [], f"{name}: expected one paragraph after the summary; the algorithm belongs under Notes"
    assert 60 < len(purpose) < 600
    assert not re.search(r"<-|:math:|\.\. math", purpose)


@pytest.mark.parametrize("name", NAMES)
def test_a_docstring_begins_with_a_summary_and_its_example_runs(name):
    thing = getattr(klr_bench, name)
    summary, empty, *_ = [*inspect.getdoc(thing).splitlines(), ""]
    assert (summary[-1], empty) == (".", "")
    assert "Examples" in sections(thing), f"{name} has no example"
    test = doctest.DocTestParser().get_doctest(inspect.getdoc(thing), {}, name, inspect.getsourcefile(thing), None)
    assert 3 <= len(test.examples) <= 8, f"{name}: expected 3 to 8 lines >>> in its example, got {len(test.examples)}"
    assert any(example.want for example in test.examples), f"the example of {name} shows no result"
    assert f"import {name}" in test.examples[0].source or f", {name}" in test.examples[0].source
    if "results/reference" in test.docstring and not Path("results/reference").is_dir():
        pytest.skip("no results/reference here, as in an sdist")
    report = []
    result = doctest.DocTestRunner().run(test, out=report.append)
    assert not result.failed, "".join(report)


@pytest.mark.parametrize("name", NAMES)
def test_the_parameters_of_a_docstring_and_their_defaults_are_those_of_the_signature(name):
    thing = getattr(klr_bench, name)
    parameters = inspect.signature(thing).parameters
    kinds = entries(thing, "Parameters")
    assert sorted(kinds) == sorted(parameters)
    for parameter in parameters.values():
        if parameter.kind is not parameter.VAR_KEYWORD:
            kind = kinds[parameter.name]
            assert repr(default(kind)) == repr(parameter.default), f"{name}: {parameter.name} : {kind}"


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.filterwarnings("ignore")
def test_the_attributes_of_a_docstring_are_those_of_a_fit(name):
    """Those of a fit to two classes are all documented; others that are documented are there with three."""
    cls = getattr(klr_bench, name)
    X, y = make_moons(60, noise=0.1, random_state=0)
    of_two = fitted(cls().fit(pd.DataFrame(X, columns=["a", "b"]), y))
    of_three = fitted(small(cls(), feature_weights=[1, 1]).fit(*make_blobs(60, random_state=0)))
    documented = entries(cls, "Attributes")
    assert of_two.keys() <= documented.keys() <= of_two.keys() | of_three.keys()
    for attribute, kind in documented.items():
        for n_classes, values in ((2, of_two), (3, of_three)):
            if attribute in values and not (n_classes == 3 and attribute in of_two):
                value, sizes = values[attribute], OTHERS | {"n_classes": n_classes} | values
                where = f"{name}: {attribute} : {kind}; it is a {type(value)} {np.shape(value)}"
                assert fits(value, kind, sizes), where


def fitted(model):
    """Return the public attributes of a fitted model that end in _, by name."""
    return {name: getattr(model, name) for name in dir(model) if re.fullmatch(r"[A-Za-z]\w*_", name)}
