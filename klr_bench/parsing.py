"""Strict parsing of configuration values with pydantic; each error has its own message.

Models convert only integers to floats, and numbers to `Text`.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable, Iterable
from functools import cache
from typing import Annotated, Any, NoReturn, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    ValidationError,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError

from klr_bench.errors import fail, nearest
from klr_bench.printing import is_file_name

T = TypeVar("T")
Plain = dict[str, Any]
"""Unparsed keys and values from YAML, JSON or a command line."""
STRICT = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)
SHORT = reprlib.Repr()
"""Short representation of nested values, which may be huge because of YAML aliases."""
SHORT.maxlevel, SHORT.maxlist, SHORT.maxdict, SHORT.maxstring, SHORT.maxother = 3, 20, 20, 100, 100
TYPES = {
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
    "string_type": "text",
    "list_type": "a list",
    "dict_type": "keys and values",
    "mapping_type": "keys and values",
    "model_type": "keys and values",
    "callable_type": "a function",
    "finite_number": "a finite number",
}
"""Descriptions of expected values, keyed by pydantic's error types."""


class Model(BaseModel):
    """Immutable pydantic model that rejects unknown keys."""

    model_config = STRICT

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, values: Any) -> Any:
        if isinstance(values, dict) and cls.model_config["extra"] == "forbid":
            for key in values:
                if key not in cls.model_fields:
                    context = {"key": str(key), "hint": nearest(str(key), cls.model_fields)}
                    raise PydanticCustomError("unknown_key", "unknown key {key}", context)
        return values


class OpenModel(Model):
    """Immutable pydantic model that ignores unknown keys, such as those of other versions."""

    model_config = ConfigDict(extra="ignore")


class Brief(Model):
    """Pydantic model that omits null and false values when it is serialized."""

    @model_serializer(mode="wrap")
    def _brief(self, dump: SerializerFunctionWrapHandler) -> dict[str, object]:
        return {name: value for name, value in dump(self).items() if value is not None and value is not False}


def Check(expected: str, fits: Callable[[Any], bool]) -> AfterValidator:
    """Return a validator that accepts values for which `fits` returns True.

    `expected` describes these values in messages.
    """

    def check(value: Any) -> Any:
        if not fits(value):
            raise PydanticCustomError("check", "{expected}", {"expected": expected})
        return value

    return AfterValidator(check)


def _as_text(value: Any) -> Any:
    return str(value) if type(value) is int or (type(value) is float and abs(value) < float("inf")) else value


Text = Annotated[str, BeforeValidator(_as_text)]
"""Text that may be written as a number, such as the label of a class."""


def _distinct(value: Any) -> Any:
    if isinstance(value, dict) and len({str(name) for name in value}) < len(value):
        raise PydanticCustomError("check", "{expected}", {"expected": "each name once"})
    return value


DISTINCT = BeforeValidator(_distinct)
"""Annotation of mappings with `Text` keys, in which 1 and "1" are the same name."""
Yes = Annotated[bool, Check("true", lambda value: value is True)]
PRINTABLE = Check("printable characters on one line", str.isprintable)
Words = Annotated[str, PRINTABLE]
FileName = Annotated[str, Check("a name without slashes, which may be part of the name of a file", is_file_name)]


def between(low: float, high: float, note: str = "") -> AfterValidator:
    """Return a validator that accepts numbers from `low` to `high`."""
    return Check(f"from {low} to {high}{note}", lambda value: low <= value <= high)


def above(low: float, note: str = "") -> AfterValidator:
    """Return a validator that accepts numbers greater than `low`."""
    return Check(f"above {low}{note}", lambda value: value > low)


def matching(expected: str, pattern: str) -> AfterValidator:
    """Return a validator that accepts strings that match a regular expression."""
    return Check(expected, lambda text: re.fullmatch(pattern, text) is not None)


def non_empty(what: str) -> AfterValidator:
    """Return a validator that accepts lists that are not empty."""
    return Check(f"some of {what}", bool)


def parse(cls: type[T], values: Any, where: str = "") -> T:
    """Check keys and values, and return them as an object of the class `cls`.

    `where` is the dotted prefix of the keys in messages, and ends in a dot or is empty.
    Raises KlrBenchError with the dotted key, the expected and the actual value.
    """
    return parse_value(cls, values, where.rstrip("."), where)  # type: ignore[no-any-return]


