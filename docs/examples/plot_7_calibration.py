"""
Accuracy of predicted probabilities
===================================

Kernel logistic regression is a model of probabilities, so ``predict_proba`` needs no additional calibration, unlike
that of a support vector machine.  For generated data the true probabilities are known, and both can be compared with
them.
"""

# %%
# The true probability of the second class is a wave over the plane.

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV, calibration_curve
from sklearn.metrics import log_loss
from sklearn.svm import SVC

from klr_bench import OSKL, DualCDKLR

random = np.random.default_rng(0)


def truth(X):
    """Return the probabilities of the second class at the rows of X."""
    return expit(4 * np.sin(2 * X[:, 0]) * np.cos(1.5 * X[:, 1]) + X[:, 0])


X = random.uniform(-2, 2, (1000, 2))
y = (random.random(len(X)) < truth(X)).astype(int)
X_test = random.uniform(-2, 2, (20_000, 2))
y_test = (random.random(len(X_test)) < truth(X_test)).astype(int)

# %%
# - :class:`~klr_bench.DualCDKLR` solves the regularized problem of kernel logistic regression with all rows.
# - :class:`~klr_bench.OSKL` learns row by row and samples its support vectors.
# - ``SVC`` of scikit-learn is used twice: with its decision values as log-odds, and with Platt scaling of the decision
#   values, fitted by cross-validation.

models = {
    "DualCDKLR": DualCDKLR(gamma=1.0, random_state=0),
    "OSKL": OSKL(gamma=1.0, random_state=0),
    "SVC, Platt": CalibratedClassifierCV(SVC(gamma=1.0), ensemble=False),
    "SVC, raw": SVC(gamma=1.0),
}


def probabilities(model, X):
    """Return the probabilities of the second class, or the sigmoid of the decision values."""
    return model.predict_proba(X)[:, 1] if hasattr(model, "predict_proba") else expit(model.decision_function(X))


for model in models.values():
    model.fit(X, y)
predicted = {name: probabilities(model, X_test) for name, model in models.items()}

# %%
# Two metrics are printed for each model: the log loss on test rows, which is lowest for the true probabilities, and the
# root mean square distance of the predicted from the true probabilities.

print(f"{'truth':12} log loss {log_loss(y_test, truth(X_test)):.4f}")
for name, p in predicted.items():
    distance = np.sqrt(np.mean((p - truth(X_test)) ** 2))
    print(f"{name:12} log loss {log_loss(y_test, p):.4f}, distance from the truth {distance:.3f}")

# %%
# On the diagonal, the observed fraction of the second class equals the predicted probability.  The maps show the true
# and predicted probabilities in the plane; the black line is a probability of one half.

styles = dict(zip(models, [("o", "#0072B2"), ("s", "#009E73"), ("^", "#D55E00"), ("v", "#CC79A7")]))
axis = np.linspace(-2, 2, 101)
grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
maps = {"Truth": truth(grid)} | {name: probabilities(model, grid) for name, model in models.items()}

fig = plt.figure(figsize=(7.5, 7), layout="constrained")
top, bottom = fig.subfigures(2, 1, height_ratios=[2.3, 1])
ax = top.subplots()
ax.plot([0, 1], [0, 1], color="#808080", ls=":", label="perfect calibration")
for name, p in predicted.items():
    observed, mean = calibration_curve(y_test, p, n_bins=12)
    marker, color = styles[name]
    ax.plot(mean, observed, marker=marker, color=color, label=name)
ax.set(xlabel="Predicted probability", ylabel="Fraction of the second class", title="Reliability on test rows")
ax.set(xlim=(0, 1), ylim=(0, 1))
ax.grid(color="#e4e4e4")
ax.legend(loc="upper left")
axes = bottom.subplots(1, len(maps), sharey=True)
for ax, (name, p) in zip(axes, maps.items()):
    p = p.reshape(len(axis), len(axis))
    mesh = ax.pcolormesh(axis, axis, p, cmap="PuOr_r", vmin=0, vmax=1, shading="gouraud")
    ax.contour(axis, axis, p, levels=[0.5], colors="black", linewidths=1.2)
    ax.set(aspect="equal", xticks=[], yticks=[])
    ax.set_title(name, fontsize=10)
bottom.colorbar(mesh, ax=axes, label="Probability", shrink=0.8)
plt.show()
