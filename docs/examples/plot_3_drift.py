"""
Budgets on a stream with concept drift
======================================

A stream does not end, so a learner needs a bound on the number of its support vectors, a budget.  The concept to be
learned may also change, so the learner must forget old rows.  This example compares five learners on a stream whose
concept changes first abruptly and later gradually.
"""

# %%
# A row in the plane belongs to the second class if it lies in the first or third quadrant of a rotated cross, and one
# label in twenty is wrong.  The cross is fixed for the first third of the stream, turns abruptly by 45°, is fixed for
# another third, and rotates slowly during the last third.

import matplotlib.pyplot as plt
import numpy as np

from klr_bench import BSGD, OSKL, BOGDPlusPlus, BudgetOSKL, Forgetron

N_ROWS, WINDOW, NOISE, BUDGET = 18_000, 500, 0.05, 60
random = np.random.default_rng(0)
time = np.arange(N_ROWS) / N_ROWS
angle = np.pi / 4 * (time >= 1 / 3) + 3 * np.pi / 2 * np.maximum(time - 2 / 3, 0)
X = random.uniform(-1, 1, (N_ROWS, 2))
rotated = (X[:, 0] + 1j * X[:, 1]) * np.exp(-1j * angle)
y = ((rotated.real * rotated.imag > 0) ^ (random.random(N_ROWS) < NOISE)).astype(int)

# %%
# All learners except the last have the same budget.  :class:`~klr_bench.BudgetOSKL` keeps its support vectors and
# continues to change their coefficients; :class:`~klr_bench.Forgetron` removes the oldest one,
# :class:`~klr_bench.BOGDPlusPlus` a random one, and :class:`~klr_bench.BSGD` merges two into one.
# :class:`~klr_bench.OSKL` has no budget.  Each learner predicts with its latest classifier (``average=False``), because
# an average would mix the concepts.

common = {"gamma": 4.0, "average": False, "random_state": 0}
learners = {
    "Budget OSKL": BudgetOSKL(BUDGET, **common),
    "BSGD, merging": BSGD(BUDGET, maintenance="merging", **common),
    "BOGD++": BOGDPlusPlus(BUDGET, lam=0.0, eta=0.2, **common),
    "Forgetron": Forgetron(BUDGET, variant="self_tuned", **common),
    "OSKL, no budget": OSKL(**common),
}

# %%
# Each window of the stream is first predicted and then used for training with ``partial_fit``, so that every accuracy
# is measured on rows that the learner has not seen.

windows = [slice(start, start + WINDOW) for start in range(0, N_ROWS, WINDOW)]
accuracy = {name: [] for name in learners}
for name, learner in learners.items():
    learner.partial_fit(X[windows[0]], y[windows[0]], classes=[0, 1])
    for window in windows[1:]:
        accuracy[name].append(100 * learner.score(X[window], y[window]))
        learner.partial_fit(X[window], y[window])
    print(f"{name:16} {np.mean(accuracy[name]):.1f} % on average, {learner.n_support_:5,} support vectors at the end")
assert all(learner.n_support_ <= BUDGET for name, learner in learners.items() if name != "OSKL, no budget")

# %%
# The top row shows rows of the stream at four times, the bottom plot the accuracy in each window.  The dotted line is
# the fraction of correct labels, the highest accuracy that can be expected.

styles = dict(zip(learners, [("o", "#0072B2"), ("s", "#009E73"), ("^", "#E69F00"), ("v", "#CC79A7"), ("", "#000000")]))
fig = plt.figure(figsize=(7.2, 6), layout="constrained")
axes = fig.subplot_mosaic([["a", "b", "c", "d"], ["accuracy"] * 4], height_ratios=[1, 2.1])
for letter, at in zip("abcd", (0.1, 0.5, 0.8, 0.95)):
    rows = slice(int(at * N_ROWS), int(at * N_ROWS) + WINDOW)
    axes[letter].scatter(*X[rows].T, c=np.where(y[rows], "#E69F00", "#0072B2"), s=4)
    axes[letter].set(aspect="equal", xticks=[], yticks=[], title=f"row {rows.start:,}")
ax, ends = axes["accuracy"], [window.stop for window in windows[1:]]
for name, values in accuracy.items():
    marker, color = styles[name]
    label = f"{name} ({learners[name].n_support_:,} SVs)"
    ax.plot(ends, values, marker=marker, ms=4, color=color, lw=1.4, ls="-" if marker else "--", label=label)
ax.axhline(100 * (1 - NOISE), color="#808080", ls=":")
ax.set(xlabel="Rows seen", ylabel="Correct in the window (%)", title="Accuracy on unseen rows")
ax.xaxis.set_major_formatter("{x:,.0f}")
ax.grid(color="#e4e4e4")
fig.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=9)
plt.show()
