"""Linear models on approximate kernel features, the usual alternative to kernel models."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from klr_bench.estimators.core.checks import checked_decision, checked_fit
from klr_bench.estimators.core.kernel_classifier import KernelClassifier
from klr_bench.estimators.core.kernels import gamma_of
from klr_bench.estimators.core.parameters import CLASS_WEIGHT, COMPONENTS, COUNT, POSITIVE, estimator, fixed, parameter
from klr_bench.estimators.core.rows import refuse_dense


@estimator
class ApproximateKernelLR(KernelClassifier):
    r"""scikit-learn's logistic regression on scikit-learn's approximate kernel features.

    Both steps are one estimator with flat parameters.

    .. math::

        \min_{w, b} \; \frac{1}{2} {\lVert w \rVert}^2 + C \sum_{i=1}^n \log(1 + e^{-y_i (w^T z_i + b)})

    z_i are the features of row i.  This is the problem of kernel logistic regression,
    ``(lam/2) ||f||^2 + (1/n) sum_i log(1 + exp(-y_i f(x_i)))``, with C = 1 / (n lam), but for the intercept b, which is
    not penalized.

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
    max_iter : int, default=1000
        Largest number of iterations of lbfgs, or of epochs of sgd, >= 1.  In the reference of klr_peers fits end after
        15 to 55 on average.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply the weights of the rows.  "balanced" is n_samples / (n_classes n_k) for
        class k with n_k rows.

    Attributes
    ----------
    pipeline_ : Pipeline
        The fitted features and the fitted linear model, for rows minus ``origin_``.
    origin_ : ndarray of shape (n_features,), or None
        Mean of the training rows, for Nystroem features of dense rows with the rbf kernel, which does not depend on it.
    classes_ : ndarray of shape (n_classes,), dtype of y
        The classes in sorted order.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,), dtype object
        Names of the features, if X is a data frame whose column names are all strings.
    n_iter_ : int
        Number of iterations of the linear model.

    References
    ----------
    Nystroem: Williams, Seeger, NIPS 2000.  Random Fourier features: Rahimi, Recht, NIPS 2007.

    Examples
    --------
    >>> from klr_bench.estimators.peers.approximate import ApproximateKernelLR
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = ApproximateKernelLR(n_components=30, C=10.0, gamma=2.0, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9, model.predict_proba(X).shape
    (True, (200, 2))
    """

    features: str = parameter(StrOptions({"nystroem", "fourier"}), default="nystroem")
    solver: str = parameter(StrOptions({"lbfgs", "sgd"}), default="lbfgs")
    n_components: int = parameter(COMPONENTS, default=500)
    C: float = parameter(POSITIVE, default=1.0)
    _: KW_ONLY
    max_iter: int = parameter(COUNT, default=1000)
    class_weight: dict[Any, float] | str | None = parameter(*CLASS_WEIGHT, default=None)
    dtype: None = fixed(None)

    @checked_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ApproximateKernelLR:
        """Create the feature map and fit the linear model to the features; return self.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Training rows.
        y : array of shape (n_samples,)
            Their classes, two or more, of any type.
        sample_weight : array of shape (n_samples,), default=None
            Weights >= 0 of the rows, which multiply their losses.
        """
        if self.features == "fourier" and self.kernel != "rbf":
            message = f"features='fourier' requires kernel='rbf', got kernel={self.kernel!r}; use features='nystroem'."
            raise ValueError(message)
        X, y, weights = self._first_rows(X, y, sample_weight)
        model = self._linear_model(len(y))
        options = {} if weights is None else {f"{type(model).__name__.lower()}__sample_weight": weights}
        is_moved = self.features == "nystroem" and self.kernel == "rbf" and not sp.issparse(X)
        self.origin_ = X.mean(axis=0, dtype=np.float64).astype(X.dtype) if is_moved else None
        self.pipeline_: Pipeline = make_pipeline(self._approximation(X, weights), model)
        self.pipeline_.fit(self._moved(X), y, **options)
        self.n_iter_ = int(np.max(self.pipeline_[-1].n_iter_))
        return self

    @checked_decision
    def decision_function(self, X: Any) -> Any:
        """Evaluate the decision function at each row of X.

        The result has shape (n_samples,), or (n_samples, n_classes) for more than two classes.
        """
        check_is_fitted(self, "pipeline_")
        return self.pipeline_.decision_function(self._moved(self._validate(X, dtype=self._dtypes())))

    def _scores(self, f: Any) -> Any:
        return super()._scores(f) if self.solver == "sgd" else f

    def kernel_error(self, X: Any) -> float:
        """Return the largest error of the approximate kernel over all pairs of rows of X.

        The error of a pair is ``|z(x)'z(x') - k(x, x')|``.

        Theorem 2 of Qin et al. (2011) bounds it for Fourier features (Rahimi and Recht, claim 1).
        """
        check_is_fitted(self, "pipeline_")
        features, X = self.pipeline_[0], self._moved(self._validate(X, dtype=self._dtypes()))
        Z, options = features.transform(X), {"gamma": features.gamma, "degree": self.degree, "coef0": self.coef0}
        return float(np.max(np.abs(Z @ Z.T - pairwise_kernels(X, metric=self.kernel, filter_params=True, **options))))

    def stand_in(self) -> ApproximateKernelLR:
        """Return an estimator with the same solver, for a warm-up fit before the timed fit."""
        return type(self)(solver=self.solver)

    def _moved(self, X: Any) -> Any:
        """Return X minus the origin: differences of rows far from 0 would lose their digits."""
        if self.origin_ is None:
            return X
        return (X.toarray() if sp.issparse(X) else X) - self.origin_

    def _approximation(self, X: Any, weights: Any) -> Any:
        gamma = gamma_of(self.gamma, X, weights)
        if self.features == "fourier":
            frequencies, instead = f"n_components={self.n_components} frequencies", "use features='nystroem'"
            refuse_dense("ApproximateKernelLR", frequencies, X, self.n_components, instead)
            return RBFSampler(gamma=gamma, n_components=self.n_components, random_state=self.random_state)
        options: dict[str, Any] = {"rbf": {"gamma": gamma}, "linear": {}}.get(
            self.kernel, {"gamma": gamma, "degree": self.degree, "coef0": self.coef0}
        )
        size = min(X.shape[0], self.n_components)
        return Nystroem(self.kernel, n_components=size, random_state=self.random_state, **options)

    def _linear_model(self, n: float) -> Any:
        common = {"max_iter": self.max_iter, "random_state": self.random_state}
        if self.solver == "sgd":
            return SGDClassifier(loss="log_loss", alpha=1.0 / (n * self.C), **common)
        return LogisticRegression(C=self.C, **common)

    def _dtypes(self) -> Any:
        return [np.float64, np.float32] if self.kernel == "rbf" else np.float64
