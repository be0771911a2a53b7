"""Content of YAML and CSV files that is held against declared keys and types, with an error that a user understands."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from klr_bench.errors import KlrBenchError, nearest

Model = TypeVar("Model", bound=BaseModel)

EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "dict_type": "keys and values",
    "mapping_type": "keys and values",
    "model_type": "keys and values",
    "list_type": "a list",
    "tuple_type": "a list",
}
LONGEST = 80
"""Characters of a refused value that a message shows."""


class Part(BaseModel):
    """A mapping with declared keys alone; values are of their type and not converted."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class PartOfMore(BaseModel):
    """A mapping of which only some keys are read; the others are of no use here and of any type."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("expected printable characters on one line")
    return text


def _named(text: str) -> str:
    if not text.strip() or any(character in text for character in "/\\") or text.startswith("."):
        raise ValueError("expected a name without slashes, which may be part of the name of a file")
    return _printable(text)


Text = Annotated[str, AfterValidator(_printable)]
Name = Annotated[str, AfterValidator(_named)]


def checked(model: type[Model], content: Any, where: str, advice: str = "") -> Model:
    """Return the content as the model; KlrBenchError says which key, what was expected and what was got."""
    try:
        return model.model_validate(content)
    except ValidationError as error:
        message = f"{where}: {_first(error, model)} {advice}".rstrip()
        raise KlrBenchError(message) from error


def read_yaml(path: Path, advice: str = "") -> Any:
    """Return the content of a YAML file: plain values, nothing is made or called.  KlrBenchError where it has none."""
    if not path.is_file():
        message = (
            f"{path}: expected a YAML file, got {'something else' if path.exists() else 'none'}. {advice}".rstrip()
        )
        raise KlrBenchError(message)
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        reason = error.strerror or str(error)
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        reason = " ".join(str(error).split()) or "nested too deeply"
    message = f"{path}: expected a YAML file, got something that cannot be read ({reason}). {advice}".rstrip()
    raise KlrBenchError(message)


def _first(error: ValidationError, model: type[BaseModel]) -> str:
    """Return a sentence about the first mistake."""
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"] if part != "[key]")
    if first["type"] == "extra_forbidden":
        known = _keys(model, first["loc"][:-1])
        return f"unknown key {place!r}.{nearest(str(first['loc'][-1]), known)}"
    if first["type"] == "missing":
        given = [str(key) for key in first["input"]] if isinstance(first["input"], Mapping) else []
        return f"expected the key {place!r}, got {_shown(given)}."
    expected = EXPECTED.get(first["type"], first["msg"])
    expected = expected.removeprefix("Value error, ").removeprefix("expected ").removeprefix("Input should be ")
    return f"{place or 'content'}: expected {expected}, got {_shown(first['input'])}."


def _shown(value: Any) -> str:
    text = repr(value) if not isinstance(value, BaseModel) else "keys and values"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _keys(model: type[BaseModel], place: tuple[Any, ...]) -> list[str]:
    """Return the declared keys of the part of a model at a place."""
    keys: Any = model
    for part in place:
        field = keys.model_fields.get(part) if isinstance(keys, type) and issubclass(keys, BaseModel) else None
        if field is not None:
            keys = field.annotation
        keys = next((found for found in (keys, *_inside(keys)) if _is_model(found)), keys)
    return list(keys.model_fields) if _is_model(keys) else []


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _inside(kind: Any) -> list[Any]:
    """Return the types that a type such as dict[str, X] | None is made of."""
    parts = list(getattr(kind, "__args__", ()))
    return parts + [inner for part in parts for inner in _inside(part)]
