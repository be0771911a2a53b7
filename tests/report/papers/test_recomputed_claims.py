"""Each comparison of each claim, computed once more from records, YAML and SciPy's tests alone."""

import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy import stats

from klr_bench.config.locations import folders
from klr_bench.metrics.labels import METRICS
from klr_bench.report.derived import with_derived
from klr_bench.report.load import read_results
from klr_bench.report.papers.reading import paper_files
from tests.report.folders import REFERENCE, reproduction

PAPERS = paper_files(folders()[:1])
BETTER = {name: metric.better for name, metric in METRICS.items()}
TIMES = {name for name in METRICS if name.endswith("_s")}
SIZES = {"n_train", "n_test", "n_features"}
BENCHMARK = {54: "Covertype 450k", 2000: "Generated, 50,000 x 2,000"}
ALIKE = {"host": "vm", "cpu": "a CPU", "load": 0.0, "status": "ok", "ratio": 0.0}
Fits = list[dict[str, Any]]


@cache
def methods(experiment: str) -> list[tuple[str, str, Fits]]:
    """Return the names and labels of data sets with the fits that count, one entry per method."""
    if experiment == "benchmark":
        return [*loops()]
    if not (REFERENCE / experiment / "records.csv").is_file():
        return []
    results = read_results(REFERENCE / experiment)
    frame = with_derived(results)
    frame["variant_text"] = [json.dumps(dict(variant), sort_keys=True) for variant in frame["variant"]]
    everything, found = frame.to_dict("records"), []
    for (dataset, *_), fits in frame.groupby(["dataset", "algorithm", "variant_text"], sort=False):
        counting = fits[fits["status"] == "ok"]
        counting = counting if len(counting) else fits[fits["status"] == "timeout"]
        rows = counting.to_dict("records")
        for row in rows:
            row |= {"experiment": experiment, "all": everything, "against": results.manifest.config.against or {}}
            row["ratio"] = row["n_test"] / row["n_train"] if results.manifest.resampled(dataset) is not False else 0.0
        if rows:
            found.append((dataset, results.manifest.dataset_label(dataset), rows))
    return found


def loops() -> Iterator[tuple[str, str, Fits]]:
    table = pd.read_csv(REFERENCE / "benchmark" / "confidence.csv")
    for d, label in BENCHMARK.items():
        rows = table[table["d"] == d].set_index("what")
        seconds = {name: rows.loc[name, "seconds"] for name in ("bcw1", "bcw2") if name in rows.index}
        seconds["arow"] = rows.loc["plain loop of arow over bcw1", "ratio"] * seconds["bcw1"]
        for name, time in seconds.items():
            fit = {"experiment": "benchmark", "algorithm": name, "params": {}, "variant": {}, "repeat": 0}
            yield "covtype_450k" if d == 54 else "generated", label, [fit | ALIKE | {"fit_time_s": time}]


def parameters(fits: Fits) -> dict[str, Any]:
    shared = {
        name: value for name, value in fits[0]["params"].items() if all(f["params"].get(name) == value for f in fits)
    }
    return shared | dict(fits[0]["variant"])


def values(fits: Fits, metric: str) -> dict[Any, float]:
    """Return the numbers of a method by split."""
    result = {}
    compares = {"accuracy_gain": "accuracy", "n_iter_ratio": "n_iter", "log_loss_ratio": "log_loss"}.get(metric)
    for fit in fits:
        split = (fit["repeat"], fit.get("seed"), fit.get("n_train"), fit.get("n_test"))
        value = fit.get(metric, np.nan)
        if compares:
            changes = dict(fit["against"].get(metric, {}))
            algorithm = changes.pop("algorithm", fit["algorithm"])
            wanted = {**fit["variant"], **changes}
            others = [
                row
                for row in fit["all"]
                if (row["dataset"], row["algorithm"], row["repeat"]) == (fit["dataset"], algorithm, fit["repeat"])
                and all(wanted.get(name, wanted) == chosen for name, chosen in row["variant"].items())
            ]
            same = not fit["against"].get(metric) or (
                others and others[0]["variant"] == fit["variant"] and algorithm == fit["algorithm"]
            )
            if same or not others:
                continue
            first, second = fit[compares], others[0][compares]
            value = first / second if metric.endswith("_ratio") else first - second
        if not np.isnan(value):
            result[split] = float(value)
    return result


def selected(chosen: dict[str, Any], pool: list[Fits]) -> list[Fits]:
    return [
        fits
        for fits in pool
        if fits[0]["algorithm"] in chosen["algorithms"]
        and (not chosen.get("experiments") or fits[0]["experiment"] in chosen["experiments"])
        and all(parameters(fits).get(name) in wanted for name, wanted in chosen.get("params", {}).items())
    ]


