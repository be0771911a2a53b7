"""Attacks on the cache: what failing disks, programs and users leave there changes no number and hangs nothing."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import yaml

from klr_bench.cli import main
from klr_bench.config.models import FileEntry
from klr_bench.datasets import cache as cache_module
from klr_bench.datasets import parsed as parsed_module
from klr_bench.datasets.cache import silent
from klr_bench.datasets.dataset import dataset_hash, load
from klr_bench.datasets.download import fetch, verify
from klr_bench.datasets.parsed import parsed
from klr_bench.datasets.readers import Arrays
from klr_bench.errors import KlrBenchError
from klr_bench.files import read_json
from tests.attack.promise import check_message, refused, rejected
from tests.attack.test_data_files import NO_FILES, PACK, zipped_zeros
from tests.config.composing import dataset_of

PLAIN = b"1,2,a\n3,4,b\n5,6,a\n"
X = [[1, 2], [3, 4], [5, 6]]
NAME = "set/file"
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def mirror(tmp_path: Path) -> str:
    (tmp_path / "mirror" / "set").mkdir(parents=True)
    (tmp_path / "mirror" / NAME).write_bytes(PLAIN)
    return str(tmp_path / "mirror")


def entry(sha256: str = hashlib.sha256(PLAIN).hexdigest()) -> dict[str, Any]:
    return {"name": NAME, "sha256": sha256}


def spec(sha256: str = hashlib.sha256(PLAIN).hexdigest()) -> dict[str, Any]:
    return {"label": "Mine", "source": {"format": "csv", "train": entry(sha256)}, "split": {"test_size": 0.5}}


def unremembered() -> None:
    """Forget which checksums were right, as a new process does."""
    parsed_module._known_crc32.cache_clear()


# -- parsed arrays ---------------------------------------------------------------------------------------

DENSE = np.arange(12, dtype=np.float32).reshape(4, 3)
KINDS = {"dense": DENSE, "sparse": sp.csr_matrix(np.eye(4, 7, dtype=np.float32))}


def values(matrix: Any) -> Any:
    return matrix.toarray() if sp.issparse(matrix) else np.asarray(matrix)


def in_place(path: Path, change: Callable[[bytes], bytes]) -> None:
    """Change a file as a failing disk does: its time stays."""
    state = path.stat()
    path.write_bytes(change(path.read_bytes()))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


def damage(content: bytes, draw: Random) -> bytes:
    """Return content with a flipped bit, or less often cut or overwritten."""
    at = draw.randrange(len(content))
    flipped = content[:at] + bytes([content[at] ^ 1 << draw.randrange(8)]) + content[at + 1 :]
    junk = draw.choice([b"\0", b"9", b"[", b"null", b'"', b"\xff", b"{}"])
    overwritten = content[:at] + junk + content[at + len(junk) :]
    return draw.choice([flipped, flipped, flipped, content[:at], overwritten, content + junk, b""])


@pytest.mark.exhaustive
@pytest.mark.drawn(0.05)
def test_damaged_arrays_are_parsed_anew(draw: Random, tmp_path: Path) -> None:
    kind = draw.choice(list(KINDS))
    right = Arrays(KINDS[kind], np.array([-1, 1, -1, 1], dtype=np.int8), ("a", "b"), draw.choice([None, 3]))
    folder, parsings = tmp_path / "parsed" / "key", []

    def parse() -> Arrays:
        parsings.append(1)
        return right

    def check(found: Arrays) -> None:
        np.testing.assert_array_equal(values(found.X), values(right.X))
        np.testing.assert_array_equal(found.y, right.y)
        assert (found.classes, found.n_train_official) == (right.classes, right.n_train_official)

    check(parsed(folder, "mine", ["hash"], parse, silent))
    path = draw.choice(sorted(folder.iterdir()))
    before = path.read_bytes()
    in_place(path, lambda content: damage(content, draw))
    changed = path.read_bytes() != before
    unremembered()
    if draw.random() < 0.5:
        state, _ = parsed_module.verify(folder)
        assert state == ("corrupt" if changed else "ok") or (state == "outdated" and path.read_bytes() == b"{}")
    check(parsed(folder, "mine", ["hash"], parse, silent))
    assert len(parsings) == 1 + changed
    assert parsed_module.verify(folder) == ("ok", "mine")


@pytest.mark.exhaustive
def test_a_bit_flip_in_large_arrays_is_seen(tmp_path: Path) -> None:
    right = Arrays(np.zeros((2**18, 66), dtype=np.float32), np.ones(2**18, dtype=np.int8), ("a", "b"))
    parsed(tmp_path / "key", "mine", ["hash"], lambda: right, silent)
    with (tmp_path / "key" / "X.npy").open("r+b") as file:  # of 66 MiB
        state = os.fstat(file.fileno())
        file.seek(2**25)
        file.write(b"\1")
    os.utime(tmp_path / "key" / "X.npy", ns=(state.st_atime_ns, state.st_mtime_ns))
    unremembered()
    assert not parsed(tmp_path / "key", "mine", ["hash"], lambda: right, silent).X.any()


def test_a_damaged_download_whose_stamp_fits_is_not_parsed(
    cache: Path, mirror: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    load("set", dataset_of(spec()), cache=cache, mirror=mirror)
    shutil.rmtree(cache / "parsed")
    path = cache / NAME
    path.write_bytes(PLAIN.replace(b"1", b"2", 1))
    stamp = json.loads(Path(f"{path}.stamp").read_text())
    stamp |= dict(zip(cache_module.STATE, cache_module.state_of(path), strict=True))
    Path(f"{path}.stamp").write_text(json.dumps(stamp))
    with pytest.raises(KlrBenchError, match="run the same command again"):
        load("set", dataset_of(spec()), cache=cache, mirror=mirror)
    np.testing.assert_array_equal(load("set", dataset_of(spec()), cache=cache, mirror=mirror).X, X)


def test_a_download_that_is_rewritten_with_its_size_and_time_is_fetched_again(cache: Path, mirror: str) -> None:
    load("set", dataset_of(spec()), cache=cache, mirror=mirror)
    shutil.rmtree(cache / "parsed")
    in_place(cache / NAME, lambda content: content.replace(b"1", b"2", 1))
    np.testing.assert_array_equal(load("set", dataset_of(spec()), cache=cache, mirror=mirror).X, X)


def test_checksums_are_computed_once_in_a_process(cache: Path, mirror: str, monkeypatch: pytest.MonkeyPatch) -> None:
    load("set", dataset_of(spec()), cache=cache, mirror=mirror)
    monkeypatch.setattr(parsed_module, "_crc32", lambda path: pytest.fail("computed again"))
    load("set", dataset_of(spec()), cache=cache, mirror=mirror)


def test_arrays_of_an_earlier_version_are_parsed_once_more(cache: Path, mirror: str) -> None:
    folder = cache / "parsed" / load("set", dataset_of(spec()), cache=cache, mirror=mirror).hash
    state = (folder / "X.npy").stat()
    earlier = {"shape": [3, 2], "classes": ["a", "b"], "files": {"X.npy": [state.st_size, state.st_mtime_ns]}}
    (folder / "meta.json").write_text(json.dumps(earlier))
    assert parsed_module.verify(folder)[0] == "outdated"
    np.testing.assert_array_equal(load("set", dataset_of(spec()), cache=cache, mirror=mirror).X, X)
    assert parsed_module.verify(folder) == ("ok", "set")


HOSTILE_META: list[Any] = [
    *(None, 5, [], [0, {}], [0, None], [[[[]]]], "[" * 100_000, "9" * 5000),
    *({"files": {"../../secret": [1, 1]}}, ["a", {"files": [["X.npy", [0, 0], 0]]}]),
]


@pytest.mark.parametrize("content", HOSTILE_META, ids=lambda content: repr(content)[:30])
def test_a_hostile_note_beside_arrays(content: Any, cache: Path, mirror: str) -> None:
    folder = cache / "parsed" / load("set", dataset_of(spec()), cache=cache, mirror=mirror).hash
    (folder / "meta.json").write_text(content if isinstance(content, str) else json.dumps(content))
    np.testing.assert_array_equal(load("set", dataset_of(spec()), cache=cache, mirror=mirror).X, X)


class Hostile:
    """Writes a file where it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return Path.touch, (self.mark,)


