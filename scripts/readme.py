"""Write the tables of README.md and docs/ that are made of results/reference.

    python scripts/readme.py

A table stands between the lines <!-- NAME --> and <!-- end of NAME -->.  In README.md they say what became of the
papers' numbers and claims (numbers, claims, failing) and how fast the engine is (floor, bits, threads, peers: of
results/reference/benchmark), in docs/defaults.md how the estimators do without a setting (accuracy, log_loss, time,
verdict).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from klr_bench.experiment.config.files import config_dir
from klr_bench.report.load import read_results
from klr_bench.report.paper import paper_files
from klr_bench.report.render.layout import Grid
from klr_bench.report.render.markdown import pipe_table
from klr_bench.report.whole.join import WholePaper
from klr_bench.report.whole.pages import claims_that_fail, numbers_and_claims

ROOT = Path(__file__).resolve().parents[1]
OURS = ("oskl_default", "auxiliary_default", "dcd_default", "prototype_default")
OTHERS = ("svc", "lr_linear", "gradient_boosting", "majority")
LARGE = 2000
"""Rows to train on from which times count."""


def tables(results_dir: Path) -> dict[str, str]:
    """Return the tables by name."""
    papers = [WholePaper(name, folder, results_dir) for name, folder in paper_files([config_dir()]).items()]
    numbers, claims = numbers_and_claims(papers)
    grids = {"numbers": numbers, "claims": claims, "failing": claims_that_fail(papers)}
    return {name: pipe_table(grid) for name, grid in grids.items()}


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


def benchmark(folder: Path) -> dict[str, str]:
    """Return the tables of what scripts/benchmark has measured."""

    def table(name: str, columns: Mapping[str, tuple[str, str]]) -> str:
        """Return columns of a CSV file, each with its title and format; a value that is missing is a dash."""
        found = pd.read_csv(folder / f"{name}.csv").replace("cod_rna", "cod-rna")
        flags = found.select_dtypes(bool).columns
        found[flags] = found[flags].map({True: "yes", False: "no"}.get)
        rows = [
            ["-" if pd.isna(row[column]) else form.format(row[column]) for column, (_, form) in columns.items()]
            for _, row in found.iterrows()
        ]
        return pipe_table(Grid([title for title, _ in columns.values()], rows, [], []))

    return {
        "floor": table(
            "floor",
            {
                "features": ("features", "{}"),
                "binary": ("two values", "{}"),
                "engine_ns": ("NC, ns", "{:.2f}"),
                "floor_ns": ("floor, ns", "{:.2f}"),
                "memory_ns": ("reading operands, ns", "{:.3f}"),
                "ratio": ("NC / floor", "{:.2f}"),
            },
        ),
        "bits": table(
            "bits",
            {
                "dataset": ("data set", "{}"),
                "what": ("what", "{}"),
                "products_s": ("products, s", "{:.3f}"),
                "bits_s": ("bits, s", "{:.3f}"),
                "ratio": ("times faster", "{:.1f}"),
            },
        ),
        "threads": table(
            "threads",
            {
                "case": ("case", "{}"),
                "fit_one_thread_s": ("fit with one thread, s", "{:.3f}"),
                "fit_ratio_idle": ("fit alone", "{:.2f}"),
                "predict_ratio_idle": ("prediction alone", "{:.2f}"),
                "fit_ratio_beside_busy": ("fit beside", "{:.2f}"),
                "predict_ratio_beside_busy": ("prediction beside", "{:.2f}"),
            },
        ),
        "peers": table(
            "peers",
            {
                "dataset": ("data set", "{}"),
                "n": ("rows", "{:,}"),
                "peer": ("peer", "{}"),
                "settings": ("settings", "{}"),
                "time_ratio": ("time / OSKL's", "{:.1f}"),
                "peer_accuracy": ("accuracy", "{:.1%}"),
                "oskl_accuracy": ("OSKL's", "{:.1%}"),
            },
        ),
    }


def with_tables(text: str, made: dict[str, str]) -> str:
    """Return a text with these tables in place of those between the lines with their names."""
    for name, table in made.items():
        between = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->\n)", re.DOTALL)
        text, found = between.subn(lambda lines, table=table: f"{lines[1]}\n{table}\n\n{lines[2]}", text)
        assert found == 1, f"expected the lines <!-- {name} --> and <!-- end of {name} --> once, got {found}."
    return text


if __name__ == "__main__":
    reference = ROOT / "results" / "reference"
    in_readme = tables(reference) | benchmark(reference / "benchmark")
    for page, made in (("README.md", in_readme), ("docs/defaults.md", defaults(reference / "defaults"))):
        file = ROOT / page
        file.write_text(with_tables(file.read_text(encoding="utf-8"), made), "utf-8")
