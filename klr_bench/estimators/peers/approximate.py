"""The usual alternatives to sparse kernel logistic regression: linear models on approximate kernel features."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from klr_bench.estimators.core.classifier import (
    Classifier,
    checked_decision,
    checked_fit,
    distinct_labels,
    refuse_single,
    row_weights,
)
from klr_bench.estimators.core.kernels import KERNELS, WIDTHS, gamma_of
from klr_bench.estimators.core.parameters import CLASS_WEIGHT, COMPONENTS, COUNT, NUMBER, POSITIVE, SEED
from klr_bench.estimators.core.rows import refuse_dense, without_duplicates


class ApproximateKernelLR(Classifier):
    r"""scikit-learn's logistic regression on its approximate kernel features, as one estimator with flat parameters.

    .. math::

        \min_{w, b} \; \frac{1}{2} {\lVert w \rVert}^2 + C \sum_{i=1}^n \log(1 + e^{-y_i (w^T z_i + b)})

    z_i are the features of row i.  This is the problem of kernel logistic regression,
    ``(lam/2) ||f||^2 + (1/n) sum_i log(1 + exp(-y_i f(x_i)))``, with C = 1 / (n lam), but for the intercept b, which is
    not penalised.

    With the poly and linear kernels X is converted to float64: the features are divided by roots of the eigenvalues of
    a kernel matrix, which has a low rank, and in float32 rounding would decide about many of them.

    Parameters
    ----------
    features : {"nystroem", "fourier"}, default="nystroem"
        scikit-learn's Nystroem, or RBFSampler, which requires the rbf kernel.  In the reference of klr_peers, with 500
        features, "nystroem" has the lower log loss on Adult, and "fourier" takes half its time.
    solver : {"lbfgs", "sgd"}, default="lbfgs"
        LogisticRegression, or SGDClassifier(loss="log_loss") with alpha = 1 / (n C), which needs no more than the
        features of a few rows at a time but ends further from the minimum.
    n_components : int, default=500
        Number of features, 1 to a million; Nystroem takes at most as many as there are rows.  500 is also the default
        of `L1KLR`.
    C : float, default=1.0
        Weight of the loss, > 0.  The grid of configs/algorithm is 0.1, 1, 10, 100; in the reference of klr_peers
        cross-validation chose 1 or 10 on Adult and 10 or 100 on mushrooms.
    kernel, degree, coef0, class_weight
        See `DualCDKLR`.
    gamma : float, {"scale", "median"} or None, default="scale"
        gamma > 0 of the rbf and poly kernels; None is 1 / n_features, "scale" 1 / (n_features X.var()), "median" 1 / (2
        m^2) with the median distance m of rows.  klr_peers has the gamma of its online learners, 1 / (2 s^2) with the
        20th percentile s of the distances.
    max_iter : int, default=1000
        Largest number of iterations of lbfgs, or of epochs of sgd, >= 1.  In the reference of klr_peers fits end after
        15 to 55 on average.
    random_state : int, RandomState instance or None, default=None
        Seed of the features and of sgd.

    Attributes
    ----------
    pipeline_ : Pipeline
        The fitted features and the fitted linear model.
    classes_, n_features_in_
        See `DualCDKLR`.
    n_iter_ : int
        Number of iterations of the linear model.

    References
    ----------
    Nystroem: Williams, Seeger, NIPS 2000.  Random Fourier features: Rahimi, Recht, NIPS 2007.

    Examples
    --------
    >>> from klr_bench import ApproximateKernelLR
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = ApproximateKernelLR(n_components=30, C=10.0, gamma=2.0, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9, model.predict_proba(X).shape
    (True, (200, 2))
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "features": [StrOptions({"nystroem", "fourier"})],
        "solver": [StrOptions({"lbfgs", "sgd"})],
        "n_components": [COMPONENTS],
        "C": [POSITIVE],
        "kernel": [StrOptions(set(KERNELS))],
        "gamma": [POSITIVE, StrOptions(set(WIDTHS)), None],
        "degree": [POSITIVE],
        "coef0": [NUMBER],
        "max_iter": [COUNT],
        "random_state": SEED,
        "class_weight": CLASS_WEIGHT,
    }

    def __init__(
        self, features: str = "nystroem", solver: str = "lbfgs", n_components: int = 500, C: float = 1.0, *, kernel:
        str = "rbf", gamma: float | str | None = "scale", degree: float = 3, coef0: float = 1.0, max_iter: int = 1000,
        random_state: Any = None, class_weight: Any = None,
    ) -> None:  # fmt: skip
        self.features = features
        self.solver = solver
        self.n_components = n_components
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.max_iter = max_iter
        self.random_state = random_state
        self.class_weight = class_weight

    @checked_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ApproximateKernelLR:
        """Draw the features and fit the linear model; return self.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Training rows.
        y : array of shape (n_samples,)
            Their classes, two or more, of any type.
        sample_weight : array of shape (n_samples,), default=None
            Weights >= 0 of the rows, which multiply their losses.

        Raises
        ------
        ValueError
            If parameters or data are refused, or if features="fourier" has a kernel other than rbf.
        """
        self._validate_params()
        if self.features == "fourier" and self.kernel != "rbf":
            message = f"features='fourier' is for kernel='rbf', got kernel={self.kernel!r}; use features='nystroem'."
            raise ValueError(message)
        X, y = validate_data(self, X, y, dtype=self._dtypes(), accept_sparse="csr")
        refuse_single(distinct_labels(y), self, "two classes or more")
        X = without_duplicates(X)
        model = self._linear_model(len(y))
        weights = row_weights(sample_weight, self.class_weight, X, y, distinct_labels(y))
        given = {} if weights is None else {f"{type(model).__name__.lower()}__sample_weight": weights}
        self.pipeline_: Pipeline = make_pipeline(self._feature_map(X), model).fit(X, y, **given)
        self.classes_ = self.pipeline_.classes_
        self.n_iter_ = int(np.max(self.pipeline_[-1].n_iter_))
        return self

    @checked_decision
    def decision_function(self, X: Any) -> Any:
        """Return f(x) for the rows of X."""
        return self._fitted().decision_function(self._validated(X))

    @checked_decision
    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes, (n_samples, n_classes)."""
        return self._fitted().predict_proba(self._validated(X))

    def kernel_error(self, X: Any) -> float:
        """Return the largest ``|z(x)'z(x') - k(x, x')|`` over all pairs of the rows of X (n_samples, n_features).

        Theorem 2 of Qin et al. (2011) bounds it for Fourier features (Rahimi and Recht, claim 1).
        """
        features, X = self._fitted()[0], self._validated(X)
        Z, given = features.transform(X), {"gamma": features.gamma, "degree": self.degree, "coef0": self.coef0}
        return float(np.max(np.abs(Z @ Z.T - pairwise_kernels(X, metric=self.kernel, filter_params=True, **given))))

    def stand_in(self) -> ApproximateKernelLR:
        """Return an estimator with the same solver, whose fit loads it."""
        return type(self)(solver=self.solver)

    def _feature_map(self, X: Any) -> Any:
        gamma = gamma_of(self.gamma, X)
        if self.features == "fourier":
            frequencies, instead = f"n_components={self.n_components} frequencies", "use features='nystroem'"
            refuse_dense("ApproximateKernelLR", frequencies, X, self.n_components, instead)
            return RBFSampler(gamma=gamma, n_components=self.n_components, random_state=self.random_state)
        given: dict[str, Any] = {"rbf": {"gamma": gamma}, "linear": {}}.get(
            self.kernel, {"gamma": gamma, "degree": self.degree, "coef0": self.coef0}
        )
        size = min(X.shape[0], self.n_components)
        return Nystroem(self.kernel, n_components=size, random_state=self.random_state, **given)

    def _linear_model(self, n: int) -> Any:
        common = {"max_iter": self.max_iter, "random_state": self.random_state}
        if self.solver == "sgd":
            return SGDClassifier(loss="log_loss", alpha=1.0 / (n * self.C), **common)
        return LogisticRegression(C=self.C, **common)

    def _fitted(self) -> Pipeline:
        check_is_fitted(self, "pipeline_")
        return self.pipeline_

    def _dtypes(self) -> Any:
        return [np.float64, np.float32] if self.kernel == "rbf" else np.float64

    def _validated(self, X: Any) -> Any:
        X = validate_data(self, X, dtype=self._dtypes(), accept_sparse="csr", reset=False)
        return without_duplicates(X)