def test_pickled_objects_in_the_cache_are_not_loaded(cache: Path, mirror: str, tmp_path: Path) -> None:
    folder = cache / "parsed" / load("set", dataset_of(spec()), cache=cache, mirror=mirror).hash
    np.save(folder / "X.npy", np.array([Hostile(tmp_path / "mark")], dtype=object), allow_pickle=True)
    _, meta = json.loads((folder / "meta.json").read_text())
    content, state = (folder / "X.npy").read_bytes(), (folder / "X.npy").stat()
    meta["files"][1] = ["X.npy", [state.st_size, state.st_mtime_ns], zlib.crc32(content)]
    (folder / "meta.json").write_text(json.dumps([zlib.crc32(json.dumps(meta, sort_keys=True).encode()), meta]))
    np.testing.assert_array_equal(load("set", dataset_of(spec()), cache=cache, mirror=mirror).X, X)
    assert not (tmp_path / "mark").exists()
    np.load(folder / "X.npy")  # whole again


# -- stamps and raw files --------------------------------------------------------------------------------

STAMPS: list[Any] = [
    *("", "{", "\0", "[" * 100_000, "9" * 5000, [], 5, {}, {"sha256": 5}, {"sha256": "x" * 64}, {"sha256": None}),
    *({"size": 1}, {"sha256": [], "size": 18, "mtime_ns": 0}, {"size": 10**400, "mtime_ns": "a", "sha256": "0" * 64}),
    {"size": True, "mtime_ns": None, "sha256": "0" * 64},
]


