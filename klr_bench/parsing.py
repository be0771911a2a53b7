"""The base of all models of plain values, of YAML, JSON or a command line, and messages about values that do not fit.

A model is a frozen pydantic model that converts nothing, but for whole numbers where a number is expected and numbers
where `Text` is.  `parse` turns the first error of pydantic into a KlrBenchError.
"""

from __future__ import annotations

import re
import reprlib
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, NoReturn, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    GetCoreSchemaHandler,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    ValidationError,
    model_serializer,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from klr_bench.errors import KlrBenchError, fail, nearest
from klr_bench.printing import is_file_name

T = TypeVar("T")
Plain = dict[str, Any]
"""Keys and values of YAML, JSON or a command line that are not parsed yet."""
STRICT = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)
SHORT = reprlib.Repr()
"""Representation of nested lists and mappings in messages: aliases of YAML may make them huge."""
SHORT.maxlevel, SHORT.maxlist, SHORT.maxdict, SHORT.maxstring, SHORT.maxother = 3, 20, 20, 100, 100
NAMES: dict[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    dict: "keys and values",
    Mapping: "keys and values",
    list: "a list",
    type(None): "null",
}
"""Types in words."""


class Model(BaseModel):
    """A frozen model that refuses unknown keys."""

    model_config = STRICT


class OpenModel(Model):
    """A frozen model that ignores unknown keys: another version of klr-bench may have written them."""

    model_config = ConfigDict(extra="ignore")


class Brief(Model):
    """A model whose dump leaves out keys that are null or false."""

    @model_serializer(mode="wrap")
    def _brief(self, dump: SerializerFunctionWrapHandler) -> dict[str, object]:
        return {name: value for name, value in dump(self).items() if value is not None and value is not False}


@dataclass(frozen=True)
class Check:
    """A condition on a value, for use in Annotated; `expected` describes it in a message."""

    expected: str
    fits: Callable[[Any], bool]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def _checked(self, value: Any) -> Any:
        if not self.fits(value):
            raise PydanticCustomError("check", "{expected}", {"expected": self.expected})
        return value


def _as_text(value: Any) -> Any:
    return str(value) if type(value) is int or (type(value) is float and abs(value) < float("inf")) else value


def _only_true(value: Any) -> Any:
    if value is not True:
        raise PydanticCustomError("check", "{expected}", {"expected": "true"})
    return value


Yes = Annotated[Literal[True], BeforeValidator(_only_true)]
"""true, and not the number 1."""
Text = Annotated[str, BeforeValidator(_as_text)]
"""Text for which a number may be written, such as the label of a class."""


def _distinct(value: Any) -> Any:
    if isinstance(value, dict) and len({str(name) for name in value}) < len(value):
        text = f": names: expected each of them once, got {[*value]!r}."
        raise PydanticCustomError("message", "{text}", {"text": text})
    return value


DISTINCT = BeforeValidator(_distinct)
"""Annotation of a mapping with names that are `Text`: 1 and "1" are the same name."""
PRINTABLE = Check("printable characters on one line", str.isprintable)
Words = Annotated[str, PRINTABLE]
FileName = Annotated[str, Check("a name without slashes, which may be part of the name of a file", is_file_name)]


def between(low: float, high: float, note: str = "") -> Check:
    """Return the check of a number from `low` to `high`; the `note` ends the message."""
    return Check(f"from {low} to {high}{note}", lambda value: low <= value <= high)


def above(low: float, note: str = "") -> Check:
    """Return the check of a number greater than `low`."""
    return Check(f"above {low}{note}", lambda value: value > low)


def matching(expected: str, pattern: str) -> Check:
    """Return the check of a text that matches a regular expression."""
    return Check(expected, lambda text: re.fullmatch(pattern, text) is not None)


def some(what: str) -> Check:
    """Return the check of a list that is not empty."""
    return Check(f"some of {what}", bool)


def parse(cls: type[T], values: Any, where: str = "") -> T:
    """Return a model of plain values; `where`, which ends in a dot or is empty, stands before its keys.

    Raises KlrBenchError that names the dotted key, the expected and the actual value.
    """
    return parse_value(cls, values, where.rstrip("."), where)  # type: ignore[no-any-return]


def parse_value(hint: Any, value: Any, key: str, where: str | None = None) -> Any:
    """Return a value of any type, `key`; raises KlrBenchError as `parse` does."""
    try:
        return _adapter(hint).validate_python(value)
    except ValidationError as error:
        _refuse_first(hint, value, key, f"{key}." if where is None else where, error.errors(include_url=False))


