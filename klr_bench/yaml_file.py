"""Safe reading of YAML files, which cannot create objects or exhaust the memory.

The libraries are imported when they are needed, so that completion is quick.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from klr_bench.errors import KlrBenchError, error_context, fail
from klr_bench.files import read_regular
from klr_bench.printing import shortened

SMALL = 20_000
"""Maximum number of nodes with aliases expanded, as Hydra reads 4,000 per second."""
LARGE = 1_000_000
"""Maximum number of nodes of a manifest, which has several per method and data set."""
DEEPEST = 50
"""Maximum nesting depth of lists and mappings."""
LARGEST_WHOLE = 10**300
FLOAT = "tag:yaml.org,2002:float"
EXPONENT, EXPONENT_STARTS = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+\Z"), list("-+.0123456789")


def read_yaml(path: Path, most: int = SMALL) -> Any:
    """Return the content of a YAML file of at most `most` nodes and 200 bytes per node.

    As in Hydra, 1e-3 is a number and dates are strings.  Raises KlrBenchError with the path for anything but a
    regular YAML file, for duplicate keys, for tags, and for files that are too large.
    """
    import yaml

    try:
        text = read_regular(path, 200 * most).decode()
        with error_context(path):
            _check_size(text, most)
        return yaml.load(text, _loader())
    except FileNotFoundError:
        fail(f"{path}: expected a YAML file, got none.")
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = shortened(" ".join(str(error).split()), 300)
        message = f"{path}: expected a YAML file, but it cannot be read ({reason})."
        raise KlrBenchError(message) from error


def _check_size(text: str, most: int) -> None:
    """Raise KlrBenchError for YAML tags, and for too many or too deeply nested values."""
    import yaml

    sizes: dict[str | None, int] = {}
    collections: list[tuple[str | None, int]] = []
    count = 0
    for event in yaml.parse(text, _loader()):
        if isinstance(event, yaml.CollectionEndEvent):
            anchor, before = collections.pop()
            sizes[anchor] = count - before
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor in [anchor for anchor, _ in collections]:
                _refuse(event, "an alias of another value", f"*{event.anchor} inside itself")
            count += sizes.get(event.anchor, 1)
        elif isinstance(event, yaml.NodeEvent):
            tag = getattr(event, "tag", None)
            if tag is not None:
                _refuse(event, "values without a tag", tag)
            if isinstance(event, yaml.CollectionStartEvent):
                collections.append((event.anchor, count))
            else:
                sizes[event.anchor] = 1
            count += 1
        if len(collections) > DEEPEST:
            _refuse(event, f"at most {DEEPEST} levels of lists and mappings", "more")
        if count > most:
            _refuse(event, f"at most {most:,} values, counted after aliases are expanded", "more")


def _refuse(event: Any, expected: str, got: str) -> NoReturn:
    fail(f"line {event.start_mark.line + 1}: expected {expected}, got {got}.")


def dump_yaml(content: Any) -> str:
    """Return YAML that `read_yaml` reads as the same content: texts such as 12e45 are quoted."""
    import yaml

    class Dumper(yaml.SafeDumper):
        pass

    def text(dumper: Dumper, value: str) -> Any:  # a plain scalar would lose the line break \x85
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style='"' if "\x85" in value else None)

    Dumper.add_implicit_resolver(FLOAT, EXPONENT, EXPONENT_STARTS)
    Dumper.add_representer(str, text)
    return yaml.dump(content, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=110)


@cache
def _loader() -> Any:
    """Return a YAML loader class that rejects duplicate keys and integers above 10^300."""
    import yaml

    parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(parser):  # type: ignore[misc]
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys = [key for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
            seen: set[Any] = set()
            for key in keys:
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
    Loader.yaml_implicit_resolvers = {
        first: [entry for entry in entries if not entry[0].endswith(":timestamp")]
        for first, entries in Loader.yaml_implicit_resolvers.items()
    }
    Loader.add_implicit_resolver(FLOAT, EXPONENT, EXPONENT_STARTS)
    return Loader