def parse_value(hint: Any, value: Any, key: str, where: str | None = None) -> Any:
    """Check a single value against the type `hint` and return the parsed value.

    Raises the same errors as `parse`.
    """
    try:
        return _adapter(hint).validate_python(value)
    except ValidationError as error:
        refuse_first(error, value, key, f"{key}." if where is None else where)


@cache
def _adapter(hint: Any) -> TypeAdapter[Any]:
    is_model = isinstance(hint, type) and issubclass(hint, BaseModel)
    return TypeAdapter(hint) if is_model else TypeAdapter(hint, config=STRICT)


def refuse_first(invalid: ValidationError, value: Any, key: str, where: str) -> NoReturn:
    """Raise a KlrBenchError for the most important error that pydantic reports.

    An unknown key comes first, then the most deeply nested bad value.  Pydantic reports one error per accepted type;
    the error of the value's own type takes precedence.
    """
    errors: Any = invalid.errors(include_url=False)
    places = [_place(error, value) for error in errors]
    deepest = max(places, key=len)
    unknown = [place for place, error in zip(places, errors, strict=True) if error["type"] == "unknown_key"]
    place = (unknown or [deepest])[0]
    same = [error for error, other in zip(errors, places, strict=True) if other == place]
    error = next((error for error in same if not error["type"].endswith("_type")), same[0])
    text = "".join(place)
    key = f"{where}{text[1:]}" if text.startswith(".") else f"{key}{text}"
    kind, context, got = error["type"], error.get("ctx", {}), error["input"]
    if kind == "unknown_key":
        fail(f"unknown key '{key}'.{context['hint']}")
    if kind == "message":
        fail(f"{key}{context['text']}")
    if kind == "missing":
        fail(f"{key}: expected a value, got none.")
    if kind == "literal_error" and isinstance(got, str):
        check_choice(key, got, re.findall(r"'([^']*)'", context["expected"]))
    expected = [
        TYPES.get(error["type"]) or error.get("ctx", {}).get("expected", error["msg"])
        for error in (same if kind.endswith("_type") else [error])
    ]
    if expected == ["text"] and isinstance(got, int | float):
        expected = ["text in quotes, as in '1' in a file and \"'1'\" on a command line"]
    refuse(key or "content", " or ".join(dict.fromkeys(expected)), got)


def _place(error: Any, value: Any) -> list[str]:
    """Return the parts of the dotted key to which a pydantic error refers."""
    *_, last = location = error["loc"] or [""]
    parts = []
    for part in location:
        if isinstance(value, list) and isinstance(part, int):
            parts.append(f"[{part}]")
            value = value[part]
        elif isinstance(value, dict) and part in value:
            parts.append(f".{part}")
            value = value[part]
    extra = {"missing": f".{last}", "unknown_key": f".{error.get('ctx', {}).get('key')}"}.get(error["type"])
    extra = ": a name" if last == "[key]" else extra
    return [*parts, extra] if extra else parts


def refuse(key: str, expected: str, got: Any) -> NoReturn:
    """Raise a KlrBenchError that states the expected and the actual value of a key."""
    parts = got if isinstance(got, list) else got.values() if isinstance(got, dict) else ()
    text = SHORT.repr(got) if any(isinstance(part, list | dict) for part in parts) else repr(got)
    fail(f"{key}: expected {expected}, got {text if len(text) <= 200 else text[:200] + '...'}.")


def refuse_unknown(keys: Iterable[Any], accepted: Iterable[str], where: str) -> None:
    """Raise a KlrBenchError for the first unknown key, and suggest a similar known key."""
    accepted = list(accepted)
    for key in keys:
        if key not in accepted:
            fail(f"unknown key '{where}{key}'.{nearest(str(key), accepted)}")


def check_choice(key: str, value: Any, choices: Iterable[str]) -> None:
    """Raise a KlrBenchError for an unknown value; its message suggests a similar known value."""
    if value not in choices:
        fail(f"{key}: unknown value {value!r}.{nearest(str(value), choices)}")
