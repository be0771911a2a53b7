"""Sphinx extension that documents shared parameters in full for each class.

Some docstrings describe a shared parameter in one class only; other classes list its name with "See `ThatClass`." as
the description.  This extension replaces such an entry by the entries of the named class, one for each name, before
numpydoc reads the docstring:

    kernel, dtype                         kernel : {"rbf", "poly", "linear"}, default="rbf"
        See `OnlineClassifier`.         exp(-gamma ||x - z||^2), ...
                                          dtype : {"float32", "float64"} or None, default=None
                                              Precision of ...

Further text, as in "See `X`; n_updates_ counts insertions.", is appended to the entries whose names it mentions, or to
all entries if it mentions none.  The named class must be a base class, a public class of the package, or a name in the
same module; otherwise, or if it does not describe the name, the build fails.
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
"""Priority of the handler; numpydoc has 500, and smaller priorities run first."""
ENTRY = re.compile(r"(?P<names>\*{0,2}\w+(?:, \w+)*)(?: : (?P<type>.+))?")
SEE = re.compile(r"See `(?P<name>\w+)`(?:; (?P<more>.+))?")


@dataclass(frozen=True)
class Entry:
    """Entry of a docstring section: names, type and description.

    The type is None if the description refers to another class.
    """

    names: tuple[str, ...]
    type: str | None
    text: tuple[str, ...]

    @property
    def reference(self) -> re.Match[str] | None:
        """Match of a reference to another class: its `name` and `more` text; None without reference."""
        return None if self.type else SEE.match(" ".join(self.text))

    def lines(self) -> list[str]:
        """Return the lines of the entry in a docstring."""
        head = ", ".join(self.names) + (f" : {self.type}" if self.type else "")
        return [head, *(f"    {line}".rstrip() for line in self.text)]


def sections(lines: list[str]) -> list[tuple[str, list[str]]]:
    """Return heading and lines of each section of a docstring; the first heading is empty."""
    parts: list[tuple[str, list[str]]] = [("", [])]
    i = 0
    while i < len(lines):
        if re.fullmatch(r"\w[\w ]*", lines[i]) and i + 1 < len(lines) and re.fullmatch("-{3,}", lines[i + 1]):
            parts.append((lines[i], []))
            i += 2
        else:
            parts[-1][1].append(lines[i])
            i += 1
    return parts


def entries(cls: type, lines: list[str]) -> list[Entry]:
    """Parse the entries of a section in the docstring of a class."""
    starts = [i for i, line in enumerate(lines) if line and not line[0].isspace()]
    parsed = []
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        head = ENTRY.fullmatch(lines[start])
        if head is None:
            message = f"{cls.__qualname__}: expected 'name' or 'name : type' in its docstring, got {lines[start]!r}."
            raise LookupError(message)
        text = inspect.cleandoc("\n".join(["", *lines[start + 1 : end]])).rstrip().splitlines()
        parsed.append(Entry(tuple(head["names"].split(", ")), head["type"], tuple(text)))
    return parsed


def described(cls: type, section: str, name: str) -> Entry:
    """Return the entry of a name, following references; raise LookupError if there is none."""
    lines = dict(sections((inspect.getdoc(cls) or "").splitlines())).get(section, [])
    for entry in entries(cls, lines):
        if name in entry.names:
            return resolved(cls, section, name, entry)
    message = f"{cls.__qualname__} has no entry {name!r} in {section}, but another class refers to it."
    raise LookupError(message)


def resolved(cls: type, section: str, name: str, entry: Entry) -> Entry:
    """Return the entry of one name, looked up in the class that `entry` refers to, if any."""
    reference = entry.reference
    if entry.type is None and reference is None:
        message = f"{cls.__qualname__}: {name!r} has neither a type nor a reference 'See `Class`.'"
        raise LookupError(message)
    if reference is None:
        return Entry((name,), entry.type, entry.text)
    shared = described(find_class(reference["name"], cls), section, name)
    more = reference["more"]
    if more and (re.search(rf"\b{name}\b", more) or not any(re.search(rf"\b{n}\b", more) for n in entry.names)):
        return Entry((name,), shared.type, (*shared.text, more[0].upper() + more[1:]))
    return shared


def find_class(name: str, cls: type) -> type:
    """Return a class by name, from the bases of `cls`, its module, or the public classes."""
    classes: dict[str, Any] = dict(vars(importlib.import_module(cls.__module__)))
    package = importlib.import_module(PACKAGE)
    if name in package.__all__:
        classes[name] = getattr(package, name)
    classes |= {base.__name__: base for base in cls.__mro__}
    if not inspect.isclass(classes.get(name)):
        message = f"{cls.__qualname__}: the docstring refers to `{name}`, which is not a known class."
        raise LookupError(message)
    return classes[name]


def in_full(cls: type, lines: list[str]) -> list[str]:
    """Return the lines of a class docstring with references replaced by full entries."""
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
    """Replace references in the docstring of a class of the package."""
    if what == "class" and obj.__module__.partition(".")[0] == PACKAGE:
        lines[:] = in_full(obj, lines)


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the handler."""
    app.connect("autodoc-process-docstring", process, priority=BEFORE_NUMPYDOC)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
