"""Tests of SOFS against a reference implementation and AROW."""

import numpy as np
import pytest
import scipy.sparse as sp

from klr_bench import AROW, SOFS
from tests.estimators.linear.samples import toy
from tests.reference import sparse_linear as reference


@pytest.mark.parametrize("B", [1, 8, 30])
@pytest.mark.parametrize("values", ["real", "binary", "whole"])
@pytest.mark.parametrize("n_epochs", [1, 2])
def test_sofs_equals_the_reference(B, values, n_epochs):
    """Binary and integer features have many equal variances."""
    X, y = toy(200)
    X = {"real": X, "binary": (X != 0).astype(float), "whole": np.round(X)}[values]
    model = SOFS(B, r=0.5, n_epochs=n_epochs).fit(sp.csr_matrix(X), y)
    w, s, updates = reference.sofs(X, y, B, 0.5, n_epochs)
    np.testing.assert_allclose(model.variance_, s, rtol=1e-10)
    np.testing.assert_allclose(model.coef_, w, rtol=1e-8, atol=1e-10)
    assert model.n_updates_ == updates
    assert np.count_nonzero(model.coef_) <= len(model.selected_features_) == B
    assert set(np.flatnonzero(model.coef_)) <= set(model.selected_features_)


def test_sofs_with_all_features_equals_arow_with_a_diagonal_covariance():
    X, y = toy(200)
    sofs = SOFS(n_features_to_select=30, r=0.3).fit(X, y)
    unit = X / np.linalg.norm(X, axis=1)[:, None]
    arow = AROW(r=0.3, covariance="diagonal").fit(unit, y)
    np.testing.assert_allclose(sofs.coef_, arow.coef_, rtol=1e-10)
    np.testing.assert_allclose(sofs.variance_, arow.covariance_, rtol=1e-10)