@pytest.mark.parametrize("sha256", [entry()["sha256"], "unknown"], ids=["known", "unknown"])
@pytest.mark.parametrize("stamp", STAMPS, ids=lambda stamp: repr(stamp)[:30])
def test_an_odd_stamp(stamp: Any, sha256: str, cache: Path, mirror: str) -> None:
    fetch(FileEntry(**entry(sha256)), cache=cache, mirror=mirror)
    (cache / f"{NAME}.stamp").write_text(stamp if isinstance(stamp, str) else json.dumps(stamp))
    assert fetch(FileEntry(**entry(sha256)), cache=cache, mirror=mirror).read_bytes() == PLAIN
    assert verify(FileEntry(**entry(sha256)), cache=cache) == "ok"
    assert read_json(cache / f"{NAME}.stamp")["sha256"] == entry()["sha256"]


def test_an_edited_file_of_unknown_content_is_noticed(cache: Path, mirror: str, tmp_path: Path) -> None:
    load("set", dataset_of(spec("unknown")), cache=cache, mirror=mirror)
    (cache / NAME).write_bytes(b"7,8,a\n9,9,b\n")
    np.testing.assert_array_equal(load("set", dataset_of(spec("unknown")), cache=cache, mirror=mirror).X, X)
    (cache / NAME).write_bytes(b"7,8,a\n9,9,b\n")
    rejected(
        lambda: load("set", dataset_of(spec("unknown")), cache=cache, mirror=None), "wrong content", "remove file.stamp"
    )
    (cache / f"{NAME}.stamp").unlink()
    np.testing.assert_array_equal(
        load("set", dataset_of(spec("unknown")), cache=cache, mirror=None).X, [[7, 8], [9, 9]]
    )
    (cache / NAME).write_bytes(PLAIN)
    assert verify(FileEntry(**entry("unknown")), cache=cache) == "corrupt"
    assert not (cache / NAME).exists()


@pytest.mark.parametrize("packing", PACK)
def test_a_bomb_beside_its_place_is_passed_over(packing: str, cache: Path, mirror: str) -> None:
    (cache / "set").mkdir(parents=True)
    (cache / f"{NAME}.gz").write_bytes(PACK[packing](zipped_zeros(2**28, b"0")))
    assert fetch(FileEntry(**entry()), cache=cache, mirror=mirror).read_bytes() == PLAIN
    (cache / NAME).unlink()
    rejected(lambda: fetch(FileEntry(**entry()), cache=cache), f"{NAME}.gz: ", "not kept")
    assert not (cache / NAME).exists()
    assert not (cache / f"{NAME}.tmp").exists()


