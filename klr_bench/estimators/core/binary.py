"""The scikit-learn interface that binary classifiers share: parameters, validation, prediction."""

from __future__ import annotations

import numpy as np
from scipy.special import expit
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _check_sample_weight, validate_data

from klr_bench.estimators.core.classifier import Classifier, distinct_labels, refuse_single
from klr_bench.estimators.core.kernels import KERNELS, WIDTHS, Kernel, gamma_of
from klr_bench.estimators.core.parameters import NUMBER, POSITIVE, SEED
from klr_bench.estimators.core.rows import make_writable


def row_weights(sample_weight, class_weight, X, y, classes):
    """Return the weights of the rows (n,), float64: their own times those of their classes; None where all are 1.

    Raises ValueError for negative weights, and for weights of the wrong shape.
    """
    if sample_weight is None and class_weight is None:
        return None
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if class_weight is None:
        return weights
    of_classes = compute_class_weight(class_weight, classes=classes, y=y)
    return weights * of_classes[np.searchsorted(classes, y)]


class BinaryClassifier(Classifier):
    """A classifier for two classes; a subclass has `fit` and `decision_function`."""

    _fixed = ()
    """Parameters that define the state, and so cannot change between two calls of `partial_fit`."""

    def predict(self, X):
        """Return the predicted classes of the rows of X, (n_samples,); f(x) = 0 means the first class."""
        positive = self.decision_function(X) > 0
        return self.classes_[positive.astype(int)]

    def _forget(self):
        """Validate the parameters, and remove the attributes of an earlier fit."""
        self._validate_params()
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)
        self._begun_with = {name: getattr(self, name) for name in self._fixed}

    def _go_on_with(self, classes):
        """Prepare a later call of `partial_fit`; refuse other classes, and parameters that cannot change any more."""
        self._validate_params()
        for name, value in getattr(self, "_begun_with", {}).items():
            now = getattr(self, name)
            if now != value:
                message = (
                    f"The {name!r} parameter of {type(self).__name__} was {value!r} in the first call and cannot "
                    f"change. Got {now!r}; call fit to start anew."
                )
                raise ValueError(message)
        if classes is not None and not np.array_equal(classes, self.classes_):
            named = distinct_labels(classes, "classes")
            if not np.array_equal(named, self.classes_):
                message = f"classes={named.tolist()}: the first call was with {self.classes_.tolist()}."
                raise ValueError(message)
        self._allowed(self.classes_)
        make_writable(self)

    def _dtypes(self):
        """Return the precisions of X that are kept; any other is converted to the first."""
        return [np.float64, np.float32]

    def _validate(self, *data, dtype, reset=False):
        return validate_data(
            self, *data, dtype=dtype, reset=reset, accept_sparse="csr", order="C", accept_large_sparse=True
        )

    def _set_classes(self, y, classes=None):
        """Set the classes: those given for a first call of `partial_fit`, else those in y."""
        self.classes_ = self._allowed(distinct_labels(y) if classes is None else distinct_labels(classes, "classes"))

    def _allowed(self, classes):
        """Return sorted classes, or refuse their number."""
        refuse_single(classes, self)
        if len(classes) > 2:
            message = f"Only binary classification is supported. The type of the target is {type_of_target(classes)}."
            raise ValueError(message)
        return classes

    def _signs(self, y):
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            message = f"y has labels {unknown.tolist()}, which are not among the classes {self.classes_.tolist()}."
            raise ValueError(message)
        return np.where(y == self.classes_[1], 1.0, -1.0)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        return tags


class BinaryKernelClassifier(BinaryClassifier):
    """A classifier for two classes with parameters `kernel`, `gamma`, `degree`, `coef0`, `random_state`, `dtype`.

    A subclass has `fit` and `decision_function`.
    """

    _parameter_constraints = {  # noqa: RUF012
        "kernel": [StrOptions(set(KERNELS))],
        "gamma": [POSITIVE, StrOptions(set(WIDTHS)), None],
        "degree": [POSITIVE],
        "coef0": [NUMBER],
        "random_state": SEED,
        "dtype": [StrOptions({"float32", "float64"}), None],
    }

    def _forget(self):
        super()._forget()
        self._random = check_random_state(self.random_state)

    def _dtypes(self):
        return super()._dtypes() if self.dtype is None else self.dtype

    def _probabilities(self, X):
        """Return the sigmoid of -f and f for the rows of X, (n_samples, 2)."""
        f = self.decision_function(X)
        return np.column_stack([expit(-f), expit(f)])

    def _kernel(self, X):
        """Return the kernel of a fit to the rows X, which a gamma that is given by name depends on."""
        return Kernel(self.kernel, gamma_of(self.gamma, X), self.degree, self.coef0)
