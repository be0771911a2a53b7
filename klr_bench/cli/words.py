"""Words of the command line: bare ones, key=value, lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from klr_bench.errors import fail, nearest
from klr_bench.files import expanded
from klr_bench.printing import is_file_name


def split_keys(arguments: Sequence[str], keys: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return the bare words, and the values of key=value; refuse a key that is not among `keys`."""
    words: list[str] = []
    values: dict[str, str] = {}
    for argument in arguments:
        key, equals, value = argument.partition("=")
        if equals or key.startswith("-"):
            if key not in keys:
                fail(f"unknown key {key!r}.{nearest(key.lstrip('-'), keys)}")
            if not equals or not value:
                fail(f"{key}: expected {key}=<value>, got none.")
            if key in values:
                fail(f"{key}: expected it once, got {values[key]!r} and {value!r}.")
            values[key] = str(expanded(value)) if value.startswith("~") else value
        else:
            words.append(argument)
    return words, values


def items(key: str, value: str) -> list[str]:
    """Return the items of ``a,b`` or ``[a,b]``; refuse a list of none."""
    bare = value[1:-1] if value.startswith("[") and value.endswith("]") else value
    items = [item.strip() for item in bare.split(",") if item.strip()]
    if not items:
        fail(f"{key}: expected some names, as in {key}=a,b, got {value!r}.")
    return list(dict.fromkeys(items))


def is_true(key: str, value: str) -> bool:
    """Return the value of a key that is true or false."""
    if value not in ("true", "false"):
        fail(f"{key}: expected true or false, got {value!r}.")
    return value == "true"


def experiments(values: Mapping[str, str]) -> list[str]:
    """Return the names of ``experiment=``, each that of a folder in results_dir."""
    names = items("experiment", values["experiment"]) if "experiment" in values else []
    for name in names:
        if not is_file_name(name):
            fail(f"experiment: expected the name of a folder in results_dir, got {name!r}.")
    return names


def results_dirs(values: Mapping[str, str]) -> list[Path]:
    """Return the results folders, two of them for ``results_dir=X,Y``, unless there is a folder of this name."""
    given = values.get("results_dir", "results")
    if "," not in given or Path(given).is_dir():
        return [Path(given)]
    found = [expanded(part) for part in items("results_dir", given)]
    if len(found) != 2:
        fail(f"results_dir={given}: expected one folder, or two as in results_dir=X,Y, got {len(found)}.")
    return found


def other_run(values: Mapping[str, str], folders: Sequence[Path], name: str) -> Path:
    """Return the folder of the run that an experiment stands beside: of ``against=``, or of the other results_dir."""
    if "against" not in values:
        return folders[1] / name
    given = values["against"]
    if len(folders) > 1:
        fail(f"against={given} and results_dir={values['results_dir']} both name the other run. Leave one out.")
    return folders[0] / given if is_file_name(given) else Path(given)
