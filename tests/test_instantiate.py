"""Building objects from specs, and which classes may be algorithms."""

from numbers import Real

import pytest
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils._param_validation import Interval

from klr_bench.errors import KlrBenchError
from klr_bench.instantiate import build, check_parameters, classifier_class, locate, parameters


def test_build_calls_the_target():
    assert build({"_target_": "klr_bench.OSKL", "G": 2.0}, R=7.0).get_params()["R"] == 7.0


@pytest.mark.parametrize("target", ["klr_bench.Oskl", "no_such_module.Thing", "OSKL", "klr_bench.__version__"])
def test_locate_refuses(target):
    with pytest.raises(KlrBenchError, match=f"_target_: expected the dotted name of a .*, got '{target}', "):
        locate(target)


class NoFit:
    pass


class Unwilling:
    """A class with all required methods, which must not be called."""

    _parameter_constraints = {"rate": [Interval(Real, 0, 1, closed="both")]}  # noqa: RUF012

    def __init__(self, rate=1.0):
        raise RuntimeError

    fit = predict = lambda self, X, y=None: self


class ScaledSVC(Pipeline):
    """A pipeline with its own constructor."""

    def __init__(self, copy=True):
        self.copy = copy
        super().__init__([("scale", StandardScaler(copy=copy)), ("svc", SVC())])


class OddNames:
    """A class without set_params that has a parameter with double underscores in its name."""

    def __init__(self, a__b=1):
        self.a__b = a__b

    fit = predict = lambda self, X, y=None: self


HERE = "tests.test_instantiate"


def test_parameters_of_parts_are_set_behind_the_constructor():
    spec = {"_target_": f"{HERE}.ScaledSVC", "copy": False, "svc__C": 7.0, "svc__kernel": "linear"}
    check_parameters(spec)
    built = build(spec, svc__C=8.0)
    assert (built["scale"].copy, built["svc"].C, built["svc"].kernel) == (False, 8.0, "linear")
    with pytest.raises(ValueError, match="Invalid parameter 'D' for estimator SVC"):
        build(spec | {"svc__D": 1})
    odd = {"_target_": f"{HERE}.OddNames", "a__b": 2}
    check_parameters(odd)
    assert build(odd).a__b == 2
    with pytest.raises(TypeError):
        check_parameters(odd | {"c__d": 1})


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("klr_bench.lambda_max", "which is a function"),
        (f"{HERE}.NoFit", "which has no method fit"),
        ("sklearn.linear_model.LinearRegression", "expected a classifier, got '.*LinearRegression', a regressor"),
    ],
)
def test_an_algorithm_is_a_class_with_fit(target, message):
    with pytest.raises(KlrBenchError, match=message):
        classifier_class(target)
    with pytest.raises(KlrBenchError, match=message):
        check_parameters({"_target_": target})


def test_parameters_are_checked_without_a_call():
    spec = {"_target_": f"{HERE}.Unwilling"}
    assert list(parameters(spec["_target_"])) == ["rate"]
    check_parameters(spec | {"rate": 0.5})
    with pytest.raises(ValueError, match="'rate' parameter of Unwilling must be"):
        check_parameters(spec | {"rate": 2})
    with pytest.raises(TypeError, match="unexpected keyword argument 'rte'"):
        check_parameters(spec | {"rte": 2})
    check_parameters({"_target_": "sklearn.svm.SVC", "C": 2.0})
    with pytest.raises(ValueError, match="'C' parameter of SVC"):
        check_parameters({"_target_": "sklearn.svm.SVC", "C": -2.0})
