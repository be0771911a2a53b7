"""All verdicts over the references, recomputed from the definitions in docs/papers/index.md, and from changed records.

The recomputation uses pandas and scipy only.  It takes from the report which method a published number belongs to;
other tests are about these pairs.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy import stats

from klr_bench.config.locations import config_dir
from klr_bench.report.papers.evidence import orders
from klr_bench.report.papers.match import Match
from klr_bench.report.papers.reading import paper_files
from klr_bench.report.papers.reproduction import Reproduction
from klr_bench.report.papers.scoreboard import apart, counts
from tests.cover import usually
from tests.report.folders import REFERENCE, reproduction

PAPERS = [name for name, folder in paper_files([config_dir()]).items() if (folder / "tables.csv").is_file()]
NOT_COMPARED = {"zhang2012aaai": "the files of RCV1 have not been available"}
"""Papers whose measured numbers are all missing or of other data, and why."""
COMPARED = [paper for paper in PAPERS if paper not in NOT_COMPARED]
FEW_NUMBERS = "tan2016aaai"
"""The paper whose records are changed in every run of the tests, since its report takes the least time."""
WITH_SPREADS = [
    paper for paper in COMPARED if pd.read_csv(config_dir() / "paper" / paper / "tables.csv")["std"].notna().any()
]
SCALES = {"percent": 0.01, "min": 60.0}
PARTS = {"dataset", "algorithm", "label", "params", "metric"}
ROUNDING = 1 + 1e-9
Records = Mapping[str, pd.DataFrame]
Change = Callable[[Match, "pd.Series[float]"], Any]


def half_unit(text: str) -> float:
    """Return half a unit of the last printed digit."""
    digits, _, exponent = text.lower().partition("e")
    return 0.5 * 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))


def records_of(names: Any) -> Records:
    frames = {name: pd.read_csv(REFERENCE / name / "records.csv") for name in names}
    return {name: with_method(frame, frame["variant"].map(json.loads)) for name, frame in frames.items()}


def with_method(frame: pd.DataFrame, variants: Iterable[Any]) -> pd.DataFrame:
    """Return the records with a column that identifies the data set, the algorithm and its settings."""
    return frame.assign(method=list(map(method_of, frame["dataset"], frame["algorithm"], variants)))


def method_of(dataset: str, algorithm: str, variant: Any) -> str:
    return json.dumps([dataset, algorithm, dict(variant)], sort_keys=True)


def rows_of(frame: pd.DataFrame, dataset: str, algorithm: str, variant: Any) -> "pd.Series[bool]":
    return frame["method"] == method_of(dataset, algorithm, variant)


def counting(frame: pd.DataFrame, rows: "pd.Series[bool]") -> pd.DataFrame:
    chosen = frame[rows]
    return chosen[chosen["status"] == ("ok" if (chosen["status"] == "ok").any() else "timeout")].set_index("repeat")


def values_of(frame: pd.DataFrame, match: Match) -> "pd.Series[float]":
    """Return the values of a number's method over the repeats."""
    assert match.column is not None
    metric, (algorithm, variant) = match.printed.metric, match.column
    chosen = counting(frame, rows_of(frame, match.dataset, algorithm, variant))
    if metric == "setup_time_s":
        return (chosen["fit_time_s"] - chosen["pass_time_s"]).dropna()
    if metric == "accuracy_gain":
        first = counting(frame, rows_of(frame, match.dataset, algorithm, dict(variant) | {"two_stage": False}))
        return (chosen["accuracy"] - first["accuracy"]).dropna()
    if metric == "n_iter_ratio":
        shared = {"lam": dict(variant)["lam"]}
        fista = counting(frame, rows_of(frame, match.dataset, "l1_fista", shared))
        return (chosen["n_iter"] / fista["n_iter"]).dropna()
    return chosen[metric].dropna()


def machine_of(frame: pd.DataFrame) -> str:
    """Return the machine on which most fits of an experiment ran."""
    return str(frame[["host", "cpu"]].fillna("").agg("; ".join, axis=1).mode()[0])


