"""
An experiment on your own file
==============================

The command ``klr-bench run experiment=own_file data.path=FILE`` compares learners on a CSV or LIBSVM file: it splits
the rows several times, chooses parameters within each training part, and writes one row per fit to ``records.csv``.
:func:`~klr_bench.load_results` reads these rows as a pandas data frame, from which you can draw figures.
"""

# %%
# The example file has 400 flowers with two measurements, some of them missing, and a text column.  The file and the
# results are stored in a temporary folder.

import contextlib
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from klr_bench import load_results
from klr_bench.cli import main

folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "flowers.csv"
random = np.random.default_rng(0)
length, width = random.uniform(2, 8, 400), random.uniform(1, 4, 400)
height = np.sin(1.5 * length) + np.cos(2.5 * width) + 0.6 * (width - 2.5)
rare = height + 0.5 * random.normal(size=400) > 0.3
flowers = pd.DataFrame(
    {
        "length": np.where(random.random(400) < 0.05, np.nan, length).round(2),
        "width": width.round(2),
        "site": random.choice(["bog", "meadow", "wood"], 400),
        "kind": np.where(rare, "rare", "common"),
    }
)
flowers.to_csv(path, index=False)
flowers.head()

# %%
# ``main`` takes the arguments of the command ``klr-bench``.  ``klr-bench list algorithms`` shows the names of the
# learners; ``parallel=serial`` runs without worker processes.  In this experiment the width of the kernel
# of :class:`~klr_bench.OSKL` is chosen by cross-validation, while ``SVC`` has its default settings.

command = """
    run --quiet experiment=own_file data.path=flowers.csv algorithm=[oskl_default,svc,lr_linear]
    repeats=5 selection.folds=2 parallel=serial results_dir=results data.cache=cache
"""
with contextlib.chdir(folder.name):
    assert main(command.split()) == 0

# %%
# Each row of the records is a fit, each column a metric.  The table shows means over the splits.

records = load_results(f"{folder.name}/results/own_file")
folder.cleanup()
records.groupby("algorithm")[["accuracy", "auc", "log_loss", "n_support", "fit_time_s"]].mean().round(3)

# %%
# All learners use the same splits, so they can be compared split by split: gray lines connect the fits on a split, and
# black bars are means.

names = {"lr_linear": "Linear LR", "svc": "SVC", "oskl_default": "OSKL"}
colors = ["#D55E00", "#009E73", "#0072B2"]
panels = {"accuracy": "Accuracy", "auc": "Area under the ROC curve"}
fig, axes = plt.subplots(1, len(panels), figsize=(7.2, 4.2), layout="constrained")
for ax, (metric, title) in zip(axes, panels.items()):
    table = records.pivot_table(index="repeat", columns="algorithm", values=metric)[list(names)]
    ax.plot(range(len(names)), table.T, color="#b0b0b0", lw=1, zorder=1)
    for place, (algorithm, color) in enumerate(zip(names, colors)):
        ax.scatter([place] * len(table), table[algorithm], color=color, s=45, zorder=2)
        ax.plot([place - 0.2, place + 0.2], [table[algorithm].mean()] * 2, color="black", lw=2.5, zorder=3)
    ax.set_xticks(range(len(names)), names.values())
    ax.set(title=title, xlim=(-0.5, len(names) - 0.5))
    ax.grid(axis="y", color="#e4e4e4")
fig.suptitle(f"Test rows of {records['repeat'].nunique()} splits of flowers.csv")
plt.show()
