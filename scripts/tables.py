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

OURS = ("oskl_default", "auxiliary_default", "dcd_default", "prototype_default")
OTHERS = ("svc", "lr_linear", "gradient_boosting", "majority")
SAID = {"magic": "MAGIC", "adult": "a9a", "ijcnn1": "IJCNN1"}
"""Data sets by the names that the table of speed has for them."""
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


def speed(folder: Path) -> dict[str, str]:
    """Return the table of the other benchmarks, a line each."""
    names = ("loop", "grid", "budget", "sparse", "batch", "growth", "confidence", "l1")
    read = {name: pd.read_csv(folder / f"{name}.csv") for name in names}

    def of_each(name: str, key: str, form: str) -> str:
        return "; ".join(f"{SAID.get(row[key], row[key])}: {form.format(**row)}" for _, row in read[name].iterrows())

    budget = read["budget"].groupby("method", sort=False)["ratio"]
    text, large = read["sparse"].iloc[0], read["growth"].iloc[-1]
    linear = read["confidence"].set_index(["what", "n"])["seconds"]
    blocks = read["confidence"].set_index(["what", "dtype"])["ratio"]
    digits = read["l1"].query("dataset == 'mnist10k' and lambda_factor == 0.1 and wanted_gap == 1e-4")
    seconds = digits.set_index("solver")["seconds_or_ratio"].drop("best peer over prox_newton")
    ours = seconds.pop("prox_newton")
    rows = [
        (
            "one pass of NC against a compiled loop of one kernel value at a time",
            of_each("loop", "dataset", "{ratio:.1f} times faster ({engine_s:.3f} s)"),
        ),
        (
            "the 88 learners of a grid in one pass",
            of_each("grid", "dataset", "{shared_over_one:.1f} times one; apart {alone_over_shared:.0f} times as long"),
        ),
        (
            f"learners with a budget of {' and '.join(map('{:,}'.format, read['budget']['budget'].unique()))} against "
            "compiled loops, MAGIC",
            "; ".join(f"{method} {' and '.join(map('{:.1f}'.format, of))}" for method, of in budget) + " times faster",
        ),
        (
            f"Auxiliary on {text['n']:,.0f} x {text['features']:,.0f} sparse rows, polynomial kernel, "
            f"{text['support_vectors']:,.0f} support vectors",
            f"{text['fit_s']:.0f} s",
        ),
        (
            "DualCDKLR to a gap of 1e-3 (scikit-learn's SVC)",
            of_each("batch", "dataset", "{n:,} rows, {dcd_s:.1f} s and {dcd_mb:.0f} MB ({svc_s:.1f} s)").replace(
                " (nan s)", ""
            ),
        ),
        (
            f"OSKL on {large['n']:,.0f} examples of 54 features, {large['support_vectors']:,.0f} support vectors",
            f"{large['fit_s']:.0f} s, {large['ns_a_pair']:.2f} ns a kernel value",
        ),
        (
            "a pass over 450,000 rows of Covertype, 54 features: AROW, SCW-I, BCW",
            ", ".join(f"{linear[name, 450_000]:.2f}" for name in ("arow", "scw1", "bcw1")) + " s",
        ),
        (
            "a pass with the full covariance of 2,000 features, in blocks, against a compiled loop: AROW, float64 and "
            "float32",
            " and ".join(f"{blocks['plain loop over blocks, arow', kind]:.1f}" for kind in ("float64", "float32"))
            + f" times faster; 50,000 rows in {linear['arow', 50_000]:.1f} s",
        ),
        (
            "L1 penalty, 500 Fourier features of 10,000 digits, 0.1 lambda_max, to a gap of 1e-4: prox_newton",
            f"{ours:.3f} s; " + ", ".join(f"{name} {s / ours:.1f}" for name, s in seconds.items()) + " times as long",
        ),
    ]
    return {"speed": pipe_table(Grid(["what", "measured"], [list(row) for row in rows], [], []))}


def far_end(folder: Path) -> dict[str, str]:
    """Return the table of the cluster on paper."""
    found = pd.read_csv(folder / "far_end.csv").iloc[0]
    rows = [
        ["time of the driver for a cell", f"{found['driver_ms_a_cell']:.2f} ms"],
        ["records.csv made anew, by a process that has read nothing yet", f"{found['records_s']:.1f} s"],
        ["records.csv made anew, without the index of the cells", f"{found['records_without_index_s']:.1f} s"],
        ["all tables made anew, by a process that has read nothing yet", f"{found['rebuild_s']:.1f} s"],
        ["the same command again, when all is done", f"{found['again_s']:.0f} s"],
        ["memory of the driver", f"{found['peak_memory_mb']:,.0f} MB"],
        ["the folder", f"{found['folder_mb']:,.0f} MB in {found['cells']:,.0f} files"],
        ["workers lost with a cell, which ran again", f"{found['workers_lost']:.0f}"],
    ]
    head = [f"{found['cells']:,.0f} cells on {found['workers']:,.0f} workers", "measured"]
    return {"far_end": pipe_table(Grid(head, rows, [], []))}


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


def stream_learners(folder: Path) -> dict[str, str]:
    """Return the table of learners on a file that need not fit into memory."""
    found = pd.read_csv(folder / "stream_learners.csv")
    names = {"budget_oskl": "OSKL with a budget", "fogd": "FOGD", "arow": "AROW", "vowpal_wabbit": "Vowpal Wabbit"}
    rows = [
        [
            names.get(row.learner, row.learner),
            f"{row.rows_a_s / 1000:,.0f}",
            f"{row.seconds / found.seconds[0]:.1f}",
            *(
                "-" if math.isnan(row[key]) else f"{row[key]:{form}}"
                for key, form in (
                    ("learning_s", ",.0f"),
                    ("testing_s", ",.0f"),
                    ("memory_mb", ",.0f"),
                    ("log_loss", ".3f"),
                )
            ),
        ]
        for _, row in found.iterrows()
    ]
    head = [f"{found.rows[0] / 1e6:,.0f} million rows, {found.gb[0]:.1f} GB", "thousand rows a second"]
    head += ["time / that of reading", "learning, s", "predicting, s", "memory, MB", "progressive log loss"]
    return {"stream_learners": pipe_table(Grid(head, rows, [], []))}


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
    "docs/methods/defaults.md": ((defaults, "defaults"),),
    "docs/methods/budget_oskl.md": ((budget_oskl, ""), (budget_all, "budget_all")),
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
