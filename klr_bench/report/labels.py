"""Display names of methods and curves, and functions that format numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from klr_bench.config.presentation import Presentation
from klr_bench.metrics.metric import Metric
from klr_bench.report.measured import Method
from klr_bench.results.variants import Variant, value_text

NONE = "-"
PLUS_MINUS = " ± "
MOST_NAMED = 5  # names in a sentence


class Unit(NamedTuple):
    """Scale factor for displayed values, and suffix for the column title."""

    scale: float
    head: str


UNITS = {
    "percent": Unit(100.0, " (%)"),
    "count": Unit(1.0, ""),
    "s": Unit(1.0, " (s)"),
    "min": Unit(1 / 60, " (min)"),
    "": Unit(1.0, ""),
    "small": Unit(1.0, ""),
    "MB": Unit(1.0, " (MB)"),
}


def number(mean: float | None, std: float | None, metric: Metric) -> str:
    """Format a mean and standard deviation, with one decimal for percentages.

    A mean that is not a count has at least two significant digits, down to 0.00010.
    """
    if mean is None:
        return NONE
    scaled = mean * UNITS[metric.unit].scale
    if metric.unit == "small":
        return f"{scaled:.1e}"
    decimals = {"percent": 1, "count": 0, "": 3}.get(metric.unit, three_digits(scaled))
    if metric.unit != "count" and 0 < abs(scaled) < 1:
        decimals = max(decimals, min(5, 1 - math.floor(math.log10(abs(scaled)))))
    spread = "" if std is None else f"{PLUS_MINUS}{std * UNITS[metric.unit].scale:,.{decimals}f}"
    return f"{scaled:,.{decimals}f}{spread}"


def three_digits(number: float) -> int:
    """Return how many decimals (at most 3) show three significant digits of a number."""
    if not 0 < number < math.inf:
        return 1
    return min(3, max(0, 2 - math.floor(math.log10(number))))


def title_of(metric: Metric) -> str:
    """Return the title of a metric with its unit, such as "Accuracy (%)"."""
    return metric.title + UNITS[metric.unit].head


def variant_label(variant: Mapping[str, Any], labels: Mapping[str, str]) -> str:
    """Return the display name of a variant, from `labels` or as in "G=4, loss=logit"."""
    texts = []
    for name, value in variant.items():
        pair = f"{name}={value_text(value)}"
        texts.append(labels.get(pair, labels.get(name, f"{name}={{}}").replace("{}", value_text(value))))
    return ", ".join(filter(None, texts))


def column_label(presentation: Presentation, variant: Variant) -> str:
    """Return the display name of an algorithm with its variant, such as "OSKL G=4"."""
    return f"{presentation.label} {variant_label(variant, presentation.labels)}".strip()


def line_label(line: Method) -> str:
    """Return the display name of a method."""
    return column_label(line.presentation, line.variant)


def join_names(names: Sequence[str], *, most: int = MOST_NAMED) -> str:
    """Join the first names with commas, and state how many more there are."""
    more = [f"and {len(names) - most:,} more"] if len(names) > most else []
    return ", ".join([*names[:most], *more])


def pluralize(count: int, noun: str) -> str:
    """Return a count with its noun in singular or plural, such as "1 cell" or "2 cells"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
