"""YAML as plain values: nothing in a file is made or called, and none of its aliases fills the memory.

The libraries are imported when they are needed, so that completion is quick.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from klr_bench.errors import KlrBenchError, fail, located
from klr_bench.files import read_regular
from klr_bench.printing import shortened

LARGEST = 4 * 10**6
"""Bytes of a file: that of the longest experiment that ships has 8,000."""
MOST_NODES = 20_000
"""Mappings, lists, keys and values of a file, aliases counted as what they stand for; Hydra reads 4,000 a second."""
DEEPEST = 50
"""Lists and mappings inside each other."""
LONGEST = 10_000
"""Characters of one value."""
LARGEST_WHOLE = 10**300
EXPONENT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+\Z")


def read_yaml(path: Path, *, as_hydra: bool = False) -> Any:
    """Return the content of a YAML file; `as_hydra`: 1e-3 is a number and not text, and a date is text.

    Raises KlrBenchError that names the path where there is no regular file, where it is not YAML, has a key twice or a
    tag, or is larger than what a person or klr-bench writes.
    """
    import yaml

    text = read_text(path)
    try:
        return yaml.load(text, _loader(as_hydra))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _not_yaml(path, error) from error


def read_text(path: Path) -> str:
    """Return the text of a YAML file after a look at its size, without making values of it.  Raises as `read_yaml`."""
    import yaml

    try:
        text = read_regular(path, LARGEST).decode()
        with located(path):
            _check_size(text)
    except FileNotFoundError:
        fail(f"{path}: expected a YAML file, got none.")
    except (yaml.YAMLError, ValueError) as error:
        raise _not_yaml(path, error) from error
    return text


def _not_yaml(path: Path, error: Exception) -> KlrBenchError:
    reason = shortened(" ".join(str(error).split()), 300)
    return KlrBenchError(f"{path}: expected a YAML file, got something that cannot be read ({reason}).")


def _check_size(text: str) -> None:
    """Refuse tags, and more, deeper or longer values than anybody writes.  Only the events of the parser are read."""
    import yaml

    anchored: dict[str, int] = {}
    anchors: list[str | None] = []
    counts = [0]
    for event in yaml.parse(text, _parser()):
        if isinstance(event, yaml.CollectionStartEvent):
            anchors.append(event.anchor)
            counts.append(1)
        elif isinstance(event, yaml.CollectionEndEvent):
            count, anchor = counts.pop(), anchors.pop()
            counts[-1] += count
            anchored |= {anchor: count} if anchor else {}
        elif isinstance(event, yaml.ScalarEvent):
            counts[-1] += 1
            anchored |= {event.anchor: 1} if event.anchor else {}
            if len(event.value) > LONGEST:
                _refuse(event, f"a value of at most {LONGEST:,} characters", f"one of {len(event.value):,}")
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor in anchors:
                _refuse(event, "an alias of something else", f"*{event.anchor} inside itself")
            counts[-1] += anchored.get(str(event.anchor), 1)
        tag = getattr(event, "tag", None)
        if tag is not None:
            _refuse(event, "values without a tag", tag)
        if len(anchors) > DEEPEST:
            _refuse(event, f"at most {DEEPEST} lists and mappings inside each other", "more")
        if sum(counts) > MOST_NODES:
            _refuse(event, f"at most {MOST_NODES:,} values, with aliases written out", "more")


def _refuse(event: Any, expected: str, got: str) -> NoReturn:
    fail(f"line {event.start_mark.line + 1}: expected {expected}, got {got}.")


@cache
def _parser() -> Any:
    """Return the loader of the fast library where it is installed."""
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@cache
def _loader(as_hydra: bool) -> Any:
    """Return a loader of plain values that refuses a key that comes twice and a whole number without end."""
    import yaml

    class Loader(_parser()):  # type: ignore[misc]
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            own = [key for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
            seen: set[Any] = set()
            for key in own:
                name = self.construct_object(key, deep=True)
                if not isinstance(name, Hashable):
                    break  # refused below
                if name in seen:
                    raise yaml.constructor.ConstructorError(None, None, f"{name!r} comes twice", key.start_mark)
                seen.add(name)
            return super().construct_mapping(node, deep)

        def construct_yaml_int(self, node: Any) -> Any:
            number = super().construct_yaml_int(node)
            if abs(number) > LARGEST_WHOLE:
                raise yaml.constructor.ConstructorError(None, None, "a number of more than 300 digits", node.start_mark)
            return number

    Loader.add_constructor("tag:yaml.org,2002:int", Loader.construct_yaml_int)
    if as_hydra:
        Loader.yaml_implicit_resolvers = {
            first: [entry for entry in entries if not entry[0].endswith(":timestamp")]
            for first, entries in Loader.yaml_implicit_resolvers.items()
        }
        Loader.add_implicit_resolver("tag:yaml.org,2002:float", EXPONENT, list("-+.0123456789"))
    return Loader
