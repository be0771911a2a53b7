"""Convert the treatment of columns by `TablePreparer` to nodes of an ONNX graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from klr_bench.datasets.amounts import MISSING, NO_TIME
from klr_bench.datasets.column import DATE, LEAVE_OUT, NUMBER, ORDERED, UNKNOWN, Column
from klr_bench.datasets.columns import truth_values
from klr_bench.datasets.preprocessing import Scaling


def onnx_features(graph: Any, columns: Sequence[Column], scaling: Scaling) -> tuple[str, list[tuple[str, bool]]]:
    """Add nodes that prepare the columns of a table.

    Return the name of their result, and the inputs.  `graph` has the methods `node` and `constant` of `to_onnx`.  Each
    input has shape (n_samples, 1): a text column, a column of truth values or an ordered category is a string, and a
    number, or a part of a date, a float64.  The inputs are pairs of a name and whether it is a string.
    """
    inputs: list[tuple[str, bool]] = []
    features: list[str] = []
    for column in columns:
        if column.kind == LEAVE_OUT:
            continue
        if column.kind in (NUMBER, DATE):
            names = column.feature_names()
            inputs += [(name, False) for name in names]
            features += names
        elif column.whole:
            inputs.append((column.name, False))
            features.append(_of_numbers(graph, column))
        else:
            inputs.append((column.name, True))
            features.append(_coded(graph, column))
    rows = graph.node("Concat", *features, axis=1)
    return _scaled(graph, rows, scaling), inputs


def _coded(graph: Any, column: Column) -> str:
    """Return the name of the float64 features of a column of strings."""
    if column.kind == ORDERED:
        codes = {text: float(place) for place, text in enumerate(column.values)}
        return _looked_up(graph, column, dict.fromkeys(_missing_marks(), np.nan) | codes, np.nan)
    if column.zero is not None:
        return _looked_up(graph, column, _spellings({column.zero: 0.0, column.values[0]: 1.0}), UNKNOWN)
    if column.classes:
        features = []
        for *shares, other in zip(*column.shares, strict=True):
            values = _spellings(dict(zip(column.values, shares, strict=True)))
            values = dict.fromkeys(_missing_marks(), values.get("", other)) | values
            features.append(_looked_up(graph, column, values, other))
        return str(graph.node("Concat", *features, axis=1))
    places = _spellings({text: float(min(place, len(column.values))) for place, text in enumerate(column.known)})
    if "" in places:
        places = dict.fromkeys(_missing_marks(), places[""]) | places
    codes_of_rows = _looked_up(graph, column, places, -1.0)
    equal = graph.node("Equal", codes_of_rows, graph.constant(np.arange(column.width, dtype=np.float64)[None]))
    return str(graph.node("Cast", equal, to=graph.double))


def _of_numbers(graph: Any, column: Column) -> str:
    """Return the name of the float64 features of a column of numbers that is treated as text."""
    numbers = [value for value in column.known if value]
    codes = column.codes(numbers + [""] * ("" in column.known))
    equal = graph.node("Equal", column.name, graph.constant(np.array([numbers], dtype=np.float64)))
    if len(codes) > len(numbers):
        equal = graph.node("Concat", equal, graph.node("IsNaN", column.name), axis=1)
    which = graph.node("Cast", equal, to=graph.double)
    return str(graph.node("MatMul", which, graph.constant(np.eye(column.width)[codes])))


def _missing_marks() -> list[str]:
    return sorted({mark for text in MISSING for mark in (text, text.upper(), text.capitalize())} | {"NaN", NO_TIME})


def _spellings(values: dict[str, float]) -> dict[str, float]:
    """Return the values with the usual spellings of truth values."""
    ways = {
        way(text): truth
        for text, truth in truth_values({*values} - {""}).items()
        for way in (str, str.upper, str.capitalize)
    }
    return values | {way: values[truth] for way, truth in ways.items() if truth in values}


def _looked_up(graph: Any, column: Column, values: dict[str, float], default: float) -> str:
    looked_up = graph.node(
        "LabelEncoder",
        column.name,
        domain="ai.onnx.ml",
        keys_strings=list(values),
        values_floats=list(values.values()),
        default_float=default,
    )
    return str(graph.node("Cast", looked_up, to=graph.double))


def _scaled(graph: Any, rows: str, scaling: Scaling) -> str:
    """Impute and scale rows (n, d) as `Scaling.transform` does."""
    imputer, constant, node = scaling.imputer, graph.constant, graph.node
    is_missing = node("IsNaN", rows)
    filled = node("Where", is_missing, constant(imputer.statistics_[None].astype(np.float64)), rows)
    if len(flags := imputer.indicator_.features_):
        chosen = node("Gather", node("Cast", is_missing, to=graph.double), constant(flags.astype(np.int64)), axis=1)
        filled = node("Concat", filled, chosen, axis=1)
    if scaling.scaler is None:
        return str(filled)
    shape = np.zeros(len(imputer.statistics_) + len(flags))
    moved = node("Sub", filled, constant(np.broadcast_to(scaling.origin, shape.shape).astype(np.float64)))
    moved = node("Mul", moved, constant(np.broadcast_to(scaling.units, shape.shape).astype(np.float64)))
    if len(scaling.columns):
        moved = _ranked(graph, moved, scaling, len(shape))
    scaler = scaling.scaler
    if hasattr(scaler, "mean_"):
        moved = node("Div", node("Sub", moved, constant(scaler.mean_)), constant(scaler.scale_))
    else:
        moved = node("Add", node("Mul", moved, constant(scaler.scale_)), constant(scaler.min_))
    return str(node("Cast", node("Cast", moved, to=graph.float), to=graph.double))


def _ranked(graph: Any, rows: str, scaling: Scaling, width: int) -> str:
    """Replace some features by their ranks among the quantiles of the training rows."""
    parts = []
    for place in range(width):
        part = graph.node("Gather", rows, graph.constant(np.array([place])), axis=1)
        found = np.flatnonzero(scaling.columns == place)
        parts.append(_rank(graph, part, scaling.ranks, int(found[0])) if len(found) else part)
    return str(graph.node("Concat", *parts, axis=1))


def _rank(graph: Any, values: str, ranks: Any, place: int) -> str:
    """Return the ranks of values (n, 1) as scikit-learn's QuantileTransformer.

    They are linear between distinct quantiles.  At a quantile that occurs several times, the rank is the mean of its
    first and its last one.
    """
    knots, first, last, slopes = knots_of(ranks.quantiles_[:, place], ranks.references_)
    node, constant = graph.node, graph.constant
    n_below = node("Cast", node("GreaterOrEqual", values, constant(knots[None, 1:])), to=graph.int64)
    interval = node("ReduceSum", n_below, constant(np.array([1])), keepdims=1)
    begin, low, high, slope = (node("Gather", constant(array), interval) for array in (knots, first, last, slopes))
    between = node("Add", high, node("Mul", node("Sub", values, begin), slope))
    middle = node("Mul", node("Add", low, high), constant(np.float64(0.5)))
    return str(node("Where", node("Equal", values, begin), middle, between))


def knots_of(quantiles: NDArray[Any], references: NDArray[Any]) -> tuple[NDArray[np.float64], ...]:
    """Return the distinct quantiles, their first and last ranks, and the slopes between.

    The first entry of each is for values below all quantiles, whose rank is 0.
    """
    knots, begin, counts = np.unique(quantiles.astype(np.float64), return_index=True, return_counts=True)
    first, last = references[begin].astype(np.float64), references[begin + counts - 1].astype(np.float64)
    slopes = np.append((first[1:] - last[:-1]) / np.diff(knots), 0.0)
    low, high = np.concatenate([[0.0], first]), np.concatenate([[0.0], last])
    low[-1] = high[-1] = 1.0
    low[1] = -high[1]  # the lowest value has the rank 0, also if it occurs several times
    return np.concatenate([[knots[0]], knots]), low, high, np.concatenate([[0.0], slopes])
