"""
Accuracy against the number of support vectors
==============================================

The time and memory of a prediction grow with the number of support vectors.  How much accuracy does a learner lose if
it keeps fewer of them?  This example compares five learners, each with several values of the parameter that controls
its sparsity, on a data set with clean labels and on one with noisy labels.
"""

# %%
# *Digits* are the 8 x 8 images of scikit-learn, with the classes odd and even.  *Checkerboard* has nine fields of two
# colors in the plane, and one label in ten is wrong.  Half of the rows of each data set are used for training.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from klr_bench import OSKL, AuxiliaryKLR, MarginKLR, NonConservativeKLR

random = np.random.default_rng(0)
images, digit = load_digits(return_X_y=True)
points = random.uniform(0, 3, (4000, 2))
field = np.floor(points).sum(axis=1) % 2
field = np.where(random.random(len(points)) < 0.1, 1 - field, field)
datasets = {"Digits, odd or even": (images / 16, digit % 2, 0.1), "Checkerboard, 10 % wrong": (points, field, 4.0)}

# %%
# Four online learners decide for each row whether it becomes a support vector, in one pass as in the papers:
#
# - :class:`~klr_bench.NonConservativeKLR` (NC) uses every row;
# - :class:`~klr_bench.MarginKLR` uses a row with a probability that decreases with its margin, and fewer rows if the
#   step size eta is close to 2;
# - :class:`~klr_bench.AuxiliaryKLR`, with the bound of the loss chosen here, uses a row if its margin is at most delta;
# - :class:`~klr_bench.OSKL` uses a row with a probability equal to the slope of its loss divided by G.
#
# OSKL is also fitted in five passes.  ``SVC`` of scikit-learn solves the optimization problem of the support vector
# machine to convergence.

families = {
    "NC": [NonConservativeKLR(n_epochs=1)],
    "Margin": [MarginKLR(eta=eta, n_epochs=1) for eta in (1.0, 1.5, 1.8, 1.95)],
    "Auxiliary": [AuxiliaryKLR(h="hard_cutoff", aux_delta=d, n_epochs=1) for d in (2.0, 1.0, 0.5, 0.1)],
    "OSKL": [OSKL(G=G, n_epochs=1) for G in (1, 2, 4, 8, 16)],
    "OSKL, 5 passes": [OSKL(G=G, n_epochs=5) for G in (1, 2, 4, 8, 16, 32)],
    "SVC": [SVC(C=C) for C in (0.1, 1, 10)],
}

# %%
# An online learner depends on the order of the rows, so each is fitted with three random orders.  SVC is fitted once.


def results(model, gamma, X_train, X_test, y_train, y_test):
    """Return the numbers of support vectors and the test accuracies in percent, (n_orders, 2)."""
    orders = [{"random_state": seed} for seed in range(3)] if hasattr(model, "n_epochs") else [{}]
    points = []
    for order in orders:
        model.set_params(gamma=gamma, **order).fit(X_train, y_train)
        points.append((np.sum(model.n_support_), 100 * model.score(X_test, y_test)))
    return np.array(points)


# %%
# Each point is the mean over the orders, with the standard deviation as error bar.  Good learners are at the top left.
# Lines connect the values of a learner's parameter; the points of one pass of OSKL are labeled with G.

colors = ["#000000", "#E69F00", "#009E73", "#0072B2", "#CC79A7", "#D55E00"]
styles = dict(zip(families, zip("s^Do*P", colors)))
fig, axes = plt.subplots(2, 1, figsize=(7, 7.2), sharex=True, layout="constrained")
for ax, (title, (X, y, gamma)) in zip(axes, datasets.items()):
    parts = train_test_split(X, y, test_size=0.5, random_state=0)
    for name, models in families.items():
        fits = [results(model, gamma, *parts) for model in models]
        support, accuracy = np.array([fit.mean(axis=0) for fit in fits]).T
        spread = [fit[:, 1].std() for fit in fits]
        marker, color = styles[name]
        ax.errorbar(support, accuracy, spread, marker=marker, ms=7, color=color, capsize=3, label=name)
        if name == "OSKL":
            for model, position in zip(models, zip(support, accuracy)):
                text = {"textcoords": "offset points", "fontsize": 9, "color": color, "ha": "right"}
                ax.annotate(f"G={model.G}", position, (-5, 7), **text)
    ax.axvline(len(parts[0]), color="#808080", ls=":", label="all rows")
    ax.set(xscale="log", ylabel="Test accuracy (%)", title=title, xmargin=0.1)
    ax.grid(color="#e4e4e4")
axes[1].set_xlabel("Support vectors")
axes[1].xaxis.set_major_formatter("{x:,.0f}")
axes[0].legend(loc="lower right", ncols=2, framealpha=1)
plt.show()
