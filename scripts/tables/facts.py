"""Sentences of the first pages: what the records say, and how to install klr-bench."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pandas as pd
from comparison import NO_BREAK, against_oskl, busy
from papers import reproductions
from scipy.stats import wilcoxon

from klr_bench.report.load import load_results
from klr_bench.report.papers.scoreboard import (
    AGREE,
    AS_STATED,
    CALIBRATED,
    COMPARED,
    NUMBERS,
    ORDERS,
    POWER,
    PROTOCOL,
    SPREADS,
    apart,
    counts,
)
from klr_bench.report.papers.verdicts import Kind, NotCompared, Verdict

PROJECT = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REPOSITORY = PROJECT.get("urls", {}).get("Repository", "")
"""Address of the repository, or "" while it has none."""
TABLES = "tables"
PAIR = ("klr", "gradient_boosting")
"""Experiment on many tables, and its two methods that are compared."""


def facts(reference: Path, docs: str = "docs/") -> dict[str, str]:
    """Return sentences on published numbers, SVC and gradient boosting, with links below `docs`."""
    sentences = [f"**Published numbers.** {published(reference)} [All verdicts]({docs}papers/index.md)"]
    sentences.append(f"**SVC.** {svc(reference)} [Speed]({docs}speed.md)")
    if (reference / TABLES).exists():
        sentences.append(f"**Gradient boosting.** {boosting(reference)} [All tables]({docs}methods/tables.md)")
    return {"facts": "\n".join(f"- {sentence}" for sentence in sentences)}


def facts_of_docs(reference: Path) -> dict[str, str]:
    """Return the same sentences with links from docs/index.md."""
    return facts(reference, "")


def published(reference: Path) -> str:
    """Return how many published results agree, differ, and are counted apart."""
    matches = [match for reproduction in reproductions(reference) for match in reproduction.matches]
    n, others = counts(matches), apart(matches)
    beside = ", ".join(f"{count} {name}" for kind in Kind if (count := others.get(name := kind.value)))
    times = others[ORDERS[NotCompared.TIME]].replace("(", "(95 % interval ") or 0
    agree = f"{n[AGREE]:,} of these ({100 * n[AGREE] / max(n[COMPARED], 1):.0f}{NO_BREAK}%)"
    return (
        f"Of {n[NUMBERS]:,} printed numbers, {n[COMPARED]:,} are results that can be compared, and {agree} agree; "
        f"{n[POWER]:,} agree with power, so that most other methods of the table would not agree with the number. "
        f"{n[Verdict.EXPLAINED.value]:,} differ with a cause that passes all its comparisons, "
        f"{n[Verdict.UNEXPLAINED.value]:,} without one. {n[CALIBRATED]:,} of the compared results depend on a setting "
        f"that was chosen to match them; if the paper's own protocol takes its place where it was run, for "
        f"{n[PROTOCOL]:,}, {n[AS_STATED]:,} of the {n[COMPARED]:,} agree. Counted apart, {beside} agree; "
        f"{others[SPREADS] or 0} printed standard deviations are compatible with ours, and {times} pairs of methods "
        "have their training times in the published order."
    )


def svc(reference: Path) -> str:
    """Return training time and accuracy of SVC compared with OSKL()."""
    data = pd.read_csv(reference / "benchmark" / "peers.csv").dropna(subset="seconds")
    return f"With default parameters, {against_oskl(data[data['method'] == 'SVC'])}{busy(data)}"


def boosting(reference: Path) -> str:
    """Return on how many data sets KLR, or gradient boosting, is the better one."""
    records = load_results(reference / TABLES)
    n_all = records["dataset"].nunique()
    metrics = ["log_loss", "accuracy", "fit_time_s"]
    means = records.query("status == 'ok'").groupby(["dataset", "algorithm"])[metrics].mean().unstack()
    means = means.dropna(subset=[(metric, name) for metric in metrics for name in PAIR])
    loss, accuracy = (means[metric][PAIR[0]] - means[metric][PAIR[1]] for metric in metrics[:2])
    slower = (means["fit_time_s"][PAIR[0]] / means["fit_time_s"][PAIR[1]]).median()
    left_out = f" (of {n_all}; on the others, a fit failed)" if len(means) < n_all else ""
    rows = records["n_train"].max()
    return (
        f"On {len(means)} data sets{left_out} with at most {rows:,.0f} training rows, `KLR()` has the lower log "
        f"loss on {(loss < 0).sum()} and gradient boosting with its default settings on {(loss > 0).sum()} "
        f"(means {means['log_loss'][PAIR[0]].mean():.3f} and "
        f"{means['log_loss'][PAIR[1]].mean():.3f}, Wilcoxon's p = {wilcoxon(loss).pvalue:.2g}); "
        f"`KLR()` has the higher accuracy on {(accuracy > 0).sum()} and gradient boosting on {(accuracy < 0).sum()}. "
        f"`KLR()` trains for {slower:.2g} times as long (median).{busy(records)}"
    )


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