def rights_of(s: dict[str, Any], left: Fits, dataset: str, pools: dict[str, list[Fits]]) -> Iterator[Fits]:
    ours = parameters(left) | {"algorithm": left[0]["algorithm"]}
    if along := s.get("along"):
        others = {name for name in (left[0]["variant"] or ours) if name not in (along, "algorithm")}
        line = [
            fits
            for fits in pools[dataset]
            if fits[0]["algorithm"] == ours["algorithm"] and all(parameters(fits).get(n) == ours.get(n) for n in others)
        ]
        smaller = [fits for fits in line if float(parameters(fits)[along]) < float(ours[along])]
        if smaller:
            yield max(smaller, key=lambda fits: float(parameters(fits)[along]))
        return
    for name in [dataset] if not s.get("across") else [other for other in pools if other != dataset]:
        found = [
            fits
            for fits in (selected(s["than"], pools[name]) if "than" in s else [])
            if all(
                (parameters(fits) | {"algorithm": fits[0]["algorithm"]}).get(n) == ours.get(n)
                for n in s.get("same", ())
            )
            and (fits is not left or "than_metric" in s)
        ]
        if across := s.get("across"):
            sign = 1 if BETTER[across] == "higher" else -1
            mean = {id(f): np.mean([*values(f, across).values()]) for f in (left, *found)}
            found = [fits for fits in found if sign * mean[id(fits)] > sign * mean[id(left)]]
        if nearest := s.get("nearest"):
            far = {
                id(f): abs(
                    np.log(np.mean([*values(f, nearest).values()])) - np.log(np.mean([*values(left, nearest).values()]))
                )
                for f in found
            }
            found = [
                min((f for f in found if f[0]["algorithm"] == a), key=lambda f: far[id(f)])
                for a in dict.fromkeys(f[0]["algorithm"] for f in found)
            ]
        yield from found


def bounds(
    s: dict[str, Any], ours: dict[Any, float], theirs: dict[Any, float] | float, ratios: Any = (0.0, 0.0)
) -> tuple[float, float]:
    """Return the interval of a difference, by SciPy's tests, or one point or a factor of 1.5.

    `ratios` are n_test / n_train of both sides if repeats split the same rows again: Nadeau and Bengio widen SciPy's
    interval.
    """
    ratio = max(ratios)
    times, left = s.get("times", 1.0), np.array([*ours.values()])
    right = np.array([*theirs.values()]) if isinstance(theirs, dict) else np.array([theirs])
    if s.get("spread"):
        n, is_given = left.size, not isinstance(theirs, dict)
        ratio = stats.chi2(n - 1, scale=1 / (n - 1)) if is_given else stats.f(n - 1, right.size - 1)
        sd, other = left.std(ddof=1), times * (right[0] if is_given else right.std(ddof=1))
        return sd / np.sqrt(ratio.isf(0.025)) - other, sd / np.sqrt(ratio.isf(0.975)) - other
    spreads = [x.std() if np.isfinite(x).all() and np.ptp(x) else 0.0 for x in (left, right)]
    is_finite = np.isfinite([*left, *right]).all()  # no objective within 1 % takes infinitely long
    paired = isinstance(theirs, dict) and {*ours} == {*theirs} and left.size > 1 and is_finite
    if paired and any(spreads):
        differences = np.array([ours[split] - times * theirs[split] for split in ours])
        if np.ptp(differences) == 0:
            return differences[0], differences[0]
        return widened(stats.ttest_1samp(differences, 0).confidence_interval(0.95), 1 + differences.size * ratio)
    if not isinstance(theirs, dict) and spreads[0]:
        of_constant = stats.ttest_1samp(left - times * theirs, 0).confidence_interval(0.95)
        return widened(of_constant, 1 + left.size * ratio)
    if isinstance(theirs, dict) and not paired and is_finite and min(left.size, right.size) > 1 and any(spreads):
        if ratio:  # Welch's test with these variances
            sides = [(left, ratios[0]), (times * right, ratios[1])]
            parts = [x.var(ddof=1) * (1 / x.size + r) for x, r in sides]
            df = sum(parts) ** 2 / sum(p**2 / (x.size - 1) for p, (x, _) in zip(parts, sides, strict=True))
            center, half = left.mean() - times * right.mean(), stats.t.ppf(0.975, df) * np.sqrt(sum(parts))
            return center - half, center + half
        return tuple(stats.ttest_ind(left, times * right, equal_var=False).confidence_interval(0.95))
    first, second = left.mean(), times * right.mean()
    if np.isinf(first) and np.isinf(second):
        return -np.inf, np.inf
    rate = (
        METRICS[s["metric"]].unit == "percent" and "nonzero" not in s["metric"] and not s["metric"].endswith("_ratio")
    )
    if not {s["metric"], s.get("than_metric")}.isdisjoint(SIZES):
        return first - second, first - second
    half = 0.01 if rate else 0.5 * min(abs(first), abs(second))
    return first - second - half, first - second + half


