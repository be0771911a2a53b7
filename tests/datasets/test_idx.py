"""The idx reader, and data sets of more than two classes."""

import bz2
import gzip
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from klr_bench.config.datasets import read_dataset
from klr_bench.datasets import dataset_hash
from klr_bench.datasets.readers import Arrays, Reading, read
from klr_bench.errors import KlrBenchError

ROOT = Path(__file__).parents[2]
MNIST = read_dataset("mnist", [ROOT / "configs"])
CODES = {"u1": 0x08, "i1": 0x09, "i2": 0x0B, "i4": 0x0C, "f4": 0x0D, "f8": 0x0E}
DIGITS = np.array([3, 1, 10, 3, 1], dtype=np.uint8)


def idx(array: NDArray[Any]) -> bytes:
    big = array.astype(array.dtype.newbyteorder(">"))
    header = struct.pack(f">BBBB{array.ndim}I", 0, 0, CODES[array.dtype.str[1:]], array.ndim, *array.shape)
    return header + big.tobytes()


def pair(folder: Path, examples: NDArray[Any], labels: NDArray[Any], name: str = "train") -> list[Path]:
    paths = [folder / f"{name}-images", folder / f"{name}-labels"]
    for path, array in zip(paths, (examples, labels), strict=True):
        path.write_bytes(idx(array))
    return paths


def images(n: int = 5, dtype: str = "u1") -> NDArray[Any]:
    return (np.arange(n * 6) * 7 % 251).reshape(n, 2, 3).astype(dtype)


def ten(paths: list[Path], **spec: Any) -> Arrays:
    return read(paths, Reading(**{"format": "idx", "multiclass": True} | spec))


@pytest.mark.parametrize("dtype", CODES)
def test_all_types_are_read(tmp_path: Path, dtype: str) -> None:
    values = images(dtype=dtype)
    arrays = ten(pair(tmp_path, values, DIGITS.astype("i4")))
    rows = values.reshape(5, 6).astype(np.float32)
    np.testing.assert_array_equal(arrays.X, rows / np.float32(255) if dtype == "u1" else rows)
    assert arrays.X.dtype == np.float32
    assert arrays.X.flags.c_contiguous
    assert (arrays.y.dtype, arrays.n_train_official) == (np.int8, None)


def test_many_classes_are_encoded_in_numerical_order(tmp_path: Path) -> None:
    train = pair(tmp_path, images(), DIGITS)
    test = pair(tmp_path, images(2), np.array([10, 3], dtype=np.uint8), "test")
    arrays = ten(train + test)
    assert arrays.classes == ("1", "3", "10")
    assert arrays.y.tolist() == [1, 0, 2, 1, 0, 2, 1]
    assert arrays.n_train_official == 5
    np.testing.assert_array_equal(arrays.X[5:], arrays.X[:2])


def test_one_class_against_the_rest_and_some_classes_alone(tmp_path: Path) -> None:
    paths = [*pair(tmp_path, images(), DIGITS), *pair(tmp_path, images(2), DIGITS[1:3], "test")]
    against_rest = read(paths, Reading(format="idx", positive="3"))
    assert (against_rest.y.tolist(), against_rest.classes) == ([1, -1, -1, 1, -1, -1, -1], ("not 3", "3"))
    alone = read(paths, Reading(format="idx", positive="10", only=["1", "10"]))
    assert (alone.y.tolist(), alone.classes, alone.n_train_official) == ([-1, 1, -1, -1, 1], ("1", "10"), 3)
    np.testing.assert_array_equal(alone.X, against_rest.X[[1, 2, 4, 5, 6]])


@pytest.mark.parametrize(
    ("which", "content", "message"),
    [
        (0, b"\x89PNG\r\n", r"images: expected the header of an idx file, got '89 50 4e 47'; obtain a new copy"),
        (0, b"\0\0\x08\2" + (10**9).to_bytes(4, "big") * 2 + b"1234", r"expected 10{9,} bytes .*, got 4 or more"),
        (1, bz2.compress(b"\0\0\x08\2" + bytes(8)), r"labels: expected 0 bytes .* shape \(0, 0\), got 0 or more"),
        (0, idx(images())[:-1], r"expected 30 bytes .* shape \(5, 2, 3\), got 29 or more; obtain a new copy"),
        (0, gzip.compress(idx(images()), mtime=0)[:-9], r"images: truncated or corrupted"),
        (0, idx(DIGITS), r"images: expected an array with one example per row, got shape \(5,\)"),
        (0, idx(np.where(np.arange(30) == 7, np.nan, 1.0).reshape(5, 6)), r"images: expected numbers between"),
        (1, idx(DIGITS[:4]), r"labels: expected 5 integers, one per row of .*images, got .* shape \(4,\) \(uint8\)"),
        (1, idx(DIGITS.astype("f4")), r"labels: expected 5 integers, .*, got an array of shape \(5,\) \(float32\)"),
        (1, idx(DIGITS * 0), r"expected 2 to 100 classes in the training file, got 1 class"),
    ],
)
def test_invalid_files_are_rejected(tmp_path: Path, which: int, content: bytes, message: str) -> None:
    paths = pair(tmp_path, images(), DIGITS)
    paths[which].write_bytes(content)
    with pytest.raises(KlrBenchError, match=message):
        ten(paths)


def test_inconsistent_settings_are_rejected(tmp_path: Path) -> None:
    paths = pair(tmp_path, images(), DIGITS)
    with pytest.raises(KlrBenchError, match=r"images: expected n_features=7 feature columns, got 6"):
        ten(paths, n_features=7)
    with pytest.raises(KlrBenchError, match=r"no row has the label '4' \(only\)\. Known: 1, 10, 3"):
        ten(paths, only=[1, 4])
    with pytest.raises(KlrBenchError, match=r"got 3 classes, with no training rows for 10"):
        ten(pair(tmp_path, images(4), DIGITS[[0, 1, 3, 4]]) + pair(tmp_path, images(1), DIGITS[2:3], "test"))


def test_selection_of_classes_is_part_of_the_key() -> None:
    changes: list[dict[str, Any]] = [{}, {"multiclass": False}, {"only": ["4", "9"]}]
    keys = {dataset_hash("mnist", MNIST.model_copy(update=change)) for change in changes}
    assert len(keys) == 3
    assert dataset_hash("mnist", MNIST.model_copy(update={"only": None})) == dataset_hash("mnist", MNIST)


@pytest.mark.parametrize("dtype", ["i4", "f8"])
def test_the_digits_that_float32_lacks_are_kept(tmp_path: Path, dtype: str) -> None:
    values = (1_700_000_000 + np.arange(30).reshape(5, 2, 3)).astype(dtype)
    np.testing.assert_array_equal(ten(pair(tmp_path, values, DIGITS)).X, values.reshape(5, 6))
