"""L1KLR apart from its fit: feature maps, fitted attributes, what it reports to an experiment, and predictions."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted, validate_data

from klr_bench.estimators.core.binary import BinaryKernelClassifier
from klr_bench.estimators.core.classifier import checked_decision, distinct_labels
from klr_bench.estimators.core.features import FourierFeatures, KernelFeatures, LinearFeatures
from klr_bench.estimators.core.one_against_rest import begun, gather, spread
from klr_bench.estimators.core.operands import DENSE_AT_MOST
from klr_bench.estimators.l1.matrix import rows_of_a_block
from klr_bench.estimators.l1.solvers import length


class L1Classifier(BinaryKernelClassifier):
    """A linear classifier on features of the rows; a subclass sets `features`, `tol`, `_map`, `_places` and `n_iter_`.

    `_map` computes the features, and `_places` says which of them belong to the coordinates of an iterate.
    """

    def _validate(self, *data, dtype, reset=False):
        order = None if self.features == "linear" else "C"
        return validate_data(self, *data, dtype=dtype, reset=reset, accept_sparse="csr", order=order)

    def _publish(self, iterate):
        D = self._map.n_features
        D_here = iterate.problem.matrix.shape[1]
        self._iterate = iterate
        self.coef_ = np.zeros(D)
        self.coef_[self._places] = iterate.x[:D_here]
        self.intercept_ = float(iterate.x[D_here]) if iterate.problem.intercept else 0.0
        self._set_support()

    def _gather(self):
        learners = begun(self)
        gather(self, ("coef_", "intercept_", "n_iter_", "lam_", "lambda_max_"))
        self.converged_ = np.array([getattr(learner, "converged_", False) for learner in learners])
        self._map, self._stage, self._iterate = learners[0]._map, learners[-1]._stage, None
        self._final = tuple(np.array([(learner.objective_, learner.duality_gap_) for learner in learners]).T)
        self._set_support()

    def _set_support(self):
        if self.features == "kernel":
            self.support_vectors_ = self._map.centres[self._used()]
            self.n_support_ = self.support_vectors_.shape[0]

    def _used(self):
        return np.flatnonzero(np.atleast_2d(self.coef_).any(axis=0))

    def _finish(self, iterate):
        self._publish(iterate)
        objective, gap = iterate.objective, iterate.relative_gap
        self._iterate = None
        self._final = objective, gap
        self.converged_ = gap <= self.tol

    @property
    def objective_(self):
        """F(w, b), of more than two classes an array; while `fit` runs, that of the current iterate."""
        return self._iterate.objective if self._iterate is not None else self._final[0]

    @property
    def duality_gap_(self):
        """The duality gap divided by F, of more than two classes an array; while `fit` runs, of the current iterate."""
        return self._iterate.relative_gap if self._iterate is not None else self._final[1]

    def ended_at(self):
        """Return the t at which the fit ended."""
        return int(np.max(self.n_iter_))

    def progress(self):
        """Return what a checkpoint keeps: sizes, objective and gap; of a second stage, another function, no objective.

        With two stages it also keeps the number of the stage.
        """
        objectives = self._objectives() if self._stage == 1 else {}
        return self._sizes() | objectives | ({"stage": self._stage} if self.two_stage else {})

    def _objectives(self):
        return {"objective": float(np.sum(self.objective_)), "duality_gap": float(np.max(self.duality_gap_))}

    def _sizes(self):
        """Return the number of support vectors, if there are any, and the share of non-zero coefficients."""
        support = {"n_support": self.n_support_} if self.features == "kernel" else {}
        return support | {"nonzero_fraction": float(np.mean(self.coef_ != 0))}

    def summary(self):
        """Return the sizes, the objective and the gap of the last stage, and the iterations."""
        return {**self._sizes(), **self._objectives(), "n_iter": int(np.max(self.n_iter_))}

    def selected_features(self):
        """Return the columns of X with a coefficient other than 0, for features="linear"; else None."""
        return self._used() if self.features == "linear" else None

    @checked_decision
    def decision_function(self, X):
        """Return w'z(x) + b for the rows of X, as float64 (n_samples,) or (n_samples, n_classes)."""
        check_is_fitted(self, "coef_")
        X = self._validate(X, dtype=self._dtypes())
        J = self._used()
        part, w = self._map.take(J), self.coef_[..., J].T
        values = np.tile(self.intercept_, (X.shape[0], *[1] * (w.ndim - 1)))
        stays_sparse = sp.issparse(X) and X.shape[1] > DENSE_AT_MOST
        step = rows_of_a_block(len(J) if stays_sparse else max(len(J), X.shape[1]))
        for start in range(0, X.shape[0], step):
            values[start : start + step] += part.transform(X[start : start + step]) @ w
        return spread(self, values)

    def predict_proba(self, X):
        """Return the probabilities of the classes, (n_samples, n_classes)."""
        return self._probabilities(X)

    def rehearse(self, X, y):
        """Return an estimator whose fit ends where that of this one does, without the work that tells where.

        It knows the reference objective; "sgd_c" knows the number of examples, and takes no objectives: the paper times
        that second run (lines 316-318).  With more than two classes it is this one, which looks for the end itself.
        """
        if not isinstance(self.reference, str) or len(distinct_labels(y)) > 2:
            return self
        model = clone(self)
        if self.solver == "sgd_c":
            model.fit(X, y)
            return clone(self).set_params(reference=None, n_epochs=model.n_iter_ / len(y))
        problem, _ = model.prepare(X, y)
        return clone(self).set_params(reference=model._reference_objective(model._with_lam(problem)))

    def steps(self, n_samples):
        """Return the largest t that a callback of `fit` may see, and the first at which a trace may begin."""
        last, first = length(self, n_samples)
        return last * (1 + self.two_stage), first

    def stand_in(self):
        """Return an estimator with the same solver, whose fit compiles and loads it."""
        return type(self)(solver=self.solver)

    def _last(self):
        """Return the coefficients and the intercept of the last fit for a warm start, else None."""
        return (self.coef_, self.intercept_) if self.warm_start and "coef_" in vars(self) else None

    def _start(self, before):
        """Return a start (P,) that has the coefficients of the last fit, None if it had other features."""
        if before is None or before[0].shape != (self._map.n_features,):
            return None
        coef, intercept = before
        return np.append(coef[self._columns], intercept) if self.fit_intercept else coef[self._columns]

    def adopt(self, other):
        """Take the classes and the features of another estimator that has been prepared on the same rows."""
        self.classes_, self.n_features_in_ = other.classes_, other.n_features_in_
        self._map, self._columns = other._map, other._columns
        if "feature_names_in_" in vars(other):
            self.feature_names_in_ = other.feature_names_in_

    def _feature_map(self, X, random):
        if self.features == "linear":
            return LinearFeatures.of(X)
        if self.features == "kernel":
            return KernelFeatures.of(X, self._kernel(X))
        drawn = getattr(self, "_map", None)
        if (
            self.warm_start
            and isinstance(drawn, FourierFeatures)
            and drawn.omega.shape == (X.shape[1], self.n_components)
        ):
            return drawn
        return FourierFeatures.of(X, self.n_components, self._kernel(X).gamma, random)


def checked_lambda_max(problem):
    """Return the smallest lambda for which w = 0; refuse features that are not finite."""
    largest = problem.lambda_max()
    if not np.isfinite(largest):
        message = (
            "L1KLR: the features z_i of some rows are not finite; scale X, or choose another kernel "
            "(a degree that is not whole has no value below 0)."
        )
        raise ValueError(message)
    return largest
