"""Sentences of the first pages: what the records say, and how to install klr-bench."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
from comparison import NO_BREAK, accuracy_beside_oskl, busy
from markup import two_digits
from papers import reproductions

from klr_bench.report.load import load_results
from klr_bench.report.papers.scoreboard import AGREE, CALIBRATED, COMPARED, POWER, counts
from klr_bench.report.statistics.paired import corrected_interval

PROJECT = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REPOSITORY = PROJECT.get("urls", {}).get("Repository", "")
"""Address of the repository, or "" while it has none."""
TABLES = "tables"
"""Experiment on many tables."""
BOOSTING = {
    "lightgbm_tuned": "LightGBM with settings chosen by cross-validation",
    "gradient_boosting": "scikit-learn's gradient boosting with its default settings, which tuning would lower",
}
"""Methods that KLR is compared with on these tables: the first that was run."""


def facts(reference: Path) -> dict[str, str]:
    """Return sentences on published numbers, SVC and gradient boosting."""
    sentences = [f"**Published numbers.** {published(reference)} [All verdicts](docs/papers/index.md)"]
    sentences.append(f"**SVC.** {svc(reference)} [Results](docs/results.md)")
    if (reference / TABLES).exists():
        sentences.append(f"**Gradient boosting.** {boosting(reference)} [Results](docs/results.md)")
    return {"facts": "\n".join(f"- {sentence}" for sentence in sentences)}


def published(reference: Path) -> str:
    """Return the shares of published results that agree, have power, and are calibrated."""
    n = counts([match for reproduction in reproductions(reference) for match in reproduction.matches])
    agree, calibrated = (n[column] / max(n[COMPARED], 1) for column in (AGREE, CALIBRATED))
    power = n[POWER] / max(n[AGREE], 1)
    return (
        f"{100 * agree:.0f}{NO_BREAK}% of the published results that can be compared agree with ours; for "
        f"{_share(power)} of these, most other methods of the same table would not agree. For "
        f"{_share(calibrated)} of the results, a setting was chosen to match them, because the paper states none or "
        "another one."
    )


def _share(of_all: float) -> str:
    return "about half" if 0.45 < of_all < 0.55 else "most" if of_all > 0.5 else "some" if of_all else "none"


def svc(reference: Path) -> str:
    """Return training time and accuracy of SVC compared with those of OSKL()."""
    data = pd.read_csv(reference / "benchmark" / "peers.csv").dropna(subset="seconds")
    rows = data[data["method"] == "SVC"]
    return (
        f"With default parameters, SVC takes {two_digits(rows['time_ratio'].median())} times as long as `OSKL()`, "
        f"online sparse kernel learning (median of {len(rows)} data sets of {rows['n'].min():,.0f} to"
        f" {rows['n'].max():,.0f} rows), and its accuracy is "
        f"{accuracy_beside_oskl(rows)}."
        f"{busy(data)}"
    )


def boosting(reference: Path) -> str:
    """Return the log loss and the time of KLR as multiples of those of boosting."""
    records = load_results(reference / TABLES)
    n_all = records["dataset"].nunique()
    name = next(name for name in BOOSTING if name in {*records["algorithm"]})
    metrics = ["log_loss", "fit_time_s"]
    means = records.query("status == 'ok'").groupby(["dataset", "algorithm"])[metrics].mean().unstack()
    means = means.dropna(subset=[(metric, method) for metric in metrics for method in ("klr", name)])
    left_out = f" (of {n_all}; on the others, a fit failed)" if len(means) < n_all else ""
    loss, seconds = (means[metric]["klr"] / means[metric][name] for metric in metrics)
    usual = records.groupby(["dataset", "algorithm"])[["load"]].median()  # a few busy fits do not change the median
    return (
        f"On {len(means)} tables{left_out} with up to {records['n_train'].max():,.0f} training rows, some of which "
        f"were seen while it was developed, `KLR()` has {_ratio(loss)} the log loss of {BOOSTING[name]}, and trains "
        f"for {two_digits(seconds.median())} times as long.{busy(usual)}"
    )


def _ratio(ratios: pd.Series) -> str:
    """Return the geometric mean of ratios, with its 95 % interval if that contains 1."""
    logs = corrected_interval(np.log(ratios))
    low, high = np.exp([logs.low, logs.high])
    interval = f" (95{NO_BREAK}% interval {low:.2f} to {high:.2f})" if low < 1 < high else ""
    return f"{np.exp(logs.mean):.2f} times{interval}"


def install(_: Path) -> dict[str, str]:
    """Return the commands that install klr-bench, with the address of the repository if any."""
    lines = {
        f"git clone {REPOSITORY} klr-bench": "the repository",
        "cd klr-bench": "into the copy",
        "scripts/quickstart": "installs into .venv, runs a first comparison, prints its table",
        ". .venv/bin/activate": "the environment, for the commands below",
    }
    before = "" if REPOSITORY else "In a copy of the repository:\n\n"
    shown = list(lines.items())[0 if REPOSITORY else 2 :]
    width = max(len(line) for line, _ in shown)
    block = "\n".join(f"{line:{width}}    # {purpose}" for line, purpose in shown)
    return {"install": f"{before}```sh\n{block}\n```"}
