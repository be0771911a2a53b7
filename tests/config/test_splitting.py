"""Splits in YAML: each kind of split has its own keys."""

import pytest

from klr_bench.config.splitting import parse_split
from klr_bench.errors import KlrBenchError

MIXED = [
    ({"official": True, "test_size": 0.3}, ["s.test_size"], r"s\.test_size=0\.3: official=true is already set; add"),
    ({"official": True, "test_size": 0.3}, ["s.official"], r"s\.official=true: test_size=0\.3 is already set"),
    ({"folds": 5, "test_size": 0.3}, [], r"s\.folds=5: test_size=0\.3 is already set; add s\.test_size=null\."),
    ({"test_size": 0.3, "n_train": 5}, [], r"s\.n_train=5: test_size=0\.3 is already set; add s\.test_size=null"),
    ({"n_train": 5, "equal_classes": True}, [], r"s: expected one of \{test_size: 0\.2\}, .*, got \{'n_train': 5, "),
    ({}, [], r"s: expected one of .*, got \{\}"),
    ({"official": False}, [], r"s\.official: expected true, got False"),
    ({"runs": [[5]]}, [], r"s\.runs\[0\]: expected a pair: rows per block, number of blocks, got \[5\]"),
    ({"runs": [[5, 10**9], [5, 1]]}, [], r"s\.runs: expected at least two and at most"),
    ({"tset_size": 0.3}, [], r"unknown key 's\.tset_size'\. Did you mean 'test_size'\?"),
]


@pytest.mark.parametrize(("keys", "given", "message"), MIXED, ids=str)
def test_a_split_is_one_way_with_its_own_keys(keys, given, message):
    with pytest.raises(KlrBenchError, match=message):
        parse_split(keys, "s", given)