@cache
def _adapter(hint: Any) -> TypeAdapter[Any]:
    return TypeAdapter(hint) if _is_model(hint) else TypeAdapter(hint, config=STRICT)


def _is_model(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, BaseModel)


def _refuse_first(hint: Any, value: Any, key: str, where: str, errors: Any) -> NoReturn:
    """Raise the KlrBenchError of the first error, of an unknown key if there is one."""
    error = min(errors, key=lambda error: error["type"] not in ("extra_forbidden", "invalid_key"))
    location = list(error["loc"])
    while location:
        choices = [choice for choice in options(bare(hint)) if choice is not type(None)]
        if len(choices) > 1:  # pydantic reports errors of each type of a union: take those of the one that is meant
            meant = next((choice for choice in choices if _is_of(choice, value)), None)
            if meant is None:
                break
            parse_value(meant, value, key, where)
        (choice,) = map(bare, choices)
        part = location.pop(0)
        if _is_model(choice):
            hints = hints_of(choice)
            refuse_unknown([part], hints, where)
            hint = hints[part]
        elif location == ["[key]"]:
            hint, value, key, location = typing.get_args(choice)[0], part, f"{key}: a name", []
            break
        else:
            hint = typing.get_args(choice)[-1]
        key = f"{key}[{part}]" if isinstance(value, list) else f"{where}{part}"
        where = f"{key}."
        if error["type"] == "missing" and not location:
            fail(f"{key}: expected {described(hint)}, got none.")
        value = value[part]
    kind, context = error["type"], error.get("ctx", {})
    if kind == "message":
        raise KlrBenchError(key + context["text"])
    if kind == "literal_error" and isinstance(value, str):
        known = [str(one) for choice in options(bare(hint)) for one in typing.get_args(bare(choice))]
        check_choice(key, value, known)
    expected = {"check": context.get("expected"), "finite_number": "a finite number"}.get(kind)
    if kind == "check" and type(value) is int and float in map(bare, options(bare(hint))):
        value = float(value)
    refuse(key or "content", expected or described(hint), value)


def refuse(key: str, expected: str, got: Any) -> NoReturn:
    """Raise the KlrBenchError of a value that is not what was expected."""
    parts = got if isinstance(got, list) else got.values() if isinstance(got, dict) else ()
    text = SHORT.repr(got) if any(isinstance(part, list | dict) for part in parts) else repr(got)
    fail(f"{key}: expected {expected}, got {text if len(text) <= 200 else text[:200] + '...'}.")


def refuse_unknown(given: Iterable[Any], known: Iterable[str], where: str) -> None:
    """Refuse the first key that is not known, and name the nearest one; `where` ends in a dot or is empty."""
    known = list(known)
    for key in given:
        if key not in known:
            fail(f"unknown key '{where}{key}'.{nearest(str(key), known)}")


def check_choice(key: str, value: Any, known: Iterable[str]) -> None:
    """Refuse an unknown value, and name the nearest known one."""
    if value not in known:
        fail(f"{key}: unknown value {value!r}.{nearest(str(value), known)}")


def hints_of(cls: type[BaseModel]) -> dict[str, Any]:
    """Return the types of a model's fields by name."""
    cls.model_rebuild()
    return {name: field.rebuild_annotation() for name, field in cls.model_fields.items()}


def options(hint: Any) -> tuple[Any, ...]:
    """Return the types of a union, or the type alone; exact types stand before those that a number widens to."""
    union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    return tuple(sorted(typing.get_args(hint), key=lambda option: option is float)) if union else (hint,)


def bare(hint: Any) -> Any:
    """Return a type without what it is annotated with."""
    return bare(typing.get_args(hint)[0]) if typing.get_origin(hint) is Annotated else hint


def described(hint: Any) -> str:
    """Return a type in words."""
    return " or ".join(dict.fromkeys(_described(bare(option)) for option in options(bare(hint))))


def _described(hint: Any) -> str:
    if len(options(hint)) > 1:
        return described(hint)
    if typing.get_origin(hint) is Literal:
        return " or ".join(str(known).lower() if known is True else str(known) for known in typing.get_args(hint))
    return NAMES[dict if _is_model(hint) else typing.get_origin(hint) or hint]


def _is_of(hint: Any, value: Any) -> bool:
    """Return True if the outermost type of a value is that of a hint."""
    plain = bare(hint)
    if typing.get_origin(plain) is Literal:
        return any(type(value) is type(known) for known in typing.get_args(plain))
    if plain is float:
        return type(value) in (float, int)
    return type(value) is (dict if _is_model(plain) else typing.get_origin(plain) or plain)
