"""The docstrings of the public names: examples that run, parameters and attributes as they are, a source."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import re

import numpy as np
import pytest
from sklearn.datasets import make_moons

import klr_bench

NAMES = [name for name in klr_bench.__all__ if name != "__version__"]
CLASSES = [name for name in NAMES if inspect.isclass(getattr(klr_bench, name))]
HEADING = re.compile(r"^(\w+)\n-+$", re.MULTILINE)
ENTRY = re.compile(r"^(?P<names>\*{0,2}\w+(?:, \w+)*)(?: : (?P<type>.+))?$")
REFERENCE = re.compile(r"^\s+See `(\w+)`")


def sections(thing):
    """Return the numpydoc sections of a docstring by heading; "" is the text before the first."""
    parts = HEADING.split(inspect.getdoc(thing))
    assert len(set(parts[1::2])) == len(parts[1::2]), "a section stands there twice"
    return {"": parts[0]} | dict(zip(parts[1::2], parts[2::2], strict=True))


def entries(thing, section):
    """Return (name, type, description) for each name that a section lists; names may share an entry."""
    lines = sections(thing).get(section, "").strip("\n").splitlines()
    starts = [i for i, line in enumerate(lines) if line and not line[0].isspace()]
    found = []
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        entry = ENTRY.match(lines[start])
        assert entry, f"not 'name' or 'name : type': {lines[start]!r}"
        description = "\n".join(lines[start + 1 : end]).rstrip()
        found += [(name.lstrip("*"), entry["type"], description) for name in entry["names"].split(", ")]
    return found


def resolved(cls, section, name):
    """Return (type, description) of a name, from the class that the entry refers to where it gives no type."""
    found = {entry: (kind, description) for entry, kind, description in entries(cls, section)}
    assert name in found, f"{cls.__name__}: {section} has no {name}"
    kind, description = found[name]
    if kind is not None:
        return kind, description
    reference = REFERENCE.match(description)
    assert reference, f"{cls.__name__}: {name} has neither a type nor a class to look it up in"
    return resolved(class_named(reference[1], cls), section, name)


def class_named(name, beside):
    """Return a public class, a base of another, or a class of the same module."""
    for base in beside.__mro__:
        if base.__name__ == name:
            return base
    found = getattr(klr_bench, name, None) or getattr(importlib.import_module(beside.__module__), name, None)
    assert found, f"{beside.__name__}: See `{name}`: that is no base of it, no public class, and none of its module"
    return found


def default(kind):
    """Return the default that a type such as 'float, default=1.0' names, or inspect.Parameter.empty."""
    found = re.search(r"default=(.+)$", kind)
    return ast.literal_eval(found[1]) if found else inspect.Parameter.empty


def fits(value, kind, sizes):
    """Tell whether a value is of one of the types and shapes that a docstring names; `sizes` are those of names."""
    types = re.findall(r"\b(ndarray|int|float|bool|Pipeline)\b", kind)
    if not types:
        return repr(value).replace("'", '"') in kind
    if not isinstance(value, np.ndarray):
        return type(value).__name__ in types
    shapes = [re.findall(r"[^\s,][^,]*", shape) for shape in re.findall(r"\(([^)]*)\)", kind)]
    return "ndarray" in types and any(
        len(shape) == value.ndim and all(sizes.get(n) in (None, m) for n, m in zip(shape, value.shape, strict=True))
        for shape in shapes
    )


@pytest.mark.parametrize("name", NAMES)
def test_the_example_of_a_docstring_runs(name):
    thing = getattr(klr_bench, name)
    assert "Examples" in sections(thing), f"{name} has no example"
    test = doctest.DocTestParser().get_doctest(inspect.getdoc(thing), {}, name, inspect.getsourcefile(thing), None)
    assert 3 <= len(test.examples) <= 8
    assert any(example.want for example in test.examples), f"the example of {name} shows no result"
    assert f"import {name}" in test.examples[0].source or f", {name}" in test.examples[0].source
    report = []
    result = doctest.DocTestRunner().run(test, out=report.append)
    assert not result.failed, "".join(report)


@pytest.mark.parametrize("name", NAMES)
def test_the_parameters_of_a_docstring_are_those_of_the_signature(name):
    thing = getattr(klr_bench, name)
    signature = inspect.signature(thing).parameters
    documented = [entry for entry, _, _ in entries(thing, "Parameters")]
    assert sorted(documented) == sorted(signature)


@pytest.mark.parametrize("name", NAMES)
def test_the_defaults_of_a_docstring_are_those_of_the_signature(name):
    thing = getattr(klr_bench, name)
    for parameter in inspect.signature(thing).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        kind, description = resolved(thing, "Parameters", parameter.name)
        assert description.strip(), f"{name}: {parameter.name} is not described"
        assert repr(default(kind)) == repr(parameter.default), f"{name}: {parameter.name} : {kind}"


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.filterwarnings("ignore")
def test_the_attributes_of_a_docstring_are_those_of_a_fit(name):
    cls = getattr(klr_bench, name)
    X, y = make_moons(60, noise=0.1, random_state=0)
    model = cls().fit(X, y)
    fitted = {attribute for attribute in dir(model) if re.fullmatch(r"[a-z]\w*_", attribute)}
    documented = [attribute for attribute, _, _ in entries(cls, "Attributes")]
    assert sorted(documented) == sorted(fitted)
    sizes = {"n_samples": 60, "n_features": 2, "n_classes": 2} | vars(model)
    for attribute in documented:
        kind, description = resolved(cls, "Attributes", attribute)
        assert description.strip(), f"{name}: {attribute} is not described"
        value = getattr(model, attribute)
        assert fits(value, kind, sizes), f"{name}: {attribute} : {kind}; it is a {type(value)} {np.shape(value)}"


@pytest.mark.parametrize("name", CLASSES)
def test_the_docstring_of_a_class_names_its_source(name):
    references = sections(getattr(klr_bench, name)).get("References", "")
    assert re.search(r"[A-Z]\w+.*\b(19|20)\d\d\b", references), f"{name} names no source"
