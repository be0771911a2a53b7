"""Published and measured numbers, their positions and their calibrated settings as text."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal

from klr_bench.metrics.labels import METRICS
from klr_bench.report.labels import NONE, PLUS_MINUS, UNITS
from klr_bench.report.measured import Entry
from klr_bench.report.papers.match import Match
from klr_bench.report.papers.model import SCALES, Printed
from klr_bench.report.papers.reading import FACTS
from klr_bench.report.papers.verdicts import CALIBRATED_MARK
from klr_bench.results.variants import value_text, variant_text


def part_text(line: Printed, part: str) -> str:
    """Return what a number has in a part of a layout, such as "G=10" or "Accuracy (%)"."""
    if part == "label":
        return line.label
    if part == "algorithm":
        return line.label.partition(", ")[0]
    if part == "dataset":
        return line.dataset
    if part == "metric":
        title = METRICS[line.metric].title if line.algorithm else FACTS[line.metric][0]
        return title + (UNITS[line.unit].head if line.unit in UNITS else "")
    if part == "params":
        return variant_text(line.params)
    return f"{part}={value_text(line.params[part])}" if part in line.params else ""


def calibration_sentences(matches: Iterable[Match]) -> list[str]:
    """Return one sentence for each calibrated setting that affects the given numbers.

    It includes the results without this setting, if there are any.
    """
    groups: dict[str, list[Match]] = {}
    for match in matches:
        if match.calibration:
            groups.setdefault(match.calibration.setting, []).append(match)
    sentences = []
    for setting, group in groups.items():
        others = [
            f"{position_text(match)}: {measured_text(match, match.uncalibrated)}"
            for match in group
            if match.uncalibrated
        ]
        chosen = group[0].calibration
        instead = f"In {chosen.instead_in}" if chosen and chosen.instead_in else ""
        instead = instead or (f"With {variant_text(chosen.instead)}" if chosen else "")
        sentences.append(f"{CALIBRATED_MARK} {setting}" + (f" {instead}: {'; '.join(others)}." if others else ""))
    return sentences


def measured_text(match: Match, entry: Entry | None = None) -> str:
    """Return `entry`, by default the measured value, rounded like the published number.

    It has at least two significant digits.
    """
    line, entry = match.printed, entry or match.entry
    if entry is None or entry.mean is None:
        return NONE
    scale = float(SCALES[line.unit])
    mean = entry.mean / scale
    least = 0 if line.unit == "count" or not mean else max(0, min(5, 1 - math.floor(math.log10(abs(mean)))))
    text = f"{mean:,.{max(_decimals(line.mean), least)}f}"
    if entry.std is not None and (line.std or match.not_compared is None):
        text += f"{PLUS_MINUS}{entry.std / scale:,.{max(_decimals(line.std or line.mean), least)}f}"
    return text


def _decimals(number: str) -> int:
    return max(0, -int(Decimal(number).as_tuple().exponent))


def published_text(line: Printed) -> str:
    """Return a published number as printed, with commas in large counts."""
    mean = f"{Decimal(line.mean):,}" if line.unit == "count" else line.mean
    return mean + (f"{PLUS_MINUS}{line.std}" if line.std else "")


def position_text(match: Match) -> str:
    """Return the position of a number in words, such as "MAGIC, OSKL, G 10, Support vectors"."""
    line, measured = match.printed, not match.stand_in and match.dataset_label
    return ", ".join(dict.fromkeys([measured or line.dataset, line.label, part_text(line, "metric")]))
