"""Base class of classifiers that learn from all rows at once, with a kernel."""

from __future__ import annotations

from dataclasses import KW_ONLY

import numpy as np
from sklearn.utils._param_validation import StrOptions

from klr_bench.estimators.core.classifier import Classifier
from klr_bench.estimators.core.kernels import KERNELS, WIDTHS
from klr_bench.estimators.core.parameters import NUMBER, POSITIVE, SEED, CompiledKernels, estimator, parameter


@estimator
class KernelClassifier(Classifier):
    """Base class of classifiers with a kernel."""

    _: KW_ONLY
    kernel: str = parameter(StrOptions(set(KERNELS)), default="rbf")
    gamma: float | str | None = parameter(POSITIVE, StrOptions(set(WIDTHS)), None, default="scale")
    degree: float = parameter(POSITIVE, default=3)
    coef0: float = parameter(NUMBER, default=1.0)
    random_state: int | np.random.RandomState | None = parameter(*SEED, default=None)
    dtype: str | None = parameter(StrOptions({"float32", "float64"}), None, default=None)

    _described_by = CompiledKernels
    _loss = "logit"
    _draws = True
