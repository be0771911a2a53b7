"""Every public classifier is compared with a slow reference in double precision."""

import re
from pathlib import Path

import pytest

from klr_bench.estimators.features.base import FeatureDescentClassifier
from klr_bench.estimators.online.classifier import OnlineClassifier
from tests.estimators.budget.test_budget import CASES as BUDGET_CASES
from tests.estimators.budget.test_budget import UNLIMITED
from tests.estimators.online.cases import CASES as ONLINE_CASES
from tests.estimators.samples import CLASSIFIERS

HERE = Path(__file__).parent
BY_RULE = [
    name
    for name, cls in CLASSIFIERS.items()
    if issubclass(cls, OnlineClassifier) and not issubclass(cls, FeatureDescentClassifier)
]
"""Learners with a compiled rule or strategy."""
COMPARED = {type(learner).__name__ for learner in [*(ONLINE_CASES | BUDGET_CASES | UNLIMITED).values()]}
OF_PARTS = {
    "DualCDKLRCV": "test_cross_validation.py",
    "OSKLCV": "test_cross_validation.py",
    "PartitionedKLR": "batch/test_partitioned.py",
}
"""Classes that fit another one to parts of the rows, and the tests that compare them with fits of that one."""


@pytest.mark.parametrize("name", BY_RULE)
def test_a_learner_is_compared_with_a_reference(name):
    assert name in COMPARED, (
        f"{name} has no reference: implement its rule plainly in tests/reference/kernel.py, and add a line to CASES in "
        "tests/estimators/budget/test_budget.py or tests/estimators/online/cases.py"
    )


@pytest.mark.parametrize("name", sorted({*CLASSIFIERS} - {*BY_RULE}))
def test_another_classifier_has_tests_with_a_reference(name):
    wing = CLASSIFIERS[name].__module__.split(".")[-2]
    paths = [HERE / OF_PARTS[name]] if name in OF_PARTS else sorted((HERE / wing).glob("*.py"))
    texts = [path.read_text(encoding="utf-8") for path in paths]
    if name not in OF_PARTS:
        texts = [text for text in texts if re.search(r"^from tests\.reference\b", text, re.MULTILINE)]
    assert any(re.search(rf"\b{name}\b", text) for text in texts), (
        f"{name} has no reference: implement it plainly in tests/reference, and compare in tests/estimators/{wing}"
    )