def answered(call: Callable[[], Any]) -> Any:
    """Return what a call gives, None where it is refused as promised."""
    try:
        return call()
    except KlrBenchError as error:
        message = str(error)
    check_message(message)
    assert "does not exist" not in message
    return None


# -- what is no file -------------------------------------------------------------------------------------

PLACES = {
    "the file": "cache/set/file",
    "the file packed": "cache/set/file.xz",
    "the stamp": "cache/set/file.stamp",
    "the lock": "cache/set/file.lock",
    "the temporary file": "cache/set/file.tmp",
    "the part": "cache/set/file.part",
    "the note of the part": "cache/set/file.part.json",
    "the mirror": "mirror/set/file",
    "the packed mirror": "mirror/set/file.gz",
    "the arrays": "cache/parsed/KEY",
    "the temporary arrays": "cache/parsed/KEY.tmp",
    "the lock of the arrays": "cache/parsed/KEY.lock",
    "the note of the arrays": "cache/parsed/KEY/meta.json",
    "X": "cache/parsed/KEY/X.npy",
    "all arrays": "cache/parsed",
    "the folder of the file": "cache/set",
    "the cache": "cache",
}


@pytest.mark.exhaustive
@pytest.mark.timeout(60)
@pytest.mark.parametrize("before", [False, True], ids=["at first", "later"])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", NO_FILES)
def test_what_is_no_file_hangs_nothing(
    kind: str, place: str, before: bool, cache: Path, mirror: str, tmp_path: Path
) -> None:
    key = dataset_hash("set", dataset_of(spec()))
    if before:
        load("set", dataset_of(spec()), cache=cache, mirror=mirror)
    path = tmp_path / PLACES[place].replace("KEY", key)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        path.rename(tmp_path / "aside")
    path.unlink(missing_ok=True)
    NO_FILES[kind][0](path)
    unremembered()
    found = answered(lambda: load("set", dataset_of(spec()), cache=cache, mirror=mirror))
    if found is not None:
        np.testing.assert_array_equal(found.X, X)
    assert answered(lambda: verify(FileEntry(**entry()), cache=cache)) in ("ok", "corrupt", "missing")
    answered(lambda: parsed_module.verify(cache / "parsed" / key))


