"""
A path of L1 penalties
======================

The L1 penalty of :class:`~klr_bench.L1KLR` makes coefficients exactly zero, more of them as a rule where lambda
is larger.  :func:`~klr_bench.l1_path` fits a whole sequence of lambdas, each from the solution before it.  Here
cross-validation then chooses among them, with a preference for sparse ones.
"""

# %%
# The data are the breast cancer cells of scikit-learn.

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
# computed from the rows of each fit, the same multiples mean much the same in each fold.

losses, accuracies = [], []
for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
    scaler = StandardScaler().fit(X[train])
    path = l1_path(scaler.transform(X[train]), y[train], **parameters)
    held_out = scaler.transform(X[test])
    losses.append([log_loss(y[test], model.predict_proba(held_out)) for model in path])
    accuracies.append([100 * model.score(held_out, y[test]) for model in path])
loss, error = np.mean(losses, axis=0), np.std(losses, axis=0, ddof=1) / np.sqrt(len(losses))

# %%
# The rule of one standard error takes the largest lambda whose mean log loss is within one standard error of the
# smallest one.

path = l1_path(StandardScaler().fit_transform(X), y, **parameters)
lams, support = [model.lam for model in path], [model.n_support_ for model in path]
least = int(np.argmin(loss))
chosen = int(np.argmax(loss <= loss[least] + error[least]))
for name, i in (("least log loss", least), ("one standard error", chosen)):
    print(f"{name}: lambda = {lams[i]:.4f} lambda_max, log loss {loss[i]:.3f}, {support[i]} of {len(X)} rows")

# %%
# Above are the coefficients of the rows that are ever in the model, coloured by the class of the row; below is what
# cross-validation says, and the number of support vectors of the fit to all rows.

coefficients = np.array([model.coef_ for model in path])
used = np.flatnonzero(coefficients.any(axis=0))
colours = ["#0072B2", "#D55E00"]
fig, axes = plt.subplots(3, 1, figsize=(7, 7.5), sharex=True, height_ratios=[1.5, 1, 1], layout="constrained")
for row in used:
    axes[0].plot(lams, coefficients[:, row], color=colours[y[row]], lw=1.2, alpha=0.8)
names = load_breast_cancer().target_names
for colour, name in zip(colours, names):
    axes[0].plot([], [], color=colour, label=f"{name} rows")
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
    ax.axvline(lams[chosen], color="#555555", ls="--", lw=1.5, label=f"one standard error: {support[chosen]} SVs")
    ax.axvline(lams[least], color="#555555", ls=":", lw=2, label=f"least log loss: {support[least]} SVs")
axes[2].legend()
plt.show()
