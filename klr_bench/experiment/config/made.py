"""Functions that make data: which ones a YAML file may name, and what they take.

They are those of klr-bench, and those that a module of the user lists in ``DATA_SOURCES = ("name", ...)``.  No other
function is ever called for a data set.  The list is read from the source of the module, which is imported only when
data is made.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from klr_bench.errors import KlrBenchError, nearest
from klr_bench.experiment.config.generated import MAKERS, MOST_NUMBERS
from klr_bench.experiment.config.typed import parse
from klr_bench.experiment.keys import source_path
from klr_bench.experiment.targets import TARGET, build

LISTED = "DATA_SOURCES"
MAKERS_FILE = "klr_bench/experiment/config/generated.py"


def make(spec: Mapping[str, Any], where: str, **given: Any) -> Any:
    """Call the function of a spec, which makes data, with the parameters of the spec and with `given`."""
    check_made(spec, where)
    return build(spec, **given)


def check_making(dataset: Mapping[str, Any], where: str) -> None:
    """Refuse a data set whose functions may not be called, or that declares other sizes than it asks for.

    `where`, which ends in a dot, stands before the keys in messages.
    """
    source = dataset["source"]
    for spec, place in ((source.get("generator"), f"{where}source.generator."), (dataset["derive"], f"{where}derive.")):
        if spec:
            check_made(spec, place)
    generator = source.get("generator") or {}
    for key in ("n_samples", "n_features"):
        declared, asked = source.get(key), generator.get(key)
        if declared is not None and asked is not None and declared != asked:
            message = (
                f"{where}source.{key}={declared}: expected the same as {where}source.generator.{key}, got {asked}. "
                "Change both."
            )
            raise KlrBenchError(message)
    rows, n_train = source.get("n_samples"), source.get("n_train")
    if rows is not None and n_train is not None and n_train >= rows:
        message = f"{where}source.n_train: expected less than n_samples={rows}, for rows to test on, got {n_train}."
        raise KlrBenchError(message)


def check_made(spec: Mapping[str, Any], where: str) -> None:
    """Refuse a function that makes no data, and parameters that one of klr-bench does not take.

    `where`, which ends in a dot or is empty, stands before the keys in messages.  Nothing is imported or called.
    """
    target = str(spec[TARGET])
    module, _, name = target.rpartition(".")
    if target in MAKERS:
        made = parse(MAKERS[target], {key: spec[key] for key in spec if key != TARGET}, where)
        expected, fits = made.limits()
        if fits and made.n_numbers() > MOST_NUMBERS:
            expected, fits = f"at most {MOST_NUMBERS:,} numbers", False
        if not fits:
            said = ", ".join(f"{key}={value}" for key, value in spec.items() if key != TARGET)
            message = f"{where.rstrip('.') or name}: expected {expected}, got {said}."
            raise KlrBenchError(message)
    elif name not in _listed(module):
        known = [*_listed(module), *(maker.rpartition(".")[2] for maker in MAKERS if maker.startswith(f"{module}."))]
        own = f" A function of your own is listed in its module: {LISTED} = ({name!r},)."
        ours = f" A new function of klr-bench has an entry of MAKERS in {MAKERS_FILE}."
        advice = nearest(name, known) + (ours if module.startswith("klr_bench.") else own)
        message = f"{where}{TARGET}: expected a function that makes data, got {target!r}.{advice}"
        raise KlrBenchError(message)


def _listed(module: str) -> tuple[str, ...]:
    """Return the names of the functions that a module lists; none where there is no such module."""
    path = source_path(module)
    if path is None or path.suffix != ".py":
        return ()
    try:
        body = ast.parse(path.read_bytes()).body
    except (SyntaxError, ValueError, RecursionError) as error:
        message = f"{path}: this is not Python: {error}"
        raise KlrBenchError(message) from error
    for node in body:
        if isinstance(node, ast.Assign) and LISTED in [getattr(target, "id", None) for target in node.targets]:
            names = [getattr(name, "value", None) for name in getattr(node.value, "elts", [])]
            return tuple(name for name in names if isinstance(name, str))
    return ()
