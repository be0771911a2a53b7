"""Write the tables of README.md and docs/ that are made of results/reference.

    python scripts/tables.py

A table stands between the lines <!-- NAME --> and <!-- end of NAME -->; PAGES says which page has which.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd

from klr_bench.experiment.config.files import config_dir
from klr_bench.experiment.variants import variant_text
from klr_bench.report.load import read_results
from klr_bench.report.paper import paper_files
from klr_bench.report.render.layout import Grid
from klr_bench.report.render.markdown import pipe_table
from klr_bench.report.whole.claims import FAILS, HOLDS, OPEN
from klr_bench.report.whole.join import WholePaper
from klr_bench.report.whole.pages import claims_that_fail
from klr_bench.report.whole.scoreboard import counts

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

from shown import magic, other_columns, own_file, quickstart, records_columns  # noqa: E402
from tables_estimators import estimators  # noqa: E402
from tables_methods import choose  # noqa: E402
from tables_scale import benchmark, far_end, how_long, speed, stream_learners  # noqa: E402

OURS = ("oskl_default", "auxiliary_default", "dcd_default", "prototype_default")
OTHERS = ("svc", "lr_linear", "gradient_boosting", "majority")
SIZES = {10: 414, 4: 962, 2: 1821, 1: 3443}
"""Support vectors of OSKL on MAGIC in the paper, by its G: the budgets of `budget_all`."""
LAST_ALONE = ("bsgd_merging", "fogd")
"""Learners of `budget_all` without an average classifier."""
LARGE = 2000
"""Rows to train on from which times count."""


def scoreboard(results_dir: Path) -> dict[str, str]:
    """Return what became of the papers' numbers and claims, in a line a paper."""
    rows = []
    for whole in _papers(results_dir):
        found = counts(one for judged in whole.judged.values() for one in judged)
        verdicts = [claim.verdict for claim in whole.claims]
        numbers = [
            found["beside ours"],
            found["within"] + found["compatible"],
            found["explained"],
            found["off"],
            found["times"] + found["other data"],
        ]
        held = [verdicts.count(verdict) for verdict in (HOLDS, FAILS, OPEN)]
        rows.append([whole.paper.reference, *(f"{number:,}" if number else "-" for number in [*numbers, *held])])
    head = ["source", "numbers beside ours", "agree", "differ, cause known", "differ", "times or other data"]
    head += ["claims that hold", "do not hold", "cannot be judged"]
    return {"scoreboard": pipe_table(Grid(head, rows, [], []))}


def claims(results_dir: Path) -> dict[str, str]:
    """Return the claims that do not hold."""
    return {"failing": pipe_table(claims_that_fail(_papers(results_dir)))}


def _papers(results_dir: Path) -> list[WholePaper]:
    return [WholePaper(name, folder, results_dir) for name, folder in paper_files([config_dir()]).items()]


def defaults(folder: Path) -> dict[str, str]:
    """Return the tables of the experiment `defaults`: the means over its repeats, a row a data set."""
    results = read_results(folder)
    records, manifest = results.records, results.manifest
    means = records[records["status"] == "ok"].groupby(["dataset", "algorithm"]).mean(numeric_only=True)
    labels = {name: manifest.dataset_label(name) for name in manifest.config.datasets}
    names = {name: manifest.algorithm_label(name) for name in (*OURS, *OTHERS)}

    def table(metric: str, algorithms: tuple[str, ...], digits: int, scale: float = 1.0) -> str:
        rows = [
            [label, f"{means.loc[dataset]['n_train'].max():,.0f}"]
            + [_number(means, dataset, algorithm, metric, digits, scale) for algorithm in algorithms]
            for dataset, label in labels.items()
        ]
        return pipe_table(Grid(["Data set", "rows", *(names[one] for one in algorithms)], rows, [], []))

    return {
        "accuracy": table("accuracy", (*OURS, *OTHERS), 1, 100.0),
        "log_loss": table("log_loss", (*OURS, *OTHERS[1:]), 3),
        "time": table("fit_time_s", (*OURS, *OTHERS[:3]), 3),
        "verdict": pipe_table(_verdict(means, labels, names)),
    }


def _number(means: pd.DataFrame, dataset: str, algorithm: str, metric: str, digits: int, scale: float) -> str:
    found = means[metric].get((dataset, algorithm))
    return "-" if found is None or pd.isna(found) else f"{found * scale:.{digits}f}"


def _verdict(means: pd.DataFrame, labels: Mapping[str, str], names: Mapping[str, str]) -> Grid:
    """Return how each of ours compares with SVC in accuracy and time, and with logistic regression in log loss."""
    accuracy, loss = means["accuracy"].unstack(), means["log_loss"].unstack()
    times = means["fit_time_s"].unstack()[means["n_train"].unstack().max(axis=1) >= LARGE]
    rows = []
    for name in OURS:
        behind = (100 * (accuracy["svc"] - accuracy[name])).loc[list(labels)].dropna()
        ratio = (loss[name] / loss["lr_linear"]).loc[list(labels)].dropna()
        taken = (times[name] / times["svc"]).dropna()
        rows.append(
            [
                names[name],
                f"{(behind <= 1.0).sum()} of {len(behind)}",
                f"{behind.max():.1f} ({labels[behind.idxmax()]})",
                f"{(ratio <= 1.15).sum()} of {len(ratio)}",
                f"{taken.median():.2f}",
            ]
        )
    head = ["", "at most 1 point behind SVC", "most points behind", "log loss at most 1.15 x LR's", "time / SVC's"]
    return Grid(head, rows, [], [])


