"""
Which rows become support vectors
=================================

Kernel classifiers are sums of kernel functions centered at selected points.  This example shows the points that six
methods select in the plane.
"""

# %%
# The rows of two classes lie on a checkerboard, and one in twenty has the wrong label.

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit

from klr_bench import L1KLR, OSKL, BudgetOSKL, ImportVectorMachine, NonConservativeKLR, PrototypeKLR

random = np.random.default_rng(0)


def checkerboard(n):
    """Return n rows in a square of nine fields, and their classes, 5 % of which are wrong."""
    X = random.uniform(0, 3, (n, 2))
    y = (np.floor(X[:, 0]) + np.floor(X[:, 1])).astype(int) % 2
    return X, np.where(random.random(n) < 0.05, 1 - y, y)


X, y = checkerboard(800)
X_test, y_test = checkerboard(4000)

# %%
# - :class:`~klr_bench.NonConservativeKLR` keeps every row.
# - :class:`~klr_bench.OSKL` keeps a row with a probability that increases with its loss, that is, rows near the
#   boundary and rows with a wrong label.
# - :class:`~klr_bench.BudgetOSKL` does the same until its budget is full, and then only changes coefficients.
# - :class:`~klr_bench.L1KLR` solves a convex problem whose L1 penalty sets most coefficients to zero.
# - :class:`~klr_bench.ImportVectorMachine` repeatedly adds the row that decreases the objective most.
# - :class:`~klr_bench.PrototypeKLR` learns points that need not be training rows.

models = {
    "NC": NonConservativeKLR(gamma=4.0, n_epochs=1, random_state=0),
    "OSKL": OSKL(G=4.0, gamma=4.0, random_state=0),
    "Budget OSKL": BudgetOSKL(40, gamma=4.0, n_epochs=5, random_state=0),
    "L1 KLR": L1KLR(lam=1.5, gamma=4.0),
    "Import vectors": ImportVectorMachine(lam=1e-3, gamma=4.0, max_import_vectors=40),
    "Prototypes": PrototypeKLR(n_prototypes=12, gamma=4.0, tol=1e-3, max_iter=300, random_state=0),
}
for model in models.values():
    model.fit(X, y)

# %%
# The colors show the predicted probability of the orange class, the black line a probability of one half, and the dots
# the support vectors or prototypes.  The thin lines are the fields of the checkerboard.  Learned prototypes may lie
# outside of it, and even outside of the figure.

axis = np.linspace(-0.5, 3.5, 121)
grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
fig, axes = plt.subplots(2, 3, figsize=(7.5, 5.2), sharex=True, sharey=True, layout="constrained")
for ax, (name, model) in zip(axes.flat, models.items()):
    p = expit(model.decision_function(grid)).reshape(len(axis), len(axis))
    mesh = ax.pcolormesh(axis, axis, p, cmap="PuOr_r", vmin=0, vmax=1, shading="gouraud", rasterized=True)
    ax.contour(axis, axis, p, levels=[0.5], colors="black", linewidths=1.5)
    for line in range(4):
        ax.plot([line, line], [0, 3], color="#606060", lw=0.7)
        ax.plot([0, 3], [line, line], color="#606060", lw=0.7)
    points = model.prototypes_ if name == "Prototypes" else model.support_vectors_
    ax.plot(*points.T, "o", mfc="white", mec="black", ms=2.5 if len(points) > 100 else 5, mew=0.6)
    accuracy = 100 * model.score(X_test, y_test)
    ax.set(xlim=axis[[0, -1]], ylim=axis[[0, -1]], aspect="equal", xticks=[], yticks=[])
    ax.set_title(f"{name}: {len(points)} points\n{accuracy:.1f} % of test rows correct", fontsize=10)
fig.colorbar(mesh, ax=axes, label="Predicted probability of the orange class", shrink=0.9)
plt.show()
