"""The largest useful lambda, and fits along a path of them."""

import numpy as np
import pytest

from klr_bench import L1KLR, l1_path, lambda_max
from tests.estimators.l1.samples import MAPS, features_of, toy
from tests.reference import kernel as reference


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("features", MAPS)
def test_lambda_max_from_both_sides(features, intercept):
    X, y = toy()
    largest = lambda_max(X, y, fit_intercept=intercept, **MAPS[features])
    shared = {"fit_intercept": intercept, "tol": 1e-12, **MAPS[features]}
    with pytest.warns(UserWarning, match="is at least lambda_max"):
        above = L1KLR(lam=largest * 1.001, **shared).fit(X, y)
    below = L1KLR(lam=largest * 0.999, **shared).fit(X, y)
    assert not above.coef_.any()
    assert above.duality_gap_ <= 1e-12
    assert below.coef_.any()
    assert above.intercept_ == pytest.approx(np.log(np.mean(y > 0) / np.mean(y < 0)) if intercept else 0)
    assert above.lambda_max_ == largest
    Z = features_of(below, X)
    w, _ = reference.l1_optimum(Z, y, 1.01 * largest, intercept)
    np.testing.assert_allclose(w, 0, atol=1e-7)


def test_a_path_is_the_fits_one_by_one():
    X, y = toy()
    shared = {"tol": 1e-9, **MAPS["fourier"]}
    seen = []
    models = l1_path(X, y, (0.05, 0.5, 0.2), callback=lambda model, t: seen.append(t), **shared)
    assert [model.lam for model in models] == [0.5, 0.2, 0.05]
    for model in models:
        alone = L1KLR(lam=model.lam, lam_relative=True, **shared).fit(X, y)
        assert model.objective_ == pytest.approx(alone.objective_, rel=1e-8)
        np.testing.assert_allclose(model.predict_proba(X), alone.predict_proba(X), atol=1e-3)
    assert len(seen) == sum(model.n_iter_ for model in models)


@pytest.mark.parametrize("lams", [(0.5, -0.1), 0.0, (0.5, np.nan), (), "abc", None])
def test_a_path_takes_positive_lambdas_alone(lams):
    with pytest.raises(ValueError, match="lams: expected positive numbers"):
        l1_path(*toy(), lams)
