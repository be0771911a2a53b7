"""Attacks on the cache: failing disks, programs and users change no number and cause no endless wait."""

import gzip
import hashlib
import json
import shutil
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from klr_bench.config.models import FileEntry
from klr_bench.datasets import cache as cache_module
from klr_bench.datasets import parsed as parsed_module
from klr_bench.datasets.dataset import Dataset, dataset_hash
from klr_bench.datasets.dataset import load as load_dataset
from klr_bench.datasets.download import verify
from klr_bench.errors import KlrBenchError
from klr_bench.files import read_checked_json, write_checked_json
from tests.attack.promise import Hostile, check_message
from tests.attack.test_data_files import NO_FILES
from tests.config.composing import dataset_of

PLAIN = b"1,2,a\n3,4,b\n5,6,a\n"
SHA256 = hashlib.sha256(PLAIN).hexdigest()
X = [[1, 2], [3, 4], [5, 6]]
NAME = "set/file"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def mirror(tmp_path: Path) -> str:
    (tmp_path / "mirror" / "set").mkdir(parents=True)
    (tmp_path / "mirror" / NAME).write_bytes(PLAIN)
    return str(tmp_path / "mirror")


def spec(sha256: str = SHA256) -> dict[str, Any]:
    source = {"format": "csv", "train": {"name": NAME, "sha256": sha256}}
    return {"label": "Mine", "source": source, "split": {"test_size": 0.5}}


def entry(sha256: str = SHA256) -> FileEntry:
    return FileEntry(name=NAME, sha256=sha256)


def load(cache: Path, mirror: str | None, sha256: str = SHA256) -> Dataset:
    return load_dataset("set", dataset_of(spec(sha256)), cache=cache, mirror=mirror)


def check_loads(cache: Path, mirror: str | None, sha256: str = SHA256) -> None:
    np.testing.assert_array_equal(load(cache, mirror, sha256).X, X)


@pytest.fixture
def folder(cache: Path, mirror: str) -> Path:
    """The folder of parsed arrays."""
    return cache / "parsed" / load(cache, mirror).hash


def test_a_damaged_download_whose_stamp_fits_is_not_parsed(cache: Path, mirror: str, folder: Path) -> None:
    shutil.rmtree(folder)
    path = cache / NAME
    path.write_bytes(PLAIN.replace(b"1", b"2", 1))
    write_checked_json(Path(f"{path}.stamp"), {"state": cache_module.state_of(path), "sha256": SHA256})
    with pytest.raises(KlrBenchError, match="run the same command again"):
        load(cache, mirror)
    check_loads(cache, mirror)


@pytest.mark.parametrize("content", ["null", "[0, {}]", "[" * 100_000, '{"files": {"../../secret": 1}}'])
def test_an_odd_description_of_arrays(content: str, cache: Path, mirror: str, folder: Path) -> None:
    (folder / "meta.json").write_text(content)
    check_loads(cache, mirror)


def test_pickled_objects_in_the_cache_are_not_loaded(cache: Path, mirror: str, folder: Path, tmp_path: Path) -> None:
    np.save(folder / "X.npy", np.array([Hostile(tmp_path / "mark")], dtype=object), allow_pickle=True)
    _, meta = json.loads((folder / "meta.json").read_text())
    meta["files"]["X.npy"] = zlib.crc32((folder / "X.npy").read_bytes())
    write_checked_json(folder / "meta.json", meta)
    check_loads(cache, mirror)
    assert not (tmp_path / "mark").exists()
    np.load(folder / "X.npy")  # whole again


@pytest.mark.parametrize("sha256", [SHA256, "unknown"], ids=["known", "unknown"])
@pytest.mark.parametrize("stamp", ["", "[" * 100_000, '{"sha256": 5}', '{"state": [1, 2], "sha256": "%s"}', "[5, %s]"])
def test_an_odd_stamp(stamp: str, sha256: str, cache: Path, mirror: str) -> None:
    check_loads(cache, mirror, sha256)
    (path,) = cache.rglob("file.stamp")
    path.write_text(stamp.replace("%s", "0" * 64))
    check_loads(cache, mirror, sha256)
    assert verify(entry(), cache=cache) == "ok"
    assert read_checked_json(path)["sha256"] == SHA256


@pytest.mark.parametrize("note", ["", "[" * 100_000, '["place", "stored", "sha256"]', '{"place": "/", "sha256": 5}'])
def test_an_odd_note_on_the_content_of_a_file(note: str, cache: Path, mirror: str) -> None:
    Path(mirror, NAME).with_suffix(".gz").write_bytes(gzip.compress(PLAIN))
    Path(mirror, NAME).unlink()
    check_loads(cache, mirror, "unknown")
    (path,) = cache.glob("sources/*.json")
    whole = path.read_bytes()
    for content in (
        note.encode(),
        whole[:-9],
        whole.replace(b"sha256", b"sha_56"),
        whole.replace(SHA256[:5].encode(), b"00000"),
    ):
        path.write_bytes(content)
        check_loads(cache, mirror, "unknown")
        assert path.read_bytes() == whole


def test_an_edited_copy_of_unknown_content_is_replaced(cache: Path, mirror: str) -> None:
    check_loads(cache, mirror, "unknown")
    (path,) = cache.rglob(f"{NAME.split('/')[1]}")
    shutil.rmtree(cache / "parsed")
    path.write_bytes(b"7,8,a\n9,9,b\n")
    check_loads(cache, mirror, "unknown")
    assert path.read_bytes() == PLAIN


PLACES = [
    *(f"cache/set/file{suffix}" for suffix in ("", ".xz", ".stamp", ".lock", ".tmp", ".part", ".part.json")),
    *(f"cache/parsed/KEY{suffix}" for suffix in ("", ".tmp", ".lock", "/meta.json", "/X.npy")),
    *("mirror/set/file", "cache/parsed", "cache/set", "cache"),
]


@pytest.mark.exhaustive
@pytest.mark.timeout(60)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", NO_FILES)
def test_what_is_no_file_hangs_nothing(kind: str, place: str, cache: Path, mirror: str, tmp_path: Path) -> None:
    key = load(cache, mirror).hash
    path = tmp_path / place.replace("KEY", key)
    if path.is_dir():
        path.rename(tmp_path / "aside")
    path.unlink(missing_ok=True)
    NO_FILES[kind][0](path)
    parsed_module._cached_crc32.cache_clear()
    for call in (lambda: check_loads(cache, mirror), lambda: parsed_module.verify(cache / "parsed" / key)):
        try:
            call()
        except KlrBenchError as error:
            check_message(str(error))
    assert verify(entry(), cache=cache) in ("ok", "corrupt", "missing")


def test_nothing_is_written_through_a_link(cache: Path, mirror: str, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("mine")
    for folder in ("set", "parsed"):
        (cache / folder).mkdir(parents=True)
    for suffix in ("", ".tmp", ".part", ".part.json", ".stamp"):
        (cache / f"{NAME}{suffix}").symlink_to(tmp_path / "precious" / "file")
    (cache / "parsed" / dataset_hash("set", dataset_of(spec()))).symlink_to(tmp_path / "precious")
    check_loads(cache, mirror)
    assert [path.read_text() for path in (tmp_path / "precious").iterdir()] == ["mine"]
    assert not (cache / NAME).is_symlink()