def widened(interval: tuple[float, float], variance: float) -> tuple[float, float]:
    """Return an interval for a variance that is larger by a factor."""
    center, half = np.mean(interval), np.sqrt(variance) * np.diff(interval)[0] / 2
    return center - half, center + half


def result(s: dict[str, Any], low: float, high: float) -> bool | None:
    w = s.get("within", 0.0) * (1 + 1e-9)
    tests = {
        "above": lambda x: x > -w,
        "at least": lambda x: x >= -w,
        "below": lambda x: x < w,
        "at most": lambda x: x <= w,
        "equal to": lambda x: -w <= x <= w,
    }
    ends = {bool(tests[s["relation"]](x)) for x in (low, high, *(x for x in (-w, w) if low < x < high))}
    return ends.pop() if len(ends) == 1 else None


def alike(left: Fits, right: Fits) -> bool:
    fits = [*left, *right]
    return len({(fit["host"], fit["cpu"]) for fit in fits}) == 1 and not any(fit["load"] > 0.1 for fit in fits)


def recomputed(claim: dict[str, Any], own_data: set[str] | None) -> tuple[Counter[Any], Counter[Any], int]:
    """Return how often each (data set, outcome) occurs on the paper's data, and on other data, and what is skipped.

    The number of skipped comparisons is that on the paper's data.
    """
    paper_pools: dict[str, list[Fits]] = {}
    other_pools: dict[str, list[Fits]] = {}
    labels = {}
    for experiment in claim.get("experiments", ()):
        for dataset, label, fits in methods(experiment):
            labels[dataset] = label
            if own_data is not None and dataset not in own_data and not claim.get("any_data"):
                other_pools.setdefault(dataset, []).append(fits)
            elif not claim.get("datasets") or dataset in claim["datasets"]:
                paper_pools.setdefault(dataset, []).append(fits)
    counts: list[Counter[Any]] = [Counter(), Counter()]
    skipped = []
    for pools, counter in zip((paper_pools, other_pools), counts, strict=True):
        n_skipped = 0
        for dataset in pools:
            for s in claim.get("statements", ()):
                if s.get("datasets") and dataset not in s["datasets"]:
                    continue
                metric, second = s["metric"], s.get("than_metric", s["metric"])
                for left in selected(s["of"], pools[dataset]):
                    ours = values(left, metric)
                    pairs = [(values(f, second), f) for f in rights_of(s, left, dataset, pools)]
                    pairs = [(s["value"], None)] if "value" in s else pairs
                    for theirs, right in pairs:
                        if not ours or theirs == {}:
                            continue
                        ratios = [
                            0.0 if name in TIMES else max((fit["ratio"] for fit in side or ()), default=0.0)
                            for side, name in ((left, metric), (right, second))
                        ]
                        low, high = bounds(s, ours, theirs, ratios)
                        if {metric, second} <= TIMES:
                            if right is not None and not alike(left, right):
                                n_skipped += 1
                                continue
                            low = -np.inf if right is not None and right[0]["status"] == "timeout" else low
                            high = np.inf if left[0]["status"] == "timeout" else high
                        counter[labels[dataset], result(s, low, high)] += 1
        skipped.append(n_skipped)
    return counts[0], counts[1], skipped[0]


@pytest.mark.parametrize("name", PAPERS)
def test_every_comparison_of_every_claim(name: str) -> None:
    paper = reproduction(name)
    datasets = {line.dataset for line in paper.lines} - {*paper.paper.stand_ins} if paper.lines else None
    content = yaml.safe_load(Path(PAPERS[name] / "paper.yaml").read_text(encoding="utf-8"))
    for claim, judged in zip(content["claims"], paper.claims, strict=True):
        *expected, n_skipped = recomputed(claim, datasets)
        found = [
            Counter((comparison.dataset, comparison.holds) for comparison in comparisons)
            for comparisons in (judged.comparisons, judged.on_other_data)
        ]
        assert found == expected, claim["says"]
        made, share = sum(expected[0].values()), claim.get("share", 1.0)
        total = made + n_skipped
        true, false = (sum(n for (_, holds), n in expected[0].items() if holds is value) for value in (True, False))
        verdict = (
            "holds" if true >= share * total else "does not hold here" if total - false < share * total else "undecided"
        )
        assert judged.verdict in (verdict if made else "not judged", "fails on the paper's own table")
