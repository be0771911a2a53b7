"""Parameters and attributes that several classes share, in full on the page of each.

A docstring of the package describes a shared parameter once, in a base class or in a class that has it as well; the
others list its name with "See `ThatClass`." below, which keeps `help` short.  Here such an entry is replaced by the
entries of the class that it names, one for each name, before numpydoc reads the docstring:

    kernel, dtype                         kernel : {"rbf", "poly", "linear"}, default="rbf"
        See `OnlineKernelClassifier`.         exp(-gamma ||x - z||^2), ...
                                          dtype : {"float32", "float64"} or None, default=None
                                              Precision of ...

What follows the name, "See `X`; n_updates_ counts insertions." is added to the entries whose names it mentions, or to
all of them where it mentions none.  The class must be a base of this one, a public class of the package, or a name in
the module of this one; a build ends with an error if it is not, or does not describe the name.
"""

from __future__ import annotations

import importlib
import inspect
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata

PACKAGE = "klr_bench"
SECTIONS = ("Parameters", "Attributes")
BEFORE_NUMPYDOC = 300
"""Handlers with a smaller priority come first; numpydoc's has 500."""
ENTRY = re.compile(r"(?P<names>\*{0,2}\w+(?:, \w+)*)(?: : (?P<type>.+))?")
SEE = re.compile(r"See `(?P<name>\w+)`(?:; (?P<more>.+))?")


@dataclass(frozen=True)
class Entry:
    """What a section says of some names: their type, None where another class is to be seen, and lines of text."""

    names: tuple[str, ...]
    type: str | None
    text: tuple[str, ...]

    @property
    def seen(self) -> re.Match[str] | None:
        """The class that describes these names instead of this one, `name`, and what this one adds, `more`."""
        return None if self.type else SEE.match(" ".join(self.text))

    def lines(self) -> list[str]:
        """Return the entry as it stands in a docstring."""
        head = ", ".join(self.names) + (f" : {self.type}" if self.type else "")
        return [head, *(f"    {line}".rstrip() for line in self.text)]


def sections(lines: list[str]) -> list[tuple[str, list[str]]]:
    """Return the sections of a docstring, heading and lines; the first has no heading."""
    found: list[tuple[str, list[str]]] = [("", [])]
    i = 0
    while i < len(lines):
        if re.fullmatch(r"\w[\w ]*", lines[i]) and i + 1 < len(lines) and re.fullmatch("-{3,}", lines[i + 1]):
            found.append((lines[i], []))
            i += 2
        else:
            found[-1][1].append(lines[i])
            i += 1
    return found


def entries(cls: type, lines: list[str]) -> list[Entry]:
    """Return the entries of a section of the docstring of a class."""
    starts = [i for i, line in enumerate(lines) if line and not line[0].isspace()]
    found = []
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        head = ENTRY.fullmatch(lines[start])
        if head is None:
            message = f"{cls.__qualname__}: expected 'name' or 'name : type' in its docstring, got {lines[start]!r}."
            raise LookupError(message)
        text = inspect.cleandoc("\n".join(["", *lines[start + 1 : end]])).rstrip().splitlines()
        found.append(Entry(tuple(head["names"].split(", ")), head["type"], tuple(text)))
    return found


def described(cls: type, section: str, name: str) -> Entry:
    """Return the entry of one name, from the class that describes it; raise a LookupError if there is none."""
    lines = dict(sections((inspect.getdoc(cls) or "").splitlines())).get(section, [])
    for entry in entries(cls, lines):
        if name in entry.names:
            return resolved(cls, section, name, entry)
    message = f"{cls.__qualname__} has no {name!r} among its {section.lower()}, where another class refers to it."
    raise LookupError(message)


def resolved(cls: type, section: str, name: str, entry: Entry) -> Entry:
    """Return the entry of one of its names, looked up where `entry` says."""
    seen = entry.seen
    if entry.type is None and seen is None:
        message = f"{cls.__qualname__}: {name!r} has neither a type nor a class to be looked up in, 'See `Class`.'"
        raise LookupError(message)
    if seen is None:
        return Entry((name,), entry.type, entry.text)
    there = described(class_named(seen["name"], cls), section, name)
    more = seen["more"]
    if more and (re.search(rf"\b{name}\b", more) or not any(re.search(rf"\b{n}\b", more) for n in entry.names)):
        return Entry((name,), there.type, (*there.text, more[0].upper() + more[1:]))
    return there


def class_named(name: str, beside: type) -> type:
    """Return a base of a class, a public class of the package, or a class in the module of that class."""
    known: dict[str, Any] = dict(vars(importlib.import_module(beside.__module__)))
    package = importlib.import_module(PACKAGE)
    if name in package.__all__:
        known[name] = getattr(package, name)
    known |= {base.__name__: base for base in beside.__mro__}
    if not inspect.isclass(known.get(name)):
        message = f"{beside.__qualname__}: its docstring says 'See `{name}`', and there is no such class."
        raise LookupError(message)
    return known[name]


def in_full(cls: type, lines: list[str]) -> list[str]:
    """Return the lines of the docstring of a class with shared entries in full."""
    text: list[str] = []
    for heading, body in sections(lines):
        text += [heading, "-" * len(heading)] if heading else []
        if heading not in SECTIONS:
            text += body
            continue
        for entry in entries(cls, body):
            shared = [entry] if entry.type else [resolved(cls, heading, name, entry) for name in entry.names]
            text += [line for one in shared for line in one.lines()]
        text.append("")
    return text


def process(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Put shared entries in full into the docstring of a class of the package."""
    if what == "class" and obj.__module__.partition(".")[0] == PACKAGE:
        lines[:] = in_full(obj, lines)


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the handler."""
    app.connect("autodoc-process-docstring", process, priority=BEFORE_NUMPYDOC)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
