"""
Save a model and load it again
==============================

:func:`~klr_bench.save_model` writes a fitted model to a file, and :func:`~klr_bench.load_model` reads it without
running code from the file.  The loaded model predicts the same probabilities.
"""

# %%
# The models are classifiers of klr-bench or scikit-learn, or pipelines of them.  Here they differ in the number of rows
# or prototypes that they keep.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from klr_bench import OSKL, DualCDKLR, NystroemKLR, PrototypeKLR, load_model, save_model

X, digits = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, digits % 2, random_state=0)
models = {
    "DualCDKLR": DualCDKLR(random_state=0),
    "OSKL, G = 4": OSKL(G=4.0, random_state=0),
    "NystroemKLR, 100 centers": NystroemKLR(n_centers=100, random_state=0),
    "PrototypeKLR, 20 prototypes": PrototypeKLR(20, tol=1e-3, max_iter=300, random_state=0),
}

# %%
# Each model is fitted, saved and loaded, and the probabilities before and after are compared.

saved, loaded, sizes = {}, {}, {}
with tempfile.TemporaryDirectory() as folder:
    for name, model in models.items():
        pipeline = make_pipeline(StandardScaler(), model).fit(X_train, y_train)
        path = Path(folder) / "model.skops"
        save_model(pipeline, path)
        saved[name] = pipeline.predict_proba(X_test)[:, 1]
        loaded[name] = load_model(path).predict_proba(X_test)[:, 1]
        sizes[name] = path.stat().st_size / 1000
        print(f"{name:28} {sizes[name]:6.0f} kB, largest difference {np.abs(saved[name] - loaded[name]).max()}")

# %%
# On the left, all points lie on the diagonal, because the probabilities are equal.  On the right, models with fewer
# support vectors or prototypes have smaller files, and mostly a larger log loss.

styles = dict(zip(models, [("o", "#0072B2"), ("s", "#009E73"), ("^", "#D55E00"), ("v", "#CC79A7")]))
fig, (left, right) = plt.subplots(1, 2, figsize=(7.5, 4), layout="constrained")
left.plot([0, 1], [0, 1], color="#808080", ls=":")
for name, (marker, color) in styles.items():
    left.plot(saved[name], loaded[name], marker, color=color, ms=4, mfc="none", label=name)
    right.plot(sizes[name], log_loss(y_test, saved[name]), marker, color=color, ms=9)
left.set(xlabel="Probability of the saved model", ylabel="Probability of the loaded model", title="Test rows")
left.legend(fontsize=8)
right.set(xlabel="Size of the file, kB", ylabel="Log loss on test rows", title="Models", xlim=(0, 150), ylim=(0, 0.15))
right.grid(color="#e4e4e4")
plt.show()
