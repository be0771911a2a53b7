"""What a fit of L1KLR has led to: fitted attributes, what it reports to an experiment, and predictions."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from klr_bench.estimators.core.binary import BinaryKernelClassifier
from klr_bench.estimators.core.classifier import decides
from klr_bench.estimators.l1.matrix import rows_of_a_block


class L1Classifier(BinaryKernelClassifier):
    """A linear classifier on features of the rows; a subclass sets `features`, `tol`, `_map`, `_places` and `n_iter_`.

    `_map` computes the features, and `_places` says which of them belong to the coordinates of an iterate.
    """

    def _publish(self, iterate):
        """Set the fitted attributes from an iterate."""
        D = self._map.n_features
        D_here = iterate.problem.matrix.shape[1]
        self._iterate = iterate
        self.coef_ = np.zeros(D)
        self.coef_[self._places] = iterate.x[:D_here]
        self.intercept_ = float(iterate.x[D_here]) if iterate.problem.intercept else 0.0
        if self.features == "kernel":
            self.support_vectors_ = self._map.centres[np.flatnonzero(self.coef_)]
            self.n_support_ = self.support_vectors_.shape[0]

    def _finish(self, iterate):
        """Publish the last iterate, and release the problem."""
        self._publish(iterate)
        objective, gap = iterate.objective, iterate.relative_gap
        self._iterate = None
        self._final = objective, gap
        self.converged_ = gap <= self.tol

    @property
    def objective_(self):
        """F(w, b); while `fit` runs, that of the current iterate."""
        return self._iterate.objective if self._iterate is not None else self._final[0]

    @property
    def duality_gap_(self):
        """The duality gap divided by F; while `fit` runs, that of the current iterate."""
        return self._iterate.relative_gap if self._iterate is not None else self._final[1]

    def ended_at(self):
        """Return the t at which the fit ended."""
        return self.n_iter_

    def progress(self):
        """Return what a checkpoint keeps: sizes, objective and gap; of a second stage, another function, no objective.

        With two stages it also keeps the number of the stage.
        """
        objectives = {"objective": self.objective_, "duality_gap": self.duality_gap_} if self._stage == 1 else {}
        return self._sizes() | objectives | ({"stage": self._stage} if self.two_stage else {})

    def _sizes(self):
        """Return the number of support vectors, if there are any, and the share of non-zero coefficients."""
        support = {"n_support": self.n_support_} if self.features == "kernel" else {}
        return support | {"nonzero_fraction": float(np.mean(self.coef_ != 0))}

    def summary(self):
        """Return the sizes, the objective and the gap of the last stage, and the iterations."""
        objectives = {"objective": self.objective_, "duality_gap": self.duality_gap_}
        return {**self._sizes(), **objectives, "n_iter": self.n_iter_}

    def selected_features(self):
        """Return the columns of X with a coefficient other than 0, for features="linear"; else None."""
        return np.flatnonzero(self.coef_) if self.features == "linear" else None

    @decides
    def decision_function(self, X):
        """Return w'z(x) + b for the rows of X (n_samples, n_features), as float64 (n_samples,)."""
        check_is_fitted(self, "coef_")
        X = validate_data(self, X, dtype=self._dtypes(), accept_sparse="csr", reset=False)
        J = np.flatnonzero(self.coef_)
        part, w = self._map.take(J), self.coef_[J]
        values, step = np.full(X.shape[0], self.intercept_), rows_of_a_block(max(len(J), X.shape[1]))
        for start in range(0, X.shape[0], step):
            values[start : start + step] += part.transform(X[start : start + step]) @ w
        return values

    def predict_proba(self, X):
        """Return the probabilities of the two classes, (n_samples, 2)."""
        return self._probabilities(X)
