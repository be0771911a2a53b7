"""A classifier on prototypes apart from its fit: checks of rows and parameters, fitted attributes, predictions."""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, softmax
from sklearn.utils.validation import check_is_fitted, validate_data

from klr_bench.estimators.core.classifier import (
    Classifier,
    checked_decision,
    refuse_single,
    refuse_weightless,
    row_weights,
)
from klr_bench.estimators.core.kernels import squared_norms
from klr_bench.estimators.core.rows import in_layout, restricted, without_duplicates
from klr_bench.estimators.prototype.model import PARTS, Rows


class PrototypeClassifier(Classifier):
    """Prediction by a point x of a model; a subclass sets `classes_`, `lazy`, `_model`, `_origin` and `_columns`.

    And `n_iter_` and `objective_`, at the end of a fit.
    """

    watched = ("accuracy", "log_loss")
    """Metrics that a checkpoint evaluates."""

    def _publish(self, x):
        self._x = x
        b0, B, U, theta = self._model.layout.views(x)
        if self._columns is None:
            self.prototypes_ = U.T if self._origin is None else U.T + self._origin
        else:
            some = sp.csr_matrix(U[:-1].T)
            shape = (some.shape[0], self.n_features_in_)
            self.prototypes_ = sp.csr_matrix((some.data, self._columns[some.indices], some.indptr), shape=shape)
        self.n_support_ = self.prototypes_.shape[0]
        self.gamma_ = float(np.exp(theta[0]))
        two = len(self.classes_) == 2
        self.dual_coef_ = B[:, 0] if two else B.T
        self.intercept_ = float(b0[0]) if two else b0

    def progress(self):
        """Return the number of prototypes, gamma, and in the plane all that a picture needs, as "u_0_1" and "b_0_1"."""
        kept = {"n_support": self.n_support_, "gamma": self.gamma_}
        if self.n_features_in_ == 2:
            arrays = {"u": self.prototypes_, "b": np.atleast_2d(self.dual_coef_), "b0": np.atleast_1d(self.intercept_)}
            for name, array in arrays.items():
                kept |= {"_".join([name, *map(str, at)]): float(value) for at, value in np.ndenumerate(array)}
        return kept

    def steps(self, n_samples):
        """Return the largest t that a callback of `fit` may see, and the first at which a trace may begin."""
        return self.max_iter, 1

    def summary(self):
        """Return what the fit has led to: prototypes, the share of non-zero entries in them, passes, the objective."""
        U = self.prototypes_
        nonzero = U.count_nonzero() if sp.issparse(U) else np.count_nonzero(U)
        return {
            "n_support": self.n_support_,
            "nonzero_fraction": nonzero / math.prod(self.prototypes_.shape),
            "n_iter": self.n_iter_,
            "objective": self.objective_,
        }

    def stand_in(self):
        """Return an estimator with the same solver, whose fit loads and compiles it."""
        return type(self)(solver=self.solver)

    def kernel_values(self, X):
        """Return the kernel values of the rows of X with the prototypes, (n_samples, n_prototypes)."""
        check_is_fitted(self)
        rows = self._new_rows(X)
        return np.concatenate([self._model.kernel_values(self._x, block) for block, _, _ in rows.blocks()])

    @checked_decision
    def decision_function(self, X):
        """Return the scores (n_samples, n_classes), float64; with two classes (n_samples,), > 0 for the second."""
        check_is_fitted(self)
        scores = self._model.scores(self._x, self._new_rows(X))
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_proba(self, X):
        """Return the probabilities of the classes, (n_samples, n_classes)."""
        scores = self.decision_function(X)
        return np.column_stack([expit(-scores), expit(scores)]) if scores.ndim == 1 else softmax(scores, axis=1)

    def _new_rows(self, X):
        X = validate_data(self, X, dtype=self._x.dtype, accept_sparse="csr", order="C", reset=False)
        X = self._tidy(X)
        return Rows(X if self._columns is None else self._compacted(in_layout(X, sparse=True)), None, self._origin)

    def _tidy(self, X):
        """Return X, CSR rows without duplicates; in the lazy form CSR rows that name no feature that is 0."""
        X = without_duplicates(X)
        if self.lazy and not (sp.issparse(X) and np.all(X.data)):
            X = sp.csr_matrix(X, copy=True)
            X.eliminate_zeros()
        return X

    def _compacted(self, X):
        """Return CSR rows with the columns that occur in the fit, and the norm of all others as one more.

        Prototypes are 0 in the others, so that no kernel value changes.
        """
        some = restricted(X, self._columns)
        others = np.sqrt(np.maximum(squared_norms(X) - squared_norms(some), 0))
        return sp.hstack([some, sp.csr_matrix(others[:, None])], format="csr")

    def _check(self, X):
        refuse_single(self.classes_, self, "two classes or more")
        if self.lazy and (self.kernel != "rbf" or not sp.issparse(X)):
            message = f"lazy=True is for kernel='rbf' and CSR rows; got kernel={self.kernel!r} and {type(X).__name__}."
            raise ValueError(message)
        if not self._parts():
            message = "learn_coef, learn_prototypes and learn_width are False, or of no use: nothing is left to learn."
            raise ValueError(message)

    def _parts(self):
        """Return what is learned: some of "b", "u", "theta"."""
        wanted = (self.learn_coef, self.learn_prototypes, self.learn_width and self.kernel != "linear")
        return tuple(part for part, learned in zip(PARTS, wanted, strict=True) if learned)

    def _weights(self, sample_weight, X, y):
        """Return the weights of the rows (n,), with a mean of 1, or None."""
        weights = row_weights(sample_weight, self.class_weight, X, y, self.classes_)
        if weights is None:
            return None
        refuse_weightless(self, weights, y)
        return weights / weights.mean()

    def _rows(self, X, codes, weights, random):
        """Return the rows to learn from and those held out, the same share of each class."""
        origin = None
        if self.kernel == "rbf" and not sp.issparse(X) and not self.l1:
            origin = X.mean(axis=0, dtype=np.float64).astype(X.dtype)
        rows, held_out = Rows(X, codes, origin, weights).split(self.validation_fraction, random)
        if self.n_prototypes is not None and self.n_prototypes > len(rows):
            excess = f"more prototypes than the {len(rows)} training rows"
            message = f"n_prototypes={self.n_prototypes}: {excess}; ask for fewer."
            raise ValueError(message)
        return rows, held_out
