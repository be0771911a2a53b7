"""
A budget on a stream whose concept changes
==========================================

A stream does not end, so a learner on it needs a bound on its support vectors: a budget.  And the
concept to be learned may change, so the learner must forget.  Five learners see the same stream; its concept first
changes abruptly, and later gradually.
"""

# %%
# In the plane, a row belongs to the second class if it lies in the first or third quadrant of a turned cross, and one
# label in twenty is wrong.  The cross stands still for a third of the stream, then turns abruptly by 45°, stands
# still for another third, and turns slowly through the last one.

import matplotlib.pyplot as plt
import numpy as np

from klr_bench import BSGD, OSKL, BOGDPlusPlus, BudgetOSKL, Forgetron

N_ROWS, WINDOW, NOISE, BUDGET = 18_000, 500, 0.05, 60
random = np.random.default_rng(0)
time = np.arange(N_ROWS) / N_ROWS
angle = np.pi / 4 * (time >= 1 / 3) + 3 * np.pi / 2 * np.maximum(time - 2 / 3, 0)
X = random.uniform(-1, 1, (N_ROWS, 2))
turned = (X[:, 0] + 1j * X[:, 1]) * np.exp(-1j * angle)
y = ((turned.real * turned.imag > 0) ^ (random.random(N_ROWS) < NOISE)).astype(int)

# %%
# All but the last have the same budget.  :class:`~klr_bench.BudgetOSKL` keeps its support vectors and goes on changing
# their coefficients; :class:`~klr_bench.Forgetron` removes the oldest one, :class:`~klr_bench.BOGDPlusPlus` one drawn
# at random, and :class:`~klr_bench.BSGD` merges two into one.  :class:`~klr_bench.OSKL` has no bound.  Each predicts
# with its newest classifier, ``average=False``: the average over a stream that changes is an average of concepts.

common = {"gamma": 4.0, "average": False, "random_state": 0}
learners = {
    "Budget OSKL": BudgetOSKL(BUDGET, **common),
    "BSGD, merging": BSGD(BUDGET, maintenance="merging", **common),
    "BOGD++": BOGDPlusPlus(BUDGET, lam=0.0, eta=0.2, **common),
    "Forgetron": Forgetron(BUDGET, variant="self_tuned", **common),
    "OSKL, no budget": OSKL(**common),
}

# %%
# Each window of the stream is predicted first and learned from afterwards, with ``partial_fit``, so that every accuracy
# is that of rows that the learner has not seen.

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
# Above are rows of the stream at four times, below the accuracy in each window.  The dotted line is the share of labels
# that are right, the most that can be expected.

styles = dict(zip(learners, [("o", "#0072B2"), ("s", "#009E73"), ("^", "#E69F00"), ("v", "#CC79A7"), ("", "#000000")]))
fig = plt.figure(figsize=(7.2, 6), layout="constrained")
axes = fig.subplot_mosaic([["a", "b", "c", "d"], ["accuracy"] * 4], height_ratios=[1, 2.1])
for letter, at in zip("abcd", (0.1, 0.5, 0.8, 0.95)):
    rows = slice(int(at * N_ROWS), int(at * N_ROWS) + WINDOW)
    axes[letter].scatter(*X[rows].T, c=np.where(y[rows], "#E69F00", "#0072B2"), s=4)
    axes[letter].set(aspect="equal", xticks=[], yticks=[], title=f"row {rows.start:,}")
ax, ends = axes["accuracy"], [window.stop for window in windows[1:]]
for name, values in accuracy.items():
    marker, colour = styles[name]
    label = f"{name} ({learners[name].n_support_:,} SVs)"
    ax.plot(ends, values, marker=marker, ms=4, color=colour, lw=1.4, ls="-" if marker else "--", label=label)
ax.axhline(100 * (1 - NOISE), color="#808080", ls=":")
ax.set(xlabel="Rows seen", ylabel="Correct in the window (%)", title="Accuracy on rows not yet seen")
ax.xaxis.set_major_formatter("{x:,.0f}")
ax.grid(color="#e4e4e4")
fig.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=9)
plt.show()