def load_of(frame: pd.DataFrame, match: Match) -> float:
    """Return the highest load by other processes when the fits of a number's method began."""
    assert match.column is not None
    return float(counting(frame, rows_of(frame, match.dataset, *match.column))["load"].max())


def fact_of(frame: pd.DataFrame, match: Match) -> float:
    rows = frame[(frame["dataset"] == match.dataset) & (frame["n_train"] > 0)]
    if match.printed.metric == "lam":
        return match.printed.value
    if match.printed.metric == "n_examples":
        return float(rows["n_train"].iloc[0] + rows["n_test"].iloc[0])
    return float(rows[match.printed.metric].iloc[0])


@cache
def quantile(degrees: int) -> float:
    return float(stats.t(degrees).ppf(0.975))


def allowed(line: Any, mean: float, std: float, n: int, repeats: int | None) -> float:
    """Return the largest difference, in the printed unit, that agrees statistically."""
    if isinstance(line["std"], str):
        printed = float(line["std"]) or half_unit(line["mean"])
        return 2 * max(printed, math.hypot((printed if n < 2 else std) / n**0.5, printed / (repeats or 1) ** 0.5))
    if n > 1:
        spread = std * (1 / (repeats or 1) + 1 / n) ** 0.5
        return quantile(n - 1) * spread + half_unit(line["mean"])
    if line["metric"] in ("accuracy", "last_accuracy", "error_rate", "sparsity", "accuracy_gain"):
        return 0.01 / SCALES.get(line["unit"], 1.0)
    return 0.04 * abs(float(line["mean"]))


def verdict(line: Any, mean: float, std: float, n: int, repeats: int | None) -> str:
    difference = abs(mean - float(line["mean"]))
    if difference <= half_unit(line["mean"]) * ROUNDING:
        return "exact"
    if line["algorithm"] and difference <= allowed(line, mean, std, n, repeats) * ROUNDING:
        return "statistical"
    return "differs"


