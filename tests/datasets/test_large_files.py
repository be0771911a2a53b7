"""Keys of a user's stream, which depend on every byte of its files."""

from pathlib import Path

import pytest

from klr_bench.datasets import dataset_hash, dataset_name
from tests.config.composing import dataset_of

ROWS = 2_000_000
"""Number of rows of a file of 36 MB."""


@pytest.mark.parametrize("split", [{"stream": True}, {"test_size": 0.2}])
def test_a_change_anywhere_in_a_large_file_changes_the_key(tmp_path: Path, split: dict[str, object]) -> None:
    path, text = tmp_path / "rows.svm", b"1 1:0.5\n-1 1:0.25\n" * (ROWS // 2)
    spec = dataset_of({"source": {"format": "file", "path": str(path)}, "split": split})
    keys = set()
    for row in (0, ROWS // 5, ROWS // 2, ROWS - 2):
        begin = row // 2 * 18
        path.write_bytes(text[:begin] + b"1 1:0.7" + text[begin + 7 :])
        keys.add((dataset_hash("own", spec), dataset_name("own", spec)))
    assert len(keys) == 4
