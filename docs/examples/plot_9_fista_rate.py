"""
The rate of FISTA
=================

Theorem 1 of Qin et al. (2011) bounds the distance of FISTA's objective from the minimum after k iterations by
C / (k + 2)^2.  This example compares the bound with objectives measured with :class:`~klr_bench.L1KLR`, for FISTA and
its multi-scale extension.
"""

# %%
# The data are the breast cancer data set of scikit-learn, with 100 random Fourier features.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.kernel_approximation import RBFSampler
from sklearn.preprocessing import StandardScaler

from klr_bench import L1KLR

X, y = load_breast_cancer(return_X_y=True)
Z = RBFSampler(gamma=0.01, n_components=100, random_state=0).fit_transform(StandardScaler().fit_transform(X))
parameters = {"features": "linear", "lam": 0.01, "lam_relative": True, "fit_intercept": False}
optimum = L1KLR(**parameters, solver="prox_newton", tol=1e-10).fit(Z, y)

# %%
# The constant is C = 4 (F(y_0) - F*) + 2 L ||w*||^2.  L, the Lipschitz constant of the gradient of the loss, is a
# quarter of the largest eigenvalue of Z'Z, with the features Z.  FISTA starts from w = 0, where F is n log 2.

L = np.linalg.norm(Z, 2) ** 2 / 4
C = 4 * (len(Z) * np.log(2) - optimum.objective_) + 2 * L * optimum.coef_ @ optimum.coef_
n_iter = 1000
k = np.arange(1, n_iter + 1)

# %%
# FISTA stays below the bound.  Multi-scale FISTA, for which the theorem has a different norm, is faster here.

fig, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
for solver, label, color in (("fista", "FISTA", "#0072B2"), ("multiscale_fista", "multi-scale FISTA", "#D55E00")):
    objectives = []
    L1KLR(**parameters, solver=solver, tol=0.003, max_iter=n_iter).fit(
        Z, y, callback=lambda model, t, objectives=objectives: objectives.append(model.objective_)
    )
    excess = np.array(objectives) - optimum.objective_
    ax.plot(k[: len(excess)], np.maximum(excess, 1e-8), color=color, label=label)
    print(f"{label}: {excess[99]:.2g} above the minimum after 100 iterations, bound {C / 102**2:.2g}")
ax.plot(k, C / (k + 2) ** 2, color="#000000", ls="--", label="theorem 1: C / (k + 2)²")
ax.set(xscale="log", yscale="log", xlabel="Iteration k", ylabel="Objective above its minimum")
ax.grid(color="#e4e4e4")
ax.legend()
plt.show()