def budget_oskl(folder: Path) -> dict[str, str]:
    """Return the table of the learners with a budget beside OSKL, the means over the repeats."""
    rows = []
    for name in ("magic", "adult"):
        results = read_results(folder / f"budget_oskl_{name}")
        for (algorithm, variant), found in results.records.groupby(["algorithm", "variant"], sort=False):
            means = found.mean(numeric_only=True)
            last = [means["last_accuracy"], means["last_n_support"]]
            rows.append(
                [
                    results.manifest.dataset_label(name),
                    f"{results.manifest.algorithm_label(algorithm)} {variant_text(variant)}",
                    f"{100 * means['accuracy']:.1f}",
                    f"{means['n_support']:,.0f}",
                    *(["-", "-"] if math.isnan(last[0]) else [f"{100 * last[0]:.1f}", f"{last[1]:,.0f}"]),
                ]
            )
    head = ["data set", "learner", "average, %", "support vectors", "last, %", "support vectors, last"]
    return {"budget_oskl": pipe_table(Grid(head, rows, [], []))}


def budget_all(folder: Path) -> dict[str, str]:
    """Return the table of all learners with a budget: mean accuracy of the last classifier and of the average one."""
    results = read_results(folder)
    records = results.records[results.records["status"] == "ok"]
    lines: dict[tuple[str, str], dict[int, str]] = {}
    for (dataset, algorithm, variant), found in records.groupby(["dataset", "algorithm", "variant"], sort=False):
        chosen, means = dict(variant), found.mean(numeric_only=True)
        sizes = [size for size in (chosen.get("budget"), chosen.get("n_components")) if size]
        sizes = sizes or [SIZES[chosen["G"]]] if "G" in chosen else sizes or [*SIZES.values()]
        label = results.manifest.algorithm_label(algorithm) + (", refit" if chosen.get("refit") else "")
        last, average = means["last_accuracy"], means["accuracy"]
        both = (average, math.nan) if algorithm in LAST_ALONE else (last, average)
        text = " / ".join("-" if math.isnan(one) else f"{100 * one:.1f}" for one in both)
        lines.setdefault((dataset, label), {}).update(dict.fromkeys(sizes, text))
    rows = [
        [results.manifest.dataset_label(dataset), label, *(found.get(size, "") for size in SIZES.values())]
        for (dataset, label), found in lines.items()
    ]
    head = ["data set", "learner", *(f"{size:,}" for size in SIZES.values())]
    return {"budget_all": pipe_table(Grid(head, rows, [], []))}


def with_tables(text: str, made: dict[str, str]) -> str:
    """Return a text with these tables in place of those between the lines with their names."""
    for name, table in made.items():
        between = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->\n)", re.DOTALL)
        text, found = between.subn(lambda lines, table=table: f"{lines[1]}\n{table}\n\n{lines[2]}", text)
        assert found == 1, f"expected the lines <!-- {name} --> and <!-- end of {name} --> once, got {found}."
    return text


PAGES: dict[str, tuple[tuple[Callable[[Path], dict[str, str]], str], ...]] = {
    "README.md": ((scoreboard, ""),),
    "docs/index.md": ((scoreboard, ""),),
    "docs/get_started.md": ((quickstart, "quickstart"), (magic, "oskl_magic")),
    "docs/your_data.md": ((own_file, "own_file"),),
    "docs/reports/records.md": ((records_columns, ""), (other_columns, "")),
    "docs/papers/running.md": ((claims, ""),),
    "docs/methods/index.md": ((choose, ""),),
    "docs/methods/estimators.md": ((estimators, ""),),
    "docs/methods/defaults.md": ((defaults, "defaults"),),
    "docs/methods/budget_oskl.md": ((budget_oskl, ""), (budget_all, "budget_all")),
    "docs/scale/index.md": ((how_long, "benchmark"),),
    "docs/scale/clusters.md": ((far_end, "benchmark"),),
    "docs/scale/speed.md": ((benchmark, "benchmark"), (speed, "benchmark")),
    "docs/scale/streams.md": ((stream_learners, "benchmark"),),
}
"""Makers of the tables of each page, and the folder of results/reference that each reads."""


def made_for(page: str, reference: Path) -> dict[str, str]:
    """Return the tables of a page by name."""
    return {name: table for maker, folder in PAGES[page] for name, table in maker(reference / folder).items()}


if __name__ == "__main__":
    for page in PAGES:
        file = ROOT / page
        made = made_for(page, ROOT / "results" / "reference")
        file.write_text(with_tables(file.read_text(encoding="utf-8"), made), "utf-8")