def test_nothing_is_written_through_a_link(cache: Path, mirror: str, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    (cache / "set").mkdir(parents=True)
    for suffix in ("", ".tmp", ".part", ".part.json", ".stamp"):
        (cache / f"{NAME}{suffix}").symlink_to(tmp_path / "precious")
    assert fetch(FileEntry(**entry()), cache=cache, mirror=mirror).read_bytes() == PLAIN
    assert (tmp_path / "precious").read_text() == "mine"
    assert not (cache / NAME).is_symlink()


def test_arrays_that_are_a_link_to_another_folder(cache: Path, mirror: str, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("mine")
    (cache / "parsed").mkdir(parents=True)
    (cache / "parsed" / dataset_hash("set", dataset_of(spec()))).symlink_to(tmp_path / "precious")
    np.testing.assert_array_equal(load("set", dataset_of(spec()), cache=cache, mirror=mirror).X, X)
    assert (tmp_path / "precious" / "file").read_text() == "mine"


# -- the verbs -------------------------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path: Path, mirror: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with configs/dataset/mine.yaml, whose file is at the mirror."""
    (tmp_path / "configs" / "dataset").mkdir(parents=True)
    write(tmp_path, "mine", spec())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KLR_BENCH_MIRROR", mirror)
    return tmp_path


def write(place: Path, name: str, content: Any) -> None:
    path = place / "configs" / "dataset" / f"{name}.yaml"
    path.write_text(f"# @package datasets.{name}\n{yaml.safe_dump(content, allow_unicode=True)}", encoding="utf-8")


def data(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Return the exit status and the output of `klr-bench data ...` with a cache of its own."""
    capsys.readouterr()
    status = main(["data", *arguments, "data.cache=cache"])
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    assert all(character.isprintable() or character in "\n" for character in out + err)
    return status, out + err


def test_verify_reads_parsed_arrays(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert data(capsys, "verify", "mine") == (0, f"missing  mine: {place}/cache/set/file\n")
    folder = (
        place
        / "cache"
        / "parsed"
        / load("mine", dataset_of(spec()), cache=place / "cache", mirror=str(place / "mirror")).hash
    )
    for names in ([], ["mine"]):
        status, text = data(capsys, "verify", *names)
        assert status == 0
        assert f"ok       mine: {folder}\n" in text
    in_place(folder / "y.npy", lambda content: content[:-1] + b"\x05")
    status, text = data(capsys, "verify", "mine")
    assert (status, text.splitlines()[1]) == (2, f"corrupt  mine: {folder}")
    assert "1 corrupt; the next run" in text
    assert data(capsys, "verify", "mine")[0] == 0


def test_a_name_given_twice_counts_once(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert data(capsys, "verify", "mine", "mine")[1].count("mine:") == 1
    assert data(capsys, "fetch", "mine", "mine")[1].count("(18 bytes)") == 1


MISTAKES = [
    *(["info"], ["info", "mine", "mine"], ["info", "mien"], ["info", "../mine"], ["info", ""], ["list", "mine"]),
    *(["fetch"], ["fetch", "mien"], ["fetch", "mine", "mien"], ["fetch", "mine", "data.path=a"], ["verify", "mien"]),
    *(
        ["lst"],
        ["--list"],
        ["list", "data.cahe=a"],
        ["list", "data.mirror="],
        ["fetch", "mine", "data.mirror=/nowhere"],
    ),
]


@pytest.mark.parametrize("arguments", MISTAKES, ids=" ".join)
def test_mistakes_in_the_arguments_of_data(
    arguments: list[str], place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused(capsys, ["data", *arguments, "data.cache=cache"])


@pytest.mark.parametrize(
    "changes",
    [
        {"n_samples": 2**63},
        {"source": spec()["source"] | {"n_features": 2**63}},
        *({"source": {"format": "csv", "train": entry() | {"max_bytes": size}}} for size in (0, "1 GB")),
        {"source": {"format": "csv", "train": entry() | {"name": "a\nb"}}},
    ],
)
def test_mistakes_in_the_yaml_of_data(changes: dict[str, Any], place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(place, "odd", spec() | changes)
    for arguments in (["list"], ["info", "odd"], ["fetch", "odd"], ["verify", "odd"]):
        refused(capsys, ["data", *arguments, "data.cache=cache"], "odd.yaml", "expected")


def test_labels_are_shown_as_they_are_written(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(place, "odd", spec() | {"positive": "[/b]", "label": "a[/b] [red]"})
    for arguments in (["list"], ["info", "odd"]):
        assert "a[/b] [red]" in data(capsys, *arguments)[1]
    assert "positive   [/b]" in data(capsys, "info", "odd")[1]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", [kind for kind in NO_FILES if kind != "folder"])
def test_a_cache_that_is_no_folder(kind: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    NO_FILES[kind][0](place / "cache")
    assert data(capsys, "list")[0] == 0
    assert data(capsys, "info", "mine")[0] == 0
    assert data(capsys, "verify", "mine")[0] == 0
    if kind != "dangling":  # a folder is made where the link leads
        refused(capsys, ["data", "fetch", "mine", "data.cache=cache"], "could not be written", "data.cache=FOLDER")


@pytest.mark.parametrize("cache", ["/dev/full/a", "/proc/nowhere", "a" * 300, "/" + "a" * 5000])
def test_a_cache_that_cannot_be_made(cache: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["list"], ["info", "mine"], ["verify", "mine"], ["fetch", "mine"]):
        capsys.readouterr()
        status = main(["data", *arguments, f"data.cache={cache}"])
        err = capsys.readouterr().err
        if status:
            check_message(err, "error: ")
        assert arguments[0] != "fetch" or status == 2


FULL = """
import resource, sys
from klr_bench.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
sys.exit(main(["data", "fetch", "mine", "data.cache=cache"]))
"""


def test_a_disk_that_takes_ten_bytes(place: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    check_message(done.stderr, "could not be written: File too large")
    assert not [path for path in (place / "cache").rglob("*") if path.is_file() and path.suffix != ".lock"]