def spread(line: Any, std: float, n: int, repeats: int | None) -> bool | None:
    """Return True if some standard deviation that rounds to the printed one passes a two-sided F test."""
    if not isinstance(line["std"], str) or n < 2 or (repeats or 1) < 2:
        return None
    printed, half = float(line["std"]), half_unit(line["std"])
    ends = max(printed - half, 0.0), printed + half
    candidates = np.append(np.linspace(*ends, 4001), np.clip(std, *ends))
    distribution = stats.f(n - 1, (repeats or 1) - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(candidates == std, 1.0, (std / candidates) ** 2)
    p = 2 * np.minimum(distribution.cdf(ratio), distribution.sf(ratio))
    return bool((p >= 0.05).any())


def recomputed(paper: str, matches: Mapping[str, list[Match]], records: Records) -> pd.DataFrame:
    """Return a row per published number, with its verdict and all that is shown beside it."""
    folder = config_dir() / "paper" / paper
    lines = pd.read_csv(folder / "tables.csv", dtype=str)
    lines["algorithm"], lines["params"] = lines["algorithm"].fillna(""), lines["params"].fillna("{}").map(json.loads)
    content = yaml.safe_load((folder / "paper.yaml").read_text(encoding="utf-8"))
    expanded = [match for number in content["tables"] for match in matches[number]]
    order = [place for number in content["tables"] for place in lines.index[lines["table"] == number]]
    lines = lines.loc[order].reset_index(drop=True)
    rows = []
    for line, match in zip(lines.to_dict("records"), expanded, strict=True):
        table, scale = content["tables"][line["table"]], SCALES.get(line["unit"], 1.0)
        settings = {part for parts in table.get("layout", {}).values() for part in parts} - PARTS
        row = line | {"repeats": table.get("repeats"), "n": 0, "ours": math.nan, "s": math.nan, "on": match.dataset}
        row["place"] = (*(line[name] for name in ("table", "dataset", "metric")), *map(line["params"].get, settings))
        row["cell"] = (line["table"], line["dataset"], line["algorithm"], json.dumps(line["params"]))
        if match.experiment:
            frame = records[match.experiment]
            if line["algorithm"]:
                values = values_of(frame, match) / scale
                row |= {"n": len(values), "ours": values.mean(), "s": values.std(ddof=1)}
            else:
                row |= {"n": 1, "ours": fact_of(frame, match) / scale}
        stand_in = match.dataset in content.get("stand_ins", {})
        is_time = line["algorithm"] and line["unit"] in ("s", "min")
        row["machine"] = machine_of(records[match.experiment]) if is_time and match.experiment else ""
        row["is_busy"] = bool(is_time and match.experiment and load_of(records[match.experiment], match) > 0.1)
        row["why"] = "missing" if not row["n"] else "other data" if stand_in else "time" if is_time else ""
        arguments = row["ours"], row["s"], row["n"], row["repeats"]
        row["verdict"] = "" if row["why"] else verdict(line, *arguments)
        rows.append(row)
    return with_context(pd.DataFrame(rows), content)


def with_context(table: pd.DataFrame, content: Any) -> pd.DataFrame:
    compared = table[(table["why"] == "") & (table["algorithm"] != "")]
    sparsity = compared[compared["metric"] == "sparsity"].set_index("cell")
    kept_all = set(sparsity.index[(sparsity["ours"] == 0) & (sparsity["mean"].astype(float) == 0)])
    kinds, others, agreeing, spreads, places = [], [], [], [], dict[Any, list[Any]]()
    for row in compared.to_dict("records"):
        places.setdefault(row["place"], []).append((row["cell"], row["ours"], row["s"], row["n"], row["repeats"]))
    for row in table.to_dict("records"):
        is_compared = row["why"] == "" and row["algorithm"] != ""
        kind = "results" if row["algorithm"] else "facts"
        if is_compared and row["metric"] in ("sparsity", "n_support"):
            is_duplicate = row["metric"] == "n_support" and row["cell"] in sparsity.index
            kind = "identities" if row["cell"] in kept_all else "duplicates" if is_duplicate else kind
        kinds.append(kind)
        rest = [other for cell, *other in places[row["place"]] if cell != row["cell"]] if is_compared else []
        others.append(len(rest))
        agreeing.append(sum(verdict(row, *other) != "differs" for other in rest))
        tested = is_compared and kind != "identities"
        spreads.append(spread(row, row["s"], row["n"], row["repeats"]) if tested else None)
    table = table.assign(kind=kinds, others=others, agreeing=agreeing, spread=spreads)
    inferred = [name for numbers in content.get("inferred_spreads", []) for name in numbers["metric"]]
    agrees = table["verdict"].isin(["exact", "statistical"])
    power = agrees & (2 * table["agreeing"] < table["others"]) & ((table["verdict"] == "exact") | (table["n"] >= 5))
    return table.assign(inferred=table["metric"].isin(inferred), agrees=agrees, power=power)


def ordered(table: pd.DataFrame) -> list[tuple[Any, ...]]:
    """Return each table, data set and metric that is not compared, and its pairs in the published order, and all.

    Times of different machines are apart.
    """
    rows = table[table["why"].isin(["time", "other data"]) & (table["algorithm"] != "") & ~table["is_busy"]]
    found = []
    for (*place, _), group in rows.groupby(["table", "dataset", "on", "metric", "machine"]):
        pairs = combinations(zip(group["mean"].astype(float), group["ours"], strict=True), 2)
        signs = [
            (first[0] - second[0]) * (first[1] - second[1]) > 0 for first, second in pairs if first[0] != second[0]
        ]
        if signs:
            found.append((*map(str, place), sum(signs), len(signs)))
    return found


def check(whole: Reproduction, records: Records) -> pd.DataFrame:
    """Compare all that a report says of a paper's numbers with the recomputation, and return the latter."""
    table = recomputed(whole.name, whole.matches_by_table, records)
    names = {"EXACT": "exact", "STATISTICAL": "statistical", "NOT_COMPARED": ""}
    for match, row in zip(whole.matches, table.to_dict("records"), strict=True):
        found = names.get(match.verdict.name, "differs"), match.kind.value, match.spread_agrees, match.has_power
        assert found == (row["verdict"], row["kind"], row["spread"], row["power"]), (match, row)
        if match.others is not None:
            assert tuple(match.others) == (row["agreeing"], row["others"]), (match, row)
    results = table[(table["kind"] == "results") & (table["why"] == "")]
    n = counts(whole.matches)
    counted = (n["results compared"], n["agree"], n["agree with power"])
    assert counted == (len(results), results["agrees"].sum(), results["power"].sum())
    assert n["differs, explained"] + n["differs, unexplained"] == (results["verdict"] == "differs").sum()
    beside = apart(whole.matches)
    for inferred, name in ((False, "spreads"), (True, "inferred spreads")):
        tested = table.loc[table["spread"].notna() & (table["inferred"] == inferred), "spread"]
        assert beside[name] == (f"{tested.sum()} of {len(tested)}" if len(tested) else "")
    for kind in ("facts", "identities", "duplicates"):
        apart_from = table[(table["kind"] == kind) & (table["why"] == "")]
        assert beside[kind] == (f"{apart_from['agrees'].sum()} of {len(apart_from)}" if len(apart_from) else "")
    labels = {match.dataset: match.dataset_label for match in whole.matches}
    every = orders(whole.matches)
    assert sorted(
        (group.table, group.dataset, group.measured_on, group.metric, n.n_ordered, n.n_pairs)
        for group, n in every.items()
    ) == sorted((number, data, labels[on], *rest) for number, data, on, *rest in ordered(table))
    return table


@pytest.mark.parametrize("paper", PAPERS)
def test_verdicts_are_those_of_an_independent_implementation(paper: str) -> None:
    whole = reproduction(paper)
    check(whole, records_of(whole.results))


def changed(paper: str, change: Change | None) -> tuple[Reproduction, pd.DataFrame]:
    """Return a paper on records in which `change` replaced the values of each number, and the recomputation.

    Without `change`, all fits failed.
    """
    before = reproduction(paper)
    records = {
        name: with_method(results.records, results.records["variant"]) for name, results in before.all_results.items()
    }
    if change is None:
        records = {name: frame.assign(status="error") for name, frame in records.items()}
    for match in before.matches if change else ():
        metric = match.printed.metric
        if match.column is None or metric not in records[match.experiment]:
            continue
        frame = records[match.experiment]
        rows = rows_of(frame, match.dataset, *match.column)
        frame[metric] = frame[metric].astype(float)
        frame.loc[rows, metric] = change(match, frame.loc[rows, metric])
    whole = Reproduction(paper, config_dir() / "paper" / paper, REFERENCE)
    whole.__dict__["all_results"] = {
        name: replace(results, records=records[name]) for name, results in before.all_results.items()
    }
    return whole, check(whole, records)


def measured(table: pd.DataFrame) -> pd.DataFrame:
    """Return the compared results whose values the records have."""
    derived = table["metric"].isin(["accuracy_gain", "n_iter_ratio", "setup_time_s"])
    return table[(table["why"] == "") & (table["algorithm"] != "") & ~derived]


@pytest.mark.parametrize("paper", NOT_COMPARED)
def test_a_paper_that_is_left_out_has_no_compared_number(paper: str) -> None:
    whole = reproduction(paper)
    assert measured(recomputed(paper, whole.matches_by_table, records_of(whole.results))).empty


def tolerances(paper: str) -> Iterator[tuple[tuple[str, str], float]]:
    whole = reproduction(paper)
    for _, row in recomputed(paper, whole.matches_by_table, records_of(whole.results)).iterrows():
        if row["why"] == "" and row["algorithm"]:
            scale = SCALES.get(row["unit"], 1.0)
            yield (row["cell"], row["metric"]), scale * allowed(row, row["ours"], row["s"], row["n"], row["repeats"])


def key(match: Match) -> tuple[Any, str]:
    line = match.printed
    return (line.table, line.dataset, line.algorithm, json.dumps(line.params)), line.metric


@pytest.mark.parametrize("paper", usually(COMPARED, [FEW_NUMBERS]))
def test_each_verdict_can_be_every_other_one(paper: str) -> None:
    widths = dict(tolerances(paper))

    def moved(match: Match, values: "pd.Series[float]", target: str) -> Any:
        if match.not_compared is not None:
            return values
        half = match.printed.half_unit
        away = {
            "exact": 0.5 * half,
            "statistical": (half + widths[key(match)]) / 2,
            "differs": 3 * (half + widths[key(match)]),
        }
        return values - values.mean() + match.printed.value + away[target]

    for target in ("exact", "statistical", "differs"):
        _, table = changed(paper, lambda match, values, target=target: moved(match, values, target))
        possible = measured(table)
        if target == "statistical":
            wide = [
                widths[row["cell"], row["metric"]] > half_unit(row["mean"]) * SCALES.get(row["unit"], 1.0) * 1.001
                for _, row in possible.iterrows()
            ]
            possible = possible[wide]
        assert set(possible["verdict"]) == {target}
    _, table = changed(paper, None)
    assert set(table.loc[table["algorithm"] != "", "why"]) == {"missing"}


@pytest.mark.parametrize("paper", usually(WITH_SPREADS, [FEW_NUMBERS]))
def test_spreads_kinds_and_power_depend_on_the_records(paper: str) -> None:
    def scaled(match: Match, values: "pd.Series[float]", factor: float) -> Any:
        spread = match.printed.spread
        if not spread or not values.std():
            return values
        return values.mean() + (values - values.mean()) / values.std() * factor * spread

    for factor, compatible in ((1.0, True), (30.0, False), (1 / 30, False)):
        _, table = changed(paper, lambda match, values, factor=factor: scaled(match, values, factor))
        wide = table["std"].fillna("0").map(lambda text: float(text) > 8 * half_unit(text))
        tested = table[table["spread"].notna() & (wide | (factor >= 1)) & (table["std"].fillna("0").astype(float) > 0)]
        assert len(tested) > 3
        assert set(tested["spread"]) == {compatible}
    _, table = changed(paper, lambda match, values: values * 0 + 1e9)
    assert not table["agrees"][table["algorithm"] != ""].any()
    assert "identities" not in set(table["kind"])
    _, same = changed(paper, lambda match, values: values - values.mean() + match.printed.value)
    assert same["power"].sum() > 5


@pytest.mark.parametrize("paper", usually(PAPERS, [FEW_NUMBERS]))
def test_orders_can_be_complete_and_reversed(paper: str) -> None:
    for sign in (1, -1):
        whole, _ = changed(paper, lambda match, values, sign=sign: values * 0 + sign * match.printed.value)
        recorded = ("fit_time_s", "accuracy", "error_rate", "nonzero_fraction")
        shares = {order.share for group, order in orders(whole.matches).items() if group.metric in recorded}
        assert shares == {1.0 if sign > 0 else 0.0}


def test_a_number_that_agrees_with_all_methods_has_no_power() -> None:
    first: dict[tuple[str, ...], Match] = {}

    def shared(match: Match, values: "pd.Series[float]") -> Any:
        line = match.printed
        return values * 0 + first.setdefault((line.table, line.dataset, line.metric), match).printed.value

    whole, _ = changed("zhang2013icml", shared)
    places = {key(match) for match in first.values()}
    weak = [match.is_weak for match in whole.matches if match.not_compared is None and key(match) in places]
    assert len(weak) > 10
    assert all(weak)
