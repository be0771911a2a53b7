"""
A path of L1 penalties
======================

The L1 penalty of :class:`~klr_bench.L1KLR` sets coefficients to exactly zero, in general more of them for larger
lambda.  :func:`~klr_bench.l1_path` fits a sequence of lambdas, each starting from the previous solution.
Cross-validation then selects one of them, with a preference for sparse models.
"""

# %%
# The data are the breast cancer data set of scikit-learn.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

from klr_bench import l1_path

X, y = load_breast_cancer(return_X_y=True)
parameters = {"lams": np.geomspace(0.9, 8e-4, 24), "gamma": 0.01}

# %%
# The lambdas are multiples of lambda_max, the smallest lambda for which all coefficients are zero.  As lambda_max is
# computed from the rows of each fit, the same multiple has a similar effect in each fold.

losses, accuracies = [], []
for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
    scaler = StandardScaler().fit(X[train])
    path = l1_path(scaler.transform(X[train]), y[train], **parameters)
    held_out = scaler.transform(X[test])
    losses.append([log_loss(y[test], model.predict_proba(held_out)) for model in path])
    accuracies.append([100 * model.score(held_out, y[test]) for model in path])
loss, error = np.mean(losses, axis=0), np.std(losses, axis=0, ddof=1) / np.sqrt(len(losses))

# %%
# The one-standard-error rule selects the largest lambda whose mean log loss is within one standard error of the
# smallest mean log loss.

path = l1_path(StandardScaler().fit_transform(X), y, **parameters)
lams, support = [model.lam for model in path], [model.n_support_ for model in path]
lowest = int(np.argmin(loss))
selected = int(np.argmax(loss <= loss[lowest] + error[lowest]))
for name, i in (("lowest log loss", lowest), ("one standard error", selected)):
    print(f"{name}: lambda = {lams[i]:.4f} lambda_max, log loss {loss[i]:.3f}, {support[i]} of {len(X)} rows")

# %%
# The top panel shows the coefficients that are non-zero for some lambda, colored by the class of the row.  The other
# panels show the results of cross-validation, and the number of support vectors of the fit to all rows.

coefficients = np.array([model.coef_ for model in path])
used = np.flatnonzero(coefficients.any(axis=0))
colors = ["#0072B2", "#D55E00"]
fig, axes = plt.subplots(3, 1, figsize=(7, 7.5), sharex=True, height_ratios=[1.5, 1, 1], layout="constrained")
for row in used:
    axes[0].plot(lams, coefficients[:, row], color=colors[y[row]], lw=1.2, alpha=0.8)
names = load_breast_cancer().target_names
for color, name in zip(colors, names):
    axes[0].plot([], [], color=color, label=f"{name} rows")
axes[0].set(ylabel="Coefficient", yscale="symlog", title="Coefficients along the path")
axes[0].legend()

axes[1].plot(lams, loss, "-o", ms=4, color="#000000")
axes[1].fill_between(lams, loss - error, loss + error, color="#000000", alpha=0.15, lw=0, label="± 1 standard error")
axes[1].set(ylabel="Log loss", title="Five-fold cross-validation")
axes[1].legend()

axes[2].plot(lams, support, "-s", ms=4, color="#009E73")
axes[2].set(xlabel="lambda / lambda_max", ylabel="Support vectors", title="Sparsity", xscale="log")
axes[2].invert_xaxis()
for ax in axes:
    ax.grid(color="#e4e4e4")
    ax.axvline(lams[selected], color="#555555", ls="--", lw=1.5, label=f"one standard error: {support[selected]} SVs")
    ax.axvline(lams[lowest], color="#555555", ls=":", lw=2, label=f"lowest log loss: {support[lowest]} SVs")
axes[2].legend()
plt.show()
