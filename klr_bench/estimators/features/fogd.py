"""Online gradient descent on random Fourier features."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from klr_bench.estimators.core.checks import checked_decision
from klr_bench.estimators.core.kernels import gamma_of
from klr_bench.estimators.core.losses import LOSSES
from klr_bench.estimators.core.parameters import COMPONENTS, POSITIVE, estimator, fixed, parameter
from klr_bench.estimators.features.base import Descent, FeatureDescentClassifier, FeatureEngine, rows_of_chunk
from klr_bench.estimators.kernel_values.features import FourierFeatures
from klr_bench.estimators.online.one_row import Published


@estimator
class FOGD(FeatureDescentClassifier):
    r"""Online gradient descent on random Fourier features of the rbf kernel.

    Use it on many rows or an endless stream: memory and the time for a row depend on the number of random features
    alone.  More features approximate the kernel better.  Scale the features first.

    Parameters
    ----------
    n_components : int, default=500
        Number D of features, 1 to a million.  The error of the kernel falls as 1 / sqrt(D).  In the reference of
        budget_all 414 features are as accurate on Adult (84.4 %) as 3,443 (84.1 %).
    gamma : float, {"scale", "auto", "median"} or None, default="scale"
        gamma > 0 of the kernel.  "scale" is 1 / (n_features X.var()), "auto" or None is 1 / n_features, "median" is
        1 / (2 m^2) with the median distance m of rows; computed from the rows of `fit` or of the first `partial_fit`.
        Try 0.1, 0.3, 1 and 3 times the value of "scale".  The experiments have 1 / (2 s^2) with the 20th percentile s
        of the distances between training rows.

    Attributes
    ----------
    coef_ : ndarray of shape (n_components,), or (n_classes, n_components) for more than two classes, float64
        w, the average of the w_t or the last one.

    Notes
    -----
    .. math::

        & z_j(x) = \sqrt{\frac{2}{D}} \cos(\omega_j^T x + b_j), \qquad j = 1, \ldots, D \\
        & w \leftarrow w - \eta \, \ell'(y, w^T z(x)) \, z(x)

    The omega_j ~ N(0, 2 gamma I) and b_j ~ U(0, 2 pi) are drawn once; the products z(x)'z(x') estimate
    ``exp(-gamma ||x - x'||^2)``.  Memory and the time for a row do not depend on the number of rows.  The paper has the
    features cos(omega_j'x) and sin(omega_j'x), and does not divide them by the root of the number of the omega_j: its
    step size is our eta divided by that number.

    With more than two classes it learns one f_k for each, which separates it from the others, on the same features.

    References
    ----------
    Lu, Hoi, Wang, Zhao, Liu, "Large scale online kernel learning", JMLR 17(47), 2016, algorithm 1.  Random Fourier
    features: Rahimi, Recht, NIPS 2007.

    Examples
    --------
    >>> from klr_bench import FOGD
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(400, noise=0.1, random_state=0)
    >>> model = FOGD(n_components=100, eta=2.0, gamma=2.0, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9, model.coef_.shape, model.t_
    (True, (100,), 4000)
    """

    n_components: int = parameter(COMPONENTS, default=500)
    eta: float = parameter(POSITIVE, default=1.0)
    loss: str = parameter(StrOptions({"logit", "hinge", "square"}), default="logit")

    kernel: str = fixed("rbf")
    degree: float = fixed(3)
    coef0: float = fixed(1.0)

    coef_ = Published()
    _progressive = True
    _fixed = ("n_components", "gamma", "dtype")

    @checked_decision
    def decision_function(self, X):
        """Evaluate the decision function at each row of X.

        The result is float64 of shape (n_samples,), or (n_samples, n_classes) for more than two classes.
        """
        check_is_fitted(self, "coef_")
        X = self._validate(X, dtype=self._state.dtype)
        coef, size = self.coef_.T.astype(X.dtype), rows_of_chunk(self.n_components)
        values = np.empty((X.shape[0], *coef.shape[1:]))
        for start in range(0, len(values), size):
            values[start : start + size] = self._state.features.transform(X[start : start + size]) @ coef
        return values

    def progress(self):
        """Return the fraction of nonzero weights, as a metric to store at a checkpoint."""
        return {"nonzero_fraction": float(np.mean(self.coef_ != 0))}

    def summary(self):
        """Return the fraction of nonzero weights and the number of updates."""
        return {**self.progress(), "n_updates": self.n_updates_}

    def selected_features(self):
        """Return None, because Fourier features depend on all columns of X."""

    def _engine(self, X, weights):
        engine = self._state
        if engine is None:
            features = FourierFeatures.of(X, self.n_components, gamma_of(self.gamma, X, weights), self._random)
            engine = FourierState(features, X, self._n_functions())
        engine.loss, engine.eta = LOSSES[self.loss], self.eta
        return engine

    def _publish(self):
        self.coef_ = self._shown_coefficients()


class FourierState(FeatureEngine):
    """Engine of `FOGD`: gradient descent on random Fourier features."""

    def __init__(self, features, X, n_functions):
        # denser rows take less memory as a dense array than as CSR
        super().__init__(X.dtype, sparse=sp.issparse(X) and 2 * X.nnz < X.shape[0] * X.shape[1])
        self.features, self.descent = features, Descent(np.zeros((n_functions, features.n_features)))

    @property
    def chunk(self):
        """Number of rows whose features are computed at once."""
        return rows_of_chunk(self.features.n_features)

    def _learn(self, X, y, weights):
        Z = self.features.transform(X)
        self.descent.learn(self.loss, self.eta, Z, y, weights, self.states)

    @property
    def decided(self):
        """Decision values of the rows passed to the last `learn`, each computed before its update."""
        return self.descent.values[0]

    def average_from_here(self):
        """Restart the average of the weights, so that it covers only later examples."""
        self.descent.average_from_here()

    def coefficients(self, *, average):
        """Return the averaged weights if `average` is True, and the last weights otherwise."""
        return self.descent.sum() / max(self.descent.n, 1) if average else self.descent.weights.copy()
