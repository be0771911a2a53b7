"""Tables of docs/scale and docs/how_it_works: results of scripts/benchmark, and estimates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
from markup import two_digits
from methods import TITLES

from klr_bench.report.labels import pluralize
from klr_bench.report.load import load_results
from klr_bench.report.render.document import Grid, pipe_table

LEARNERS = {"budget_oskl": "OSKL with a budget", "fogd": "FOGD", "arow": "AROW", "vowpal_wabbit": "Vowpal Wabbit"}
"""Titles of the learners on streams."""


SIZES = ((10_000, 1_000), (100_000, 10_000), (1_000_000, 100_000))
"""Numbers of rows and of final support vectors in the table of estimated times."""


def how_long(folder: Path) -> dict[str, str]:
    """Return estimated times of passes.

    A pass needs rows x support vectors / 2 kernel values if support vectors are added evenly over the pass.
    """
    rows = [
        [
            f"{row.features}" + (", binary" if row.binary else ""),
            f"{row.engine_ns:.2f}",
            *(duration(n * support / 2 * row.engine_ns / 1e9) for n, support in SIZES),
        ]
        for row in pd.read_csv(folder / "floor.csv").itertuples()
    ]
    sizes = [f"{n:,} rows, {support:,} support vectors" for n, support in SIZES]
    return {"estimate": pipe_table(Grid(["features", "ns per kernel value", *sizes], rows))}


def duration(seconds: float) -> str:
    """Return a duration with two significant digits in a suitable unit."""
    unit, size = next(pair for pair in (("h", 3600), ("min", 60), ("s", 1), ("ms", 1e-3)) if seconds >= pair[1])
    return f"{two_digits(seconds / size)} {unit}"


def _columns(data: pd.DataFrame, columns: Mapping[str, tuple[str, str]]) -> str:
    """Return formatted columns as a table; missing values are dashes."""
    data = data.replace(TITLES)
    flags = data.select_dtypes(bool).columns
    data[flags] = data[flags].map({True: "yes", False: "no"}.get)
    rows = [
        ["-" if pd.isna(row[column]) else form.format(row[column]) for column, (_, form) in columns.items()]
        for _, row in data.iterrows()
    ]
    return pipe_table(Grid([title for title, _ in columns.values()], rows, [], []))


FASTER = 0.9
"""Time on two cores divided by that on one, up to which a learner is in the table of threads."""
COLUMNS = {
    "floor": {
        "features": ("features", "{}"),
        "binary": ("binary", "{}"),
        "engine_ns": ("NC, ns", "{:.2f}"),
        "floor_ns": ("separate steps, ns", "{:.2f}"),
        "memory_ns": ("reading operands, ns", "{:.3f}"),
        "ratio": ("NC / separate steps", "{:.2f}"),
    },
    "bits": {
        "dataset": ("data set", "{}"),
        "what": ("task", "{}"),
        "products_s": ("products, s", "{:.3f}"),
        "bits_s": ("bits, s", "{:.3f}"),
        "ratio": ("times faster", "{:.1f}"),
    },
    "threads": {
        "case": ("case", "{}"),
        "fit_one_thread_s": ("fit with one thread, s", "{:.3f}"),
        "fit_ratio_idle": ("fit, two threads / one", "{:.2f}"),
        "predict_ratio_idle": ("prediction", "{:.2f}"),
    },
    "loop": {
        "dataset": ("data set", "{}"),
        "n": ("rows", "{:,}"),
        "features": ("features", "{}"),
        "loop_s": ("compiled loop, s", "{:.3f}"),
        "engine_s": ("engine, s", "{:.3f}"),
        "ratio": ("times faster", "{:.1f}"),
        "largest_difference": ("largest difference", "{:.0e}"),
    },
    "grid": {
        "dataset": ("data set", "{}"),
        "n_learners": ("learners", "{}"),
        "one_nc_s": ("one NC, s", "{:.3f}"),
        "shared_s": ("all in one pass, s", "{:.3f}"),
        "alone_s": ("separate passes, s", "{:.2f}"),
        "shared_over_one": ("one pass / one NC", "{:.1f}"),
        "alone_over_shared": ("separate / one pass", "{:.1f}"),
    },
}
"""Columns of the tables, with title and format, by result file of scripts/benchmark."""


def measured(folder: Path, *names: str) -> dict[str, str]:
    """Return result files of scripts/benchmark as tables; missing values are dashes."""
    return {name: _columns(pd.read_csv(folder / f"{name}.csv"), COLUMNS[name]) for name in names}


def machine(folder: Path) -> dict[str, str]:
    """Return the table of commits, machine and versions, with numbers of parts if they differ."""
    parts = pd.read_csv(folder / "machine.csv", dtype=str).fillna("unknown")
    rows = []
    for key in parts.columns.drop("part"):
        counts = parts[key].value_counts()
        values = [
            value if len(counts) == 1 else f"{value} ({pluralize(count, 'part')})" for value, count in counts.items()
        ]
        rows.append([key, "; ".join(values)])
    return {"machine": pipe_table(Grid(["measured on", ""], rows, [], []))}


def threads(folder: Path) -> dict[str, str]:
    """Return the table of fits and predictions that two cores make faster, on an idle machine."""
    data = pd.read_csv(folder / "threads.csv")
    ratios = data[["fit_ratio_idle", "predict_ratio_idle"]]
    return {"threads": _columns(data[ratios.min(axis=1) < FASTER], COLUMNS["threads"])}


def few_rows(folder: Path) -> dict[str, str]:
    """Return the times of fits to few rows, and of one row at a time."""
    data = pd.read_csv(folder / "small.csv")
    svc = data.dropna(subset="svc_ms").drop_duplicates("n").assign(learner="SVC", ms=lambda rows: rows["svc_ms"])
    times = pd.concat([data, svc]).pivot_table("ms", "learner", ["what", "n"], sort=False)
    head = ["milliseconds", *(f"{what}, {n:,} rows" for what, n in times.columns)]
    rows = [[name, *("-" if math.isnan(ms) else f"{ms:.1f}" for ms in row)] for name, *row in times.itertuples()]
    return {"small": pipe_table(Grid(head, rows))}


def blocks(folder: Path) -> dict[str, str]:
    """Return the tables that compare a pass with separate steps and with a loop."""
    return measured(folder, "floor", "loop")


def many(folder: Path) -> dict[str, str]:
    """Return the table of a grid of learners trained in one pass."""
    return measured(folder, "grid")


def bits(folder: Path) -> dict[str, str]:
    """Return the table of binary features stored as bits."""
    return measured(folder, "bits")


def speed(folder: Path) -> dict[str, str]:
    """Return the table of the other benchmarks, with one row each."""
    names = ("budget", "features", "sparse", "batch", "growth", "confidence", "l1")
    read = {name: pd.read_csv(folder / f"{name}.csv") for name in names}

    def of_each(name: str, key: str, form: str) -> str:
        return "; ".join(f"{TITLES.get(row[key], row[key])}: {form.format(**row)}" for _, row in read[name].iterrows())

    budget = read["budget"].groupby("method", sort=False)["ratio"]
    budgets = read["budget"]["budget"].dropna().unique()  # ALMA and DUOL have none
    features = [
        f"{method.upper()} in {kind}, {', '.join(map('{:,}'.format, of['size']))}: "
        + ", ".join(map("{:.1f}".format, of["ratio"]))
        for (method, kind), of in read["features"].groupby(["method", "dtype"], sort=False)
    ]
    text, large = read["sparse"].iloc[0], read["growth"].iloc[-1]
    linear = read["confidence"].set_index(["what", "n"])["seconds"]
    blocks = read["confidence"].set_index(["what", "dtype"])["ratio"]
    digits = read["l1"].query("dataset == 'mnist10k' and lambda_factor == 0.1 and wanted_gap == 1e-4")
    seconds = digits.set_index("solver")["seconds_or_ratio"].drop("best peer over prox_newton")
    ours = seconds.pop("prox_newton")
    large_l1 = read["l1"].query("dataset == 'cod-rna'").set_index("solver")
    sparse = _mean(folder.parent / "prototypes_sparse", "prototype", solver="alternating", validation_fraction=0)
    rows = [
        (
            f"learners with a budget of {' and '.join(map('{:,.0f}'.format, budgets))}, against compiled loops, MAGIC",
            "; ".join(f"{method} {' and '.join(map('{:.1f}'.format, of))}" for method, of in budget) + " times faster",
        ),
        (
            "gradient descent on Fourier (FOGD) or Nystroem features (NOGD), against compiled loops, MAGIC",
            "; ".join(features) + " times faster",
        ),
        (
            f"Auxiliary on {text['n']:,.0f} x {text['features']:,.0f} sparse rows, polynomial kernel, "
            f"{text['support_vectors']:,.0f} support vectors",
            f"{text['fit_s']:.0f} s",
        ),
        (
            "DualCDKLR to a gap of 1e-3 (scikit-learn's SVC)",
            of_each("batch", "dataset", "{n:,} rows, {dcd_s:.1f} s ({svc_s:.1f} s)").replace(" (nan s)", ""),
        ),
        (
            f"OSKL on {large['n']:,.0f} examples of 54 features, {large['support_vectors']:,.0f} support vectors",
            f"{large['fit_s']:.0f} s, {large['ns_a_pair']:.2f} ns per kernel value",
        ),
        (
            "a pass over 450,000 rows of Covertype, 54 features: AROW, SCW-I, BCW",
            ", ".join(f"{linear[name, 450_000]:.2f}" for name in ("arow", "scw1", "bcw1")) + " s",
        ),
        (
            "a pass of AROW with the full covariance of 2,000 features, against a compiled loop: float64 and float32",
            " and ".join(f"{blocks['plain loop over blocks, arow', kind]:.1f}" for kind in ("float64", "float32"))
            + f" times faster; 50,000 rows in {linear['arow', 50_000]:.1f} s",
        ),
        (
            "L1 penalty of lambda_max / 10, 10,000 images with 500 Fourier features, to a gap of 1e-4: prox_newton",
            f"{ours:.3f} s; " + ", ".join(f"{name} {s / ours:.1f}" for name, s in seconds.items()) + " times as long",
        ),
        (
            "L1 penalty, 326,152 rows of cod-rna, 0.001 lambda_max",
            "; ".join(
                f"{solver} {row['seconds_or_ratio']:.1f} s to a gap of {row['gap']:.1g}"
                for solver, row in large_l1.iterrows()
            ),
        ),
        (
            f"PrototypeKLR with lazy updates, ten alternating passes over {sparse['n_train']:,.0f} x "
            f"{sparse['n_features']:,.0f} binary features, {sparse['n_support']:,.0f} prototypes",
            f"{sparse['fit_time_s']:.1f} s",
        ),
    ]
    return {"speed": pipe_table(Grid(["task", "result"], [list(row) for row in rows], [], []))}


def _mean(folder: Path, algorithm: str, **variant: object) -> pd.Series:
    """Return the means over repeats of the first variant of a learner with these values."""
    records = load_results(folder).query("status == 'ok' and algorithm == @algorithm")
    of = [settings for settings in records["variant"] if variant.items() <= dict(settings).items()]
    return records[records["variant"] == of[0]].mean(numeric_only=True)


def far_end(folder: Path) -> dict[str, str]:
    """Return the table of the simulated cluster."""
    data = pd.read_csv(folder / "far_end.csv").iloc[0]
    rows = [
        ["time of the driver per cell", f"{data['driver_ms_a_cell']:.2f} ms"],
        ["rebuilding records.csv in a new process", f"{data['records_s']:.1f} s"],
        ["rebuilding records.csv without the index of the cells", f"{data['records_without_index_s']:.1f} s"],
        ["rebuilding all tables in a new process", f"{data['rebuild_s']:.1f} s"],
        ["repeating the command when all cells are done", f"{data['again_s']:.0f} s"],
        ["memory of the driver", f"{data['peak_memory_mb']:,.0f} MB"],
        ["results folder", f"{data['folder_mb']:,.0f} MB in {data['cells']:,.0f} files"],
        ["workers lost with a cell, which was run again", f"{data['workers_lost']:.0f}"],
    ]
    head = [f"{data['cells']:,.0f} cells on {data['workers']:,.0f} workers", "measured"]
    return {"far_end": pipe_table(Grid(head, rows))}


def stream_learners(folder: Path) -> dict[str, str]:
    """Return the table of learners on a file that may be larger than memory."""
    data = pd.read_csv(folder / "stream_learners.csv")
    forms = {"learning_s": ",.0f", "testing_s": ",.0f", "memory_mb": ",.0f", "log_loss": ".3f"}
    rows = [
        [
            LEARNERS.get(row.learner, row.learner),
            f"{row.rows_a_s / 1000:,.0f}",
            duration(1e9 / row.rows_a_s),
            *("-" if math.isnan(row[key]) else f"{row[key]:{form}}" for key, form in forms.items()),
        ]
        for _, row in data.iterrows()
    ]
    head = [f"{data.rows[0] / 1e6:,.0f} million rows, {data.gb[0]:.1f} GB", "thousand rows per second"]
    head += ["a billion rows, extrapolated", "learning, s", "predicting, s", "memory, MB", "progressive log loss"]
    return {"stream_learners": pipe_table(Grid(head, rows))}
