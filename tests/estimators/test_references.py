"""Every learner with a compiled rule or strategy is compared with a slow reference in double precision."""

import inspect
from pathlib import Path

import pytest

import klr_bench
from klr_bench.estimators.budget.base import BudgetClassifier
from klr_bench.estimators.features.base import FeatureDescentClassifier
from klr_bench.estimators.online.classifier import OnlineClassifier
from tests.estimators.budget.test_budget import CASES as BUDGET_CASES
from tests.estimators.budget.test_budget import UNLIMITED
from tests.estimators.online.cases import CASES as ONLINE_CASES

HERE = Path(__file__).parent
LEARNERS = [
    thing
    for name in klr_bench.__all__
    if inspect.isclass(thing := getattr(klr_bench, name))
    and issubclass(thing, OnlineClassifier)
    and not issubclass(thing, FeatureDescentClassifier)  # of features/test_descent.py
]
COMPARED = {type(learner).__name__ for learner in [*(ONLINE_CASES | BUDGET_CASES | UNLIMITED).values()]}


@pytest.mark.parametrize("cls", LEARNERS, ids=lambda cls: cls.__name__)
def test_a_learner_is_compared_with_a_reference(cls):
    wing, module = cls.__module__.split(".")[-2:]
    tests = HERE / wing / f"test_{module}.py"
    place = "budget/test_budget.py" if issubclass(cls, BudgetClassifier) else "online/cases.py"
    assert cls.__name__ in COMPARED or tests.exists(), (
        f"{cls.__name__} has no reference: implement its rule plainly in tests/reference/kernel.py, and add a line "
        f"to CASES in tests/estimators/{place}; or give it tests in {tests.relative_to(HERE.parents[1])}"
    )
