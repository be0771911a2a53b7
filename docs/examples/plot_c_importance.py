"""
Which features a model depends on
=================================

:class:`~klr_bench.KLR` learns weights of the features, which are a first explanation of the model.  Permutation
importances and SHAP values are others; they work with any classifier.  Here the truth is known, and all three can be
compared with it.
"""

# %%
# The probability of the second class depends on the first three of eight features: on the sign of the first, on a wave
# along the second, and, together, on the product of the first and the third.  The fourth feature nearly equals the
# second.  The others are noise.

from importlib.util import find_spec

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit
from sklearn.inspection import permutation_importance

from klr_bench import KLR

random = np.random.default_rng(0)
names = ["sign", "wave", "product", "copy of wave", "noise 1", "noise 2", "noise 3", "noise 4"]
X = random.uniform(-2, 2, (2000, len(names)))
X[:, 3] = X[:, 1] + 0.2 * random.normal(size=len(X))
log_odds = 2 * np.sign(X[:, 0]) + 3 * np.sin(2 * X[:, 1]) + 1.5 * X[:, 0] * X[:, 2]
y = (random.random(len(X)) < expit(log_odds)).astype(int)
X_train, y_train, X_test, y_test = X[:1000], y[:1000], X[1000:], y[1000:]

# %%
# The weights multiply the standardized features, and their mean square is 1.  A feature with a small weight hardly
# changes the distances in the kernel, so the model cannot depend on it.

model = KLR(cv=3, random_state=0).fit(X_train, y_train)
print(f"accuracy on test rows: {100 * model.score(X_test, y_test):.1f} %")
importances = {"Learned weight": model.feature_weights_}

# %%
# The permutation importance of a feature is the increase in log loss when the values of the feature are permuted among
# the test rows.

permuted = permutation_importance(model, X_test, y_test, scoring="neg_log_loss", n_repeats=5, random_state=0, n_jobs=1)
importances["Permutation importance"] = permuted.importances_mean

# %%
# SHAP values divide the decision value of a row among its features; the importance of a feature is the mean of their
# absolute values.  They need the library shap.

if find_spec("shap") is None:
    print("The library shap is not installed; `pip install shap` adds its values to the figure.")
else:
    import shap

    explainer = shap.Explainer(model.decision_function, X_train[:50], seed=0)
    importances["Mean absolute SHAP value"] = np.abs(explainer(X_test[:100], silent=True).values).mean(axis=0)

# %%
# Blue features have influence in the truth, gray ones have none.  The copy takes a part of the importance of the
# feature that it resembles: no importance can tell which of the two is the cause.

fig, axes = plt.subplots(1, len(importances), figsize=(7.5, 3.6), sharey=True, layout="constrained")
colors = ["#0072B2"] * 3 + ["#b0b0b0"] * 5
for ax, (title, values) in zip(axes, importances.items()):
    ax.barh(names, values, color=colors)
    ax.set_title(title, fontsize=10)
    ax.grid(axis="x", color="#e4e4e4")
    ax.set_axisbelow(True)
axes[0].invert_yaxis()
plt.show()
