"""
Learned feature weights and gradient boosting
=============================================

:class:`~klr_bench.KLR` learns a weight for each feature, so that features without influence do not blur the distances
in its kernel.  This example compares it with a kernel whose features are all equal, and with gradient boosting, on
generated rows of two kinds: one with a smooth truth, and one with a truth of steps.
"""

# %%
# Both truths depend on two of ten features.  The smooth one is a wave, the other one has steps parallel to the axes.

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss

from klr_bench import KLR


def wave(X):
    """Return log-odds that change smoothly."""
    return 4 * np.sin(1.5 * X[:, 0] + X[:, 1])


def steps(X):
    """Return log-odds that are constant in rectangles."""
    return 4 * np.where((X[:, 0] > 0.4) ^ (X[:, 1] > -0.3), 1, -1)


def sample(truth, n, seed):
    """Return n rows and their classes, drawn with the probabilities of a truth."""
    random = np.random.default_rng(seed)
    X = random.uniform(-2, 2, (n, 10))
    return X, (random.random(n) < expit(truth(X))).astype(int)


# %%
# With ``max_rounds=0`` the features of KLR keep equal weights.  KLR chooses its settings by cross-validation, here with
# three folds to save time; gradient boosting has scikit-learn's defaults.

models = {
    "KLR, equal weights": KLR(max_rounds=0, cv=3, random_state=0),
    "KLR, learned weights": KLR(cv=3, random_state=0),
    "Gradient boosting": HistGradientBoostingClassifier(random_state=0),
}
sizes = [100, 200, 400]
losses = {}
for truth in (wave, steps):
    X_test, y_test = sample(truth, 2000, seed=1)
    losses[truth, "truth"] = log_loss(y_test, expit(truth(X_test)))
    for name, model in models.items():
        for n in sizes:
            model.fit(*sample(truth, n, seed=0))
            losses[truth, name, n] = log_loss(y_test, model.predict_proba(X_test))
        if name == "KLR, learned weights":
            print(f"{truth.__name__}: feature weights {model.feature_weights_.round(2)}")

# %%
# The weights of the first two features are the largest.  The dotted line is the log loss of the true probabilities,
# which no model can expect to undercut.

markers = dict(zip(models, [("^", "#808080"), ("o", "#0072B2"), ("s", "#D55E00")]))
fig, axes = plt.subplots(1, 2, figsize=(7.5, 3.8), sharey=True, layout="constrained")
for ax, truth in zip(axes, (wave, steps)):
    for name, (marker, color) in markers.items():
        ax.plot(sizes, [losses[truth, name, n] for n in sizes], marker=marker, color=color, label=name)
    ax.axhline(losses[truth, "truth"], color="black", ls=":", label="true probabilities")
    ax.set(xscale="log", xlabel="Training rows", title=f"The truth has {'a wave' if truth is wave else 'steps'}")
    ax.set_xticks(sizes, sizes)
    ax.minorticks_off()
    ax.grid(color="#e4e4e4")
axes[0].set(ylabel="Log loss on test rows", ylim=(0, None))
axes[1].legend(fontsize=9)
plt.show()
