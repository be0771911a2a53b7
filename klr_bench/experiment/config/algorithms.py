"""From the content of configs/algorithm/<name>.yaml to an algorithm whose parameters its estimator takes."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

from klr_bench.errors import KlrBenchError
from klr_bench.experiment import targets
from klr_bench.experiment.config.models import AlgorithmConfig, AlgorithmEntry, Parameter
from klr_bench.experiment.config.parsing import parse_value, refuse, refuse_unknown
from klr_bench.experiment.targets import TARGET, Parameters

MOST_VALUES = 1000
"""The most values of one parameter in a grid or a sweep."""
MOST_EXACT = 2**53
"""The largest whole number of a parameter; a float64 represents all up to this one."""


def resolve_algorithm(stem: str, entry: AlgorithmEntry, overrides: Collection[str]) -> AlgorithmConfig:
    """Return an algorithm; parameters that the command line, `overrides`, gives one value are no longer in the grid.

    Raises KlrBenchError for a class, parameter or value that cannot be used.
    """
    where = f"algorithms.{stem}."
    estimator, grid, selected_as = entry.estimator or {}, entry.grid or {}, entry.selected_as or {}
    _check_target(estimator[TARGET], f"{where}estimator.{TARGET}")
    _check_values(estimator, estimator, f"{where}estimator.")
    check_names(estimator, grid, f"{where}grid.")
    check_names(estimator, entry.kernel_parameters or (), f"{where}kernel_parameters.")
    _check_selected_as(selected_as, estimator, grid, where)
    resolved = {
        "label": entry.label or stem,
        "estimator": estimator,
        "grid": value_lists(stem, estimator, grid, f"{where}grid.", overrides),
        "selected_as": selected_as,
    }
    return AlgorithmConfig(**dict(entry) | resolved)


def _check_selected_as(selected_as: Parameters, estimator: Parameters, grid: Parameters, where: str) -> None:
    """Refuse parameters that cannot be used, have no effect, or are selected themselves."""
    other = {**estimator, **selected_as}
    _check_target(other[TARGET], f"{where}selected_as.{TARGET}")
    _check_values(other, selected_as, f"{where}selected_as.")
    for name in selected_as.keys() & grid.keys():
        message = f"{where}selected_as.{name} and {where}grid.{name} are both given. Leave one of them out."
        raise KlrBenchError(message)
    if selected_as and not grid:
        message = f"{where}selected_as: has no effect, because {where}grid has nothing to select. Leave it out."
        raise KlrBenchError(message)


def _check_target(target: Any, key: str) -> None:
    """Refuse a target that is not the dotted name of a class that can be called with parameters."""
    try:
        targets.parameters(parse_value(str, target, key))
    except (ValueError, TypeError) as error:
        message = f"{key}: {target!r} cannot be called with parameters ({error}); expected the name of a class."
        raise KlrBenchError(message) from error
    except KlrBenchError as error:
        where = key.removesuffix(TARGET) if str(error).startswith(TARGET) else f"{key}: "
        message = str(error) if str(error).startswith(key) else f"{where}{error}"
        raise KlrBenchError(message) from error


def check_names(estimator: Parameters, names: Collection[str], where: str) -> None:
    """Refuse a name that is not a parameter of the estimator's constructor, or of a part of the estimator."""
    target = estimator[TARGET]
    known = targets.parameters(target)
    if any(parameter.any_name for parameter in known.values()):
        return
    nested = {name for name in names if targets.is_nested(name, known)}
    if nested and not targets.takes_nested(target):
        nested = set()
    refuse_unknown([name for name in names if name not in nested], known, where)


def _check_values(estimator: Parameters, values: Parameters, where: str) -> None:
    """Refuse parameters that the estimator's constructor does not take, and values that they cannot have."""
    names = [name for name in values if name != TARGET]
    check_names(estimator, names, where)
    known = targets.parameters(estimator[TARGET])
    for name in names:
        _check_value(known.get(name, targets.Parameter()), values[name], f"{where}{name}")


def _check_value(declared: targets.Parameter, value: Any, key: str) -> None:
    """Refuse infinity, true and false for a parameter that is not declared to take them: they are numbers to Python."""
    for number in value if isinstance(value, list) else [value]:
        if declared.number and not declared.boolean and isinstance(number, bool):
            refuse(key, "a number", number)
        if isinstance(number, int) and abs(number) > MOST_EXACT:
            refuse(key, f"a whole number of at most {MOST_EXACT}", number)
        if isinstance(number, float) and math.isinf(number) and number not in declared.infinite:
            refuse(key, "a finite number", number)


def value_lists(
    stem: str, estimator: Parameters, lists: Parameters, where: str, overrides: Collection[str]
) -> dict[str, list[Any]]:
    """Return the lists of values without repetitions, and without parameters that are given one value."""
    unique: dict[str, list[Any]] = {}
    known = targets.parameters(estimator[TARGET])
    for name, values in lists.items():
        single, listed = f"algorithms.{stem}.estimator.{name}", f"{where}{name}"
        if single in overrides and listed in overrides:
            message = f"{single} and {listed} are both given: one is a value, the other a list. Leave one of them out."
            raise KlrBenchError(message)
        if not isinstance(values, list) or not values:
            refuse(listed, "a list of values such as [1, 10]", values)
        if len(values) > MOST_VALUES:
            message = f"{listed}: expected at most {MOST_VALUES} values, got {len(values)}. Give fewer."
            raise KlrBenchError(message)
        for position, value in enumerate(values):
            parse_value(Parameter, value, f"{listed}[{position}]")
            _check_value(known.get(name, targets.Parameter()), value, listed)
        if single not in overrides:
            typed = [(type(value) is bool, value) for value in values]  # true is not 1
            unique[name] = [value for place, (_, value) in enumerate(typed) if typed[place] not in typed[:place]]
    return unique
