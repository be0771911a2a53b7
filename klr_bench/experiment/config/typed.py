"""A reader that holds plain values, of YAML or of a command line, against types and refuses what does not fit.

A type is a dataclass, ``dict[...]``, ``list[...]``, ``Literal[...]``, bool, int, float, str, `Text`, Any, a union of
these, or one of them ``Annotated`` with a `Check`.  A dataclass that has a class method ``from_description(content,
where)`` is read by that.  Only the standard library is imported, so that completion is quick.
"""

from __future__ import annotations

import math
import reprlib
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, Literal, NewType, NoReturn, TypeVar

from klr_bench.errors import KlrBenchError, nearest
from klr_bench.printing import is_file_name

T = TypeVar("T")

SHORT = reprlib.Repr()
"""How a refused list or mapping is shown: nested ones in part, for aliases of YAML may make them huge."""
SHORT.maxlevel, SHORT.maxlist, SHORT.maxdict, SHORT.maxstring, SHORT.maxother = 3, 20, 20, 100, 100

Text = NewType("Text", str)
"""Text for which a number may be written, such as the label of a class."""

NAMES: dict[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    Text: "text",
    dict: "keys and values",
    list: "a list",
    type(None): "null",
}


@dataclass(frozen=True)
class Check:
    """What a value must fulfil beside its type; `expected` says it in a message.  null is not checked."""

    expected: str
    fits: Callable[[Any], bool]


class PartOfMore:
    """The base of a dataclass that reads some keys of a mapping; the others are of no use to it and of any type."""


PRINTABLE = Check("printable characters on one line", str.isprintable)
Words = Annotated[str, PRINTABLE]
FileName = Annotated[str, Check("a name without slashes, which may be part of the name of a file", is_file_name)]


def between(low: float, high: float, note: str = "") -> Check:
    """Return the check of a number from `low` to `high`; the `note` ends the message."""
    return Check(f"from {low} to {high}{note}", lambda value: low <= value <= high)


def above(low: float, note: str = "") -> Check:
    """Return the check of a number greater than `low`."""
    return Check(f"above {low}{note}", lambda value: value > low)


def some(what: str) -> Check:
    """Return the check of a list that is not empty."""
    return Check(f"some of {what}", bool)


def parse(cls: type[T], values: Any, where: str = "") -> T:
    """Build a dataclass from plain values; `where`, which ends in a dot or is empty, stands before its keys.

    Raises KlrBenchError that names the dotted key, what was expected and what was got.
    """
    if not isinstance(values, Mapping):
        refuse(where.rstrip(".") or "content", NAMES[dict], values)
    hints: dict[str, Any] = hints_of(typing.cast(Any, cls))
    if issubclass(cls, PartOfMore):
        values = {key: value for key, value in values.items() if key in hints}
    refuse_unknown(values, hints, where)
    for field in fields(typing.cast(Any, cls)):
        if field.name not in values and field.default is field.default_factory is MISSING:
            message = f"{where}{field.name}: expected {described(hints[field.name])}, got none."
            raise KlrBenchError(message)
    return cls(**{key: read(hints[key], value, where + key) for key, value in values.items()})


def read(hint: Any, value: Any, key: str) -> Any:
    """Return a value of the type, or refuse it; a whole number is a number, and a number is `Text`."""
    chosen = next((option for option in options(hint) if _is_of(option, value)), None)
    if chosen is None:
        refuse(key, described(hint), value)
    kind, parts = typing.get_origin(chosen), typing.get_args(chosen)
    if kind is Annotated:
        found = read(parts[0], value, key)
        for check in parts[1:]:
            if found is not None and not check.fits(found):
                refuse(key, check.expected, found)
        return found
    if kind is Literal:
        if not any(value == known and type(value) is type(known) for known in parts):
            if not isinstance(value, str):
                refuse(key, described(hint), value)
            check_choice(key, value, [str(known) for known in parts])
        return value
    if hasattr(chosen, "from_description"):
        return chosen.from_description(value, key)
    if is_dataclass(chosen):
        return parse(typing.cast(type, chosen), value, f"{key}.")
    if kind is dict:
        found = {
            read(parts[0], name, f"{key}: a name"): read(parts[1], entry, f"{key}.{name}")
            for name, entry in value.items()
        }
        if len(found) < len(value):  # 1 and "1"
            refuse(f"{key}: names", "each of them once", [*value])
        return found
    if kind is list:
        return [read(parts[0], entry, f"{key}[{position}]") for position, entry in enumerate(value)]
    if chosen is Text and type(value) is float:
        _number(value, key)
    return _number(value, key) if chosen is float else str(value) if chosen is Text else value


def refuse(key: str, expected: str, got: Any) -> NoReturn:
    """Raise the KlrBenchError of a value that is not what was expected."""
    parts = got if isinstance(got, list) else got.values() if isinstance(got, dict) else ()
    text = SHORT.repr(got) if any(isinstance(part, list | dict) for part in parts) else repr(got)
    message = f"{key}: expected {expected}, got {text if len(text) <= 200 else text[:200] + '...'}."
    raise KlrBenchError(message)


def refuse_unknown(given: Iterable[Any], known: Iterable[str], where: str) -> None:
    """Refuse the first key that is not known, and name the nearest one; `where` ends in a dot or is empty."""
    known = list(known)
    for key in given:
        if key not in known:
            message = f"unknown key '{where}{key}'.{nearest(str(key), known)}"
            raise KlrBenchError(message)


def check_choice(key: str, value: Any, known: Iterable[str]) -> None:
    """Refuse a value that is none of the known ones, and name the nearest."""
    if value not in known:
        message = f"{key}: unknown value {value!r}.{nearest(str(value), known)}"
        raise KlrBenchError(message)


@cache
def hints_of(cls: Any) -> dict[str, Any]:
    """Return the types of a dataclass by the names of its fields."""
    return typing.get_type_hints(cls, include_extras=True)


def options(hint: Any) -> tuple[Any, ...]:
    """Return the types of a union, or the type alone; exact types stand before those that a number widens to."""
    union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    return tuple(sorted(typing.get_args(hint), key=lambda option: option in (float, Text))) if union else (hint,)


def bare(hint: Any) -> Any:
    """Return a type without what it is annotated with."""
    return bare(typing.get_args(hint)[0]) if typing.get_origin(hint) is Annotated else hint


def described(hint: Any) -> str:
    """Return a type in words."""
    return " or ".join(_described(bare(option)) for option in options(bare(hint)))


def _described(hint: Any) -> str:
    if len(options(hint)) > 1:
        return described(hint)
    if typing.get_origin(hint) is Literal:
        return " or ".join(str(known).lower() if known is True else str(known) for known in typing.get_args(hint))
    return NAMES[dict if is_dataclass(hint) else typing.get_origin(hint) or hint]


def _is_of(hint: Any, value: Any) -> bool:
    """Say whether the outermost type of a value is that of a hint."""
    plain = bare(hint)
    if len(options(plain)) > 1:
        return any(_is_of(option, value) for option in options(plain))
    if plain is Any:
        return True
    if typing.get_origin(plain) is Literal:
        return any(type(value) is type(known) for known in typing.get_args(plain))
    wider = {float: (float, int), Text: (str, int, float)}
    kind = dict if is_dataclass(plain) else typing.get_origin(plain) or plain
    return type(value) in wider.get(kind, (kind,))


def _number(value: float, key: str) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        refuse(key, "a finite number", value)
    return number
