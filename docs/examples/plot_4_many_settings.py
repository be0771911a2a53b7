"""
Many settings in one pass
=========================

The parameters of an online learner are chosen by fitting it with many settings, which all need the same kernel values.
:func:`~klr_bench.fit_many` computes each value once for all settings, in one pass over the data.
"""

# %%
# The probability of the second class is a wave over the plane, so that even the best classifier makes many errors.
# Settings are compared on validation rows.

import time

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit

from klr_bench import OSKL, fit_many

random = np.random.default_rng(0)


def waves(n):
    """Return n rows and their classes, drawn with the probability at each row."""
    X = random.uniform(-2, 2, (n, 2))
    p = expit(4 * np.sin(2 * X[:, 0]) * np.cos(1.5 * X[:, 1]) + X[:, 0])
    return X, (random.random(n) < p).astype(int)


X, y = waves(5000)
X_valid, y_valid = waves(5000)

# %%
# :class:`~klr_bench.OSKL` has two parameters besides those of the kernel: G, which controls how many rows become
# support vectors, and the radius R of the ball onto which the classifier is projected.

values_of_G = [1, 2, 4, 8, 16, 32]
values_of_R = [1, 2, 4, 8, 16, 32]


def learners():
    """Return an unfitted learner for each pair of values, in the order of the rows of the figure."""
    return [OSKL(G, R=R, gamma=1.0, n_epochs=1, random_state=0) for G in values_of_G for R in values_of_R]


# %%
# The first fit of a class also compiles its code, so both functions are called once before they are timed.

fit_many(learners(), X[:100], y[:100])
learners()[0].fit(X[:100], y[:100])

start = time.perf_counter()
one_by_one = [learner.fit(X, y) for learner in learners()]
middle = time.perf_counter()
together = fit_many(learners(), X, y)
end = time.perf_counter()
print(f"{len(together)} settings one by one: {middle - start:.2f} s")
print(f"{len(together)} settings in one pass: {end - middle:.2f} s")

# %%
# Both ways give the same learners, up to rounding.

for alone, shared in zip(one_by_one, together):
    assert alone.n_support_ == shared.n_support_
    np.testing.assert_allclose(alone.dual_coef_, shared.dual_coef_, rtol=1e-6, atol=1e-9)

# %%
# The left panel shows the accuracy of each setting, the right panel its number of support vectors.  A frame marks the
# setting with the best accuracy.

shape = len(values_of_G), len(values_of_R)
accuracy = np.reshape([100 * learner.score(X_valid, y_valid) for learner in together], shape)
support = np.reshape([learner.n_support_ for learner in together], shape)
best = np.unravel_index(np.argmax(accuracy), shape)
print(f"best: G={values_of_G[best[0]]}, R={values_of_R[best[1]]}, {accuracy[best]:.1f} % with {support[best]} SVs")

fig, axes = plt.subplots(1, 2, figsize=(7.5, 4.3), sharey=True, layout="constrained")
panels = [("Accuracy (%)", accuracy, "{:.1f}", None), ("Support vectors", support, "{:,}", "log")]
for ax, (title, table, text, norm) in zip(axes, panels):
    image = ax.imshow(table, cmap="cividis", norm=norm)
    for row, column in np.ndindex(shape):
        dark = image.norm(table[row, column]) < 0.55
        label, color = text.format(table[row, column]), "white" if dark else "black"
        ax.text(column, row, label, ha="center", va="center", fontsize=9, color=color)
    ax.add_patch(plt.Rectangle((best[1] - 0.5, best[0] - 0.5), 1, 1, fill=False, ec="#D55E00", lw=3))
    ax.set(title=title, xlabel="R", xticks=range(shape[1]), xticklabels=values_of_R)
axes[0].set(ylabel="G", yticks=range(shape[0]), yticklabels=values_of_G)
fig.suptitle(f"{len(together)} settings of OSKL in one pass")
plt.show()
