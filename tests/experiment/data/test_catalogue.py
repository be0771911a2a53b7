"""From the YAML files of configs/dataset to data sets: keys, the cache of parsed arrays, the `data` verbs."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import yaml
from rich.console import Console

from klr_bench.errors import KlrBenchError
from klr_bench.experiment.config import files as config_files
from klr_bench.experiment.data import Dataset, catalogue, commands, dataset, dataset_hash, default_cache, load, readers
from klr_bench.experiment.data.cache import beside
from klr_bench.experiment.data.readers import Arrays

ROOT = Path(__file__).parents[3]
DIRS = [ROOT / "configs"]
SPECS = catalogue.specs(DIRS)
SVM = "+1 1:0.5 3:2\n-1 2:1\n"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def mirrored(tmp_path: Path) -> tuple[dict[str, Any], str]:
    """A spec with a training and a test file, and the mirror that has them."""
    return spec_with_files(tmp_path / "mirror", SVM, "-1 1:7\n"), str(tmp_path / "mirror")


def spec_with_files(folder: Path, *contents: str) -> dict[str, Any]:
    folder.mkdir()
    spec: dict[str, Any] = {"format": "svmlight", "label": "Set"}
    for part, content in zip(("train", "test"), contents, strict=False):
        (folder / part).write_text(content)
        spec[part] = {"name": part, "sha256": hashlib.sha256(content.encode()).hexdigest()}
    return spec


def own(path: Path, **spec: Any) -> dict[str, Any]:
    return SPECS["file"] | {"path": str(path)} | spec


NOT_HERE = ("rcv1", "gisette", "epsilon", "epsilon_50k", "real_sim", "news20", "astro_ph", "url_days")
"""Data sets of which no copy could be had to compute the hash of."""

FROM_A_MIRROR = ("rcv1_subset", "url", "url_days", "astro_ph")
"""Data sets without an address of files in a format that is read: made from others, or asked for from their authors."""

# -- the YAML files --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SPECS)
def test_every_file_says_what_a_data_set_needs(name: str) -> None:
    text = (DIRS[0] / "dataset" / f"{name}.yaml").read_text(encoding="utf-8")
    assert text.splitlines()[0] == f"# @package datasets.{name}"
    spec = SPECS[name]
    assert {"label", "reference", "format", "scale", "split"} <= set(spec)
    assert "positive" in spec or spec["multiclass"]
    assert spec["format"] in {"csv", "svmlight", "idx", "generated", "bundled", "file"}
    assert spec["scale"] in {None, "minmax"}
    drawn = bool({"n_train", "n_test", "runs"} & set(spec["split"]))
    assert drawn or spec["split"] == {"official": True} or list(spec["split"]) == ["test_size"]
    assert drawn or ("test" in spec or "n_train" in spec) == (spec["split"] == {"official": True})
    for entry in catalogue.files(spec):
        assert re.fullmatch(r"[0-9a-f]{64}", entry["sha256"]) or (name in NOT_HERE and entry["sha256"] == "unknown")
        assert (entry["url"] or "").startswith("https://") or name in FROM_A_MIRROR
    if any(entry["sha256"] == "unknown" for entry in catalogue.files(spec)):
        assert {"n_samples", "n_features"} <= set(spec)


FEW = 10_000
MADE = [name for name, spec in SPECS.items() if "source" in spec]


@pytest.mark.parametrize("name", MADE)
def test_sets_without_files_have_the_declared_size(name: str, cache: Path) -> None:
    spec = SPECS[name]
    if spec["n_samples"] > FEW:
        few = {"n_samples": FEW, "n_train": None}
        spec = spec | few | {"source": spec["source"] | {"n_samples": FEW}}
    made = load(name, spec, cache=cache, mirror=None)
    assert made.X.shape == (spec["n_samples"], spec["n_features"])
    assert made.X.dtype == np.float32
    assert sp.issparse(made.X) == (
        name.startswith("sparse") or name in ("rcv1_like", "gisette_like", "correlated_blocks")
    )
    assert made.n_train_official == spec.get("n_train")
    if len(made.classes) > 2:
        assert set(made.y.tolist()) == set(range(len(made.classes)))
    else:
        assert set(made.y.tolist()) == {-1, 1}
        assert made.classes[1] == str(spec["positive"])
    assert (made.name, made.hash) == (name, dataset_hash(name, spec))
    assert not cache.exists()


REAL = [
    ("magic", (19020, 10), 6688, ("g", "h"), None),
    ("adult", (48842, 123), 7841 + 3846, ("-1", "+1"), 32561),
    ("mushrooms", (8124, 112), 4208, ("1", "2"), None),
    ("ijcnn1", (141691, 22), 4853 + 8712, ("-1", "1"), 49990),
    ("cod_rna", (331152, 8), 19845 + 90539, ("-1", "1"), 59535),
    ("mnist10k", (70000, 784), 6131 + 1010, ("not 3", "3"), 60000),
    ("mnist49", (13782, 784), 5842 + 982, ("9", "4"), 5842 + 5949),
]


@pytest.mark.mirror
@pytest.mark.parametrize(("name", "shape", "n_positive", "classes", "n_train"), REAL)
def test_real_sets_from_the_mirror(
    mirror: Path,
    cache: Path,
    name: str,
    shape: tuple[int, int],
    n_positive: int,
    classes: tuple[str, str],
    n_train: int | None,
) -> None:
    real = load(name, SPECS[name], cache=cache, mirror=str(mirror))
    assert real.X.shape == shape
    assert real.X.dtype == np.float32
    assert real.X.flags.c_contiguous
    assert int((real.y == 1).sum()) == n_positive
    assert (real.classes, real.n_train_official) == (classes, n_train)
    assert real.hash == dataset_hash(name, SPECS[name])
    assert commands.verify_([name], DIRS, cache, Console(file=io.StringIO())) == 0


@pytest.mark.mirror
def test_the_subset_of_rcv1_is_sparse_and_has_a_fixed_split(mirror: Path, cache: Path) -> None:
    real = load("rcv1_subset", SPECS["rcv1_subset"], cache=cache, mirror=str(mirror))
    assert sp.isspmatrix_csr(real.X)
    assert (real.X.shape, real.X.nnz, real.X.dtype) == ((23748, 47236), 1783558, np.float32)
    assert (int((real.y == 1).sum()), real.classes, real.n_train_official) == (11829, ("-1", "1"), 20000)
    norms = np.sqrt(real.X.multiply(real.X).sum(axis=1))
    np.testing.assert_allclose(norms, 1, atol=1e-4)


@pytest.mark.mirror
def test_bent_digits_from_the_mirror(mirror: Path, cache: Path) -> None:
    spec = SPECS["mnist8m"]
    small = spec | {"n_samples": 3000, "derive": spec["derive"] | {"n_samples": 3000}}
    made = load("mnist8m", small, cache=cache, mirror=str(mirror))
    assert (made.X.shape, made.X.dtype, made.classes) == ((3000, 784), np.float32, ("not 8", "8"))
    assert (made.y.sum(), made.n_train_official) == (0, None)
    assert 0.1 < made.X.nnz / (3000 * 784) < 0.3
    assert len({dataset_hash("mnist8m", one) for one in (spec, small, SPECS["mnist"] | {"positive": 8})}) == 3
    with pytest.raises(KlrBenchError, match=r"mnist8m: derive .* cannot be called: .*even number.*Correct its param"):
        load("mnist8m", small | {"derive": spec["derive"] | {"n_samples": 3}}, cache=cache, mirror=str(mirror))


@pytest.mark.mirror
def test_magic_begins_with_the_numbers_of_its_file(mirror: Path, cache: Path) -> None:
    real = load("magic", SPECS["magic"], cache=cache, mirror=str(mirror))
    first = [28.7967, 16.0021, 2.6449, 0.3918, 0.1982, 27.7004, 22.011, -8.2027, 40.092, 81.8828]
    np.testing.assert_array_equal(real.X[0], np.array(first, dtype=np.float32))
    assert (real.y[:12332] == -1).all()
    assert (real.y[12332:] == 1).all()


# -- load and its cache ----------------------------------------------------------------------------------


def check(loaded: Dataset) -> None:
    np.testing.assert_array_equal(loaded.X, [[0.5, 0, 2], [0, 1, 0], [7, 0, 0]])
    assert loaded.y.tolist() == [1, -1, -1]
    assert (loaded.classes, loaded.n_train_official) == (("-1", "+1"), 2)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[Arrays]:
    """Return the list to which every parsing adds what it gave."""
    parsings: list[Arrays] = []

    def counting(*args: Any) -> Arrays:
        time.sleep(0.05)  # long enough for another thread to come
        parsings.append(readers.read(*args))
        return parsings[-1]

    monkeypatch.setattr(dataset, "read", counting)
    return parsings


def test_files_are_parsed_once_and_mapped(
    mirrored: tuple[dict[str, Any], str], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, mirror = mirrored
    parsings = counted(monkeypatch)
    for _ in range(3):
        loaded = load("set", spec, cache=cache, mirror=mirror)
        check(loaded)
        assert isinstance(loaded.X.base, np.memmap)
        assert type(loaded.X) is np.ndarray
        assert not loaded.X.flags.writeable
    assert len(parsings) == 1


def test_sparse_arrays_are_mapped_without_a_copy(cache: Path, tmp_path: Path) -> None:
    spec = spec_with_files(tmp_path / "mirror", "+1 1:0.5 9001:2\n-1 5000:1\n1\n")
    for _ in range(2):
        X = load("set", spec, cache=cache, mirror=str(tmp_path / "mirror")).X
        assert (X.shape, X.dtype, X.has_sorted_indices) == ((3, 9001), np.float32, True)
        np.testing.assert_array_equal(X.nonzero(), [[0, 0, 1], [0, 9000, 4999]])
        for array in (X.data, X.indices, X.indptr):
            assert not array.flags.owndata
            assert not array.flags.writeable


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [Path.unlink, truncate, flip, lambda path: path.write_bytes(b"")])
@pytest.mark.parametrize("name", ["X.npy", "y.npy", "meta.json"])
def test_damaged_parsed_arrays_are_made_anew(
    mirrored: tuple[dict[str, Any], str],
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    damage: Any,
) -> None:
    spec, mirror = mirrored
    folder = cache / "parsed" / load("set", spec, cache=cache, mirror=mirror).hash
    damage(folder / name)
    parsings = counted(monkeypatch)
    for _ in range(2):
        check(load("set", spec, cache=cache, mirror=mirror))
    assert len(parsings) == 1
    assert sorted(path.name for path in folder.iterdir()) == ["X.npy", "meta.json", "y.npy"]


def test_a_temporary_folder_of_a_killed_run_does_not_matter(mirrored: tuple[dict[str, Any], str], cache: Path) -> None:
    spec, mirror = mirrored
    left = beside(cache / "parsed" / dataset_hash("set", spec), ".tmp")
    left.mkdir(parents=True)
    (left / "X.npy").write_bytes(b"half")
    check(load("set", spec, cache=cache, mirror=mirror))
    assert not left.exists()


def test_of_several_readers_one_parses(
    mirrored: tuple[dict[str, Any], str], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, mirror = mirrored
    parsings = counted(monkeypatch)
    with ThreadPoolExecutor(4) as threads:
        for loaded in threads.map(lambda _: load("set", spec, cache=cache, mirror=mirror), range(4)):
            check(loaded)
    assert len(parsings) == 1


def test_a_corrupted_raw_file_is_brought_anew(mirrored: tuple[dict[str, Any], str], cache: Path) -> None:
    spec, mirror = mirrored
    load("set", spec, cache=cache, mirror=mirror)
    (cache / "train").write_text("+1 1:9\n")
    check(load("set", spec, cache=cache, mirror=mirror))
    assert (cache / "train").read_text() == SVM


@pytest.mark.parametrize("midway", [False, True])
def test_a_full_disk_leaves_no_parsed_arrays(
    mirrored: tuple[dict[str, Any], str], cache: Path, monkeypatch: pytest.MonkeyPatch, midway: bool
) -> None:
    spec, mirror = mirrored
    save = np.save

    def save_on_a_full_disk(path: Path, array: Any) -> None:
        with open("/dev/full", "wb", buffering=0) as full:
            if midway:  # the header found room: NumPy's own error, without a number
                np.zeros(100_000).tofile(full)
            save(full, array)

    monkeypatch.setattr(np, "save", save_on_a_full_disk)
    with pytest.raises(KlrBenchError, match=r"could not be written: the disk is full\. Free some space"):
        load("set", spec, cache=cache, mirror=mirror)
    assert [path.name for path in (cache / "parsed").iterdir() if not path.name.endswith(".lock")] == []
    monkeypatch.undo()
    check(load("set", spec, cache=cache, mirror=mirror))


def test_another_number_of_rows_than_declared_is_refused(mirrored: tuple[dict[str, Any], str], cache: Path) -> None:
    spec, mirror = mirrored
    with pytest.raises(KlrBenchError, match=r"set: n_samples is declared as 99, got 3; correct .*set\.yaml"):
        load("set", spec | {"n_samples": 99}, cache=cache, mirror=mirror)


def test_a_source_with_wrong_parameters_is_refused(cache: Path) -> None:
    spec = SPECS["moons"] | {"source": SPECS["moons"]["source"] | {"n_samples": -1}}
    with pytest.raises(KlrBenchError, match=r"moons: its source .* cannot be called: .*negative"):
        load("moons", spec, cache=cache, mirror=None)


# -- keys ------------------------------------------------------------------------------------------------


def test_keys_depend_on_content_alone() -> None:
    magic = SPECS["magic"]
    key = dataset_hash("magic", magic)
    same: list[dict[str, Any]] = [
        {"label": "x"},
        {"scale": None},
        {"split": {"test_size": 0.5}},
        {"reference": ""},
    ]
    for change in same:
        assert dataset_hash("magic", magic | change) == key
    assert dataset_hash("renamed", magic) == key
    others: list[dict[str, Any]] = [
        {"positive": "g"},
        {"label_column": 0},
        {"format": "svmlight"},
        {"n_features": 11},
        {"train": magic["train"] | {"sha256": "0" * 64}},
        {"test": magic["train"]},
    ]
    keys = {dataset_hash("magic", magic | change) for change in others}
    assert len(keys | {key}) == len(others) + 1


def test_the_first_rows_of_one_file_may_be_the_training_set(mirrored: tuple[dict[str, Any], str], cache: Path) -> None:
    spec, mirror = mirrored
    one = {name: spec[name] for name in ("format", "label", "train")}
    assert load("set", one, cache=cache, mirror=mirror).n_train_official is None
    assert load("set", one | {"n_train": 1}, cache=cache, mirror=mirror).n_train_official == 1
    assert dataset_hash("set", one | {"n_train": 1}) != dataset_hash("set", one)


@pytest.mark.parametrize("n_train", [0, 2, 99, 1.5, "1"])
def test_a_training_set_of_no_row_or_of_all_is_refused(
    mirrored: tuple[dict[str, Any], str], cache: Path, n_train: Any
) -> None:
    spec, mirror = mirrored
    one = {name: spec[name] for name in ("format", "label", "train")}
    with pytest.raises(KlrBenchError, match=r"set: n_train: expected a whole number from 1 to 1, got .*set\.yaml"):
        load("set", one | {"n_train": n_train}, cache=cache, mirror=mirror)


def test_the_key_of_a_file_of_unknown_content_is_its_address() -> None:
    rcv1 = SPECS["rcv1"]
    swapped = rcv1 | {"train": rcv1["test"], "test": rcv1["train"]}
    assert dataset_hash("rcv1", rcv1) != dataset_hash("rcv1", swapped)
    assert dataset_hash("rcv1", rcv1) == dataset_hash("other", rcv1)
    without = [rcv1 | {part: rcv1[part] | {"url": None} for part in ("train", "test")} for _ in range(2)]
    without[1] |= {"train": without[1]["train"] | {"name": "other/file"}}
    assert dataset_hash("rcv1", without[0]) != dataset_hash("rcv1", without[1]), "else its name"


def test_sets_with_the_same_key_are_of_the_same_content() -> None:
    contents: dict[str, set[str]] = {}
    for name, spec in SPECS.items():
        if name != "file":
            parts = ("source", "derive", "only", "multiclass", "positive", "label_column", "n_train")
            content = json.dumps([[dict(entry) for entry in catalogue.files(spec)], [spec.get(part) for part in parts]])
            contents.setdefault(dataset_hash(name, spec), set()).add(content)
    assert all(len(same) == 1 for same in contents.values())
    assert len(contents) >= len(SPECS) - 4, "the same files, split or scaled in another way"


def test_the_key_of_a_generated_set_depends_on_its_call() -> None:
    moons = SPECS["moons"]
    other = moons | {"source": moons["source"] | {"seed": 1}}
    assert dataset_hash("moons", moons) != dataset_hash("moons", other)


def test_the_reader_version_is_part_of_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    key = dataset_hash("magic", SPECS["magic"])
    monkeypatch.setattr(dataset, "READER_VERSION", -1)
    assert dataset_hash("magic", SPECS["magic"]) != key


# -- the user's own file ---------------------------------------------------------------------------------


def test_an_own_file_is_named_by_stem_and_hash(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("x,class\n1,no\n2,yes\n")
    loaded = load("file", own(path), cache=cache, mirror=None)
    assert loaded.name == f"mine-{hashlib.sha256(path.read_bytes()).hexdigest()[:6]}"
    assert loaded.classes == ("no", "yes")
    np.testing.assert_array_equal(loaded.X, [[1], [2]])
    assert (cache / "parsed" / loaded.hash / "meta.json").is_file()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "mine.csv"]


def test_the_key_of_an_own_file_follows_its_content(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "mine.svm"
    path.write_text("+1 1:1\n-1 1:2\n")
    first = load("file", own(path), cache=cache, mirror=None)
    path.write_text("+1 1:1\n-1 1:3\n")
    second = load("file", own(path), cache=cache, mirror=None)
    assert first.hash != second.hash
    assert first.name != second.name
    np.testing.assert_array_equal(second.X, [[1], [3]])
    (tmp_path / "test.svm").write_text("+1 1:4\n")
    third = load("file", own(path, test_path=str(tmp_path / "test.svm")), cache=cache, mirror=None)
    assert third.hash != second.hash
    assert third.n_train_official == 2


def test_settings_for_an_own_file_are_used(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "mine.txt.gz"
    path.write_text("class;x\n3;1\n4;2\n5;2\n")
    settings: dict[str, Any] = {
        "file_format": "csv",
        "label_column": "class",
        "positive": "4",
        "n_features": 1,
    }
    loaded = load("file", own(path, **settings), cache=cache, mirror=None)
    assert loaded.name.startswith("mine-")
    assert loaded.classes == ("not 4", "4")
    assert loaded.y.tolist() == [-1, 1, -1]


def test_the_home_folder_may_be_written_short(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine.svm").write_text(SVM)
    assert load("file", own(Path("~/mine.svm")), cache=cache, mirror=None).X.shape == (2, 3)


def test_own_files_that_are_not_there_are_refused(tmp_path: Path, cache: Path) -> None:
    with pytest.raises(KlrBenchError, match=r"name it with data\.path=FILE"):
        load("file", SPECS["file"], cache=cache, mirror=None)
    missing = tmp_path / "missing.csv"
    with pytest.raises(KlrBenchError, match=rf"data.path: {missing} does not exist; name a file"):
        load("file", own(missing), cache=cache, mirror=None)
    with pytest.raises(KlrBenchError, match=rf"data.path: {tmp_path} is a folder"):
        dataset_hash("file", own(tmp_path))
    (tmp_path / "mine.svm").write_text(SVM)
    with pytest.raises(KlrBenchError, match=rf"data.test_path: {missing} does not exist"):
        load("file", own(tmp_path / "mine.svm", test_path=str(missing)), cache=cache, mirror=None)


def test_a_refused_own_file_leaves_nothing_in_the_cache(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "mine.svm"
    path.write_text("+1 1:1\n-1 1:nan\n")
    with pytest.raises(KlrBenchError, match=f"{path}, line 2: "):
        load("file", own(path), cache=cache, mirror=None)
    assert [found.suffix for found in cache.rglob("*") if found.is_file()] in ([], [".lock"])


# -- the verbs -------------------------------------------------------------------------------------------


def run(verb: Any, *args: Any, terminal: bool = False) -> tuple[int, str]:
    out = io.StringIO()
    status = verb(*args, Console(file=out, width=200, force_terminal=terminal))
    return status, out.getvalue()


@pytest.fixture
def configs(mirrored: tuple[dict[str, Any], str], tmp_path: Path) -> list[Path]:
    """A folder of configs with a set `little` that has files, and one that has none."""
    folder = tmp_path / "configs"
    (folder / "dataset").mkdir(parents=True)
    for name, spec in (("little", mirrored[0]), ("moons", SPECS["moons"])):
        (folder / "dataset" / f"{name}.yaml").write_text(yaml.safe_dump(spec))
    return [folder]


def test_list_names_every_set(cache: Path) -> None:
    status, text = run(commands.list_, DIRS, cache)
    assert status == 0
    lines = {line.split()[0]: line for line in text.splitlines()}
    assert set(SPECS) <= set(lines)
    assert re.search(r"MAGIC +19,020 +10 +not fetched", lines["magic"])
    assert lines["digits"].rstrip().endswith("built in")
    assert lines["file"].rstrip().endswith("your own")
    assert f"cache: {cache}" in text
    assert not cache.exists()


def test_fetch_verify_and_list_follow_a_file(
    configs: list[Path], mirrored: tuple[dict[str, Any], str], cache: Path
) -> None:
    assert run(commands.verify_, ["little"], configs, cache)[1].count("missing  little: ") == 2
    status, text = run(commands.fetch_, ["little", "moons"], configs, cache, mirrored[1])
    assert status == 0
    assert "train: unpacking" in text
    assert f"little: {cache / 'test'} (7 bytes)" in text
    assert "moons: built in, nothing to fetch" in text
    assert re.search(r"little .* 27 bytes +fetched", run(commands.list_, configs, cache)[1])
    assert run(commands.verify_, [], configs, cache) == (
        0,
        f"ok       little: {cache / 'train'}\nok       little: {cache / 'test'}\n",
    )
    (cache / "test").unlink()
    flip(cache / "train")
    assert "partly fetched" in run(commands.list_, configs, cache)[1]
    status, text = run(commands.verify_, [], configs, cache)
    assert status == 2
    assert f"corrupt  little: {cache / 'train'}" in text
    assert f"missing  little: {cache / 'test'}" in text
    assert "1 corrupt; the next run, or klr-bench data fetch, brings each of them anew." in text


def test_a_terminal_gets_a_bar(configs: list[Path], mirrored: tuple[dict[str, Any], str], cache: Path) -> None:
    status, text = run(commands.fetch_, ["little"], configs, cache, mirrored[1], terminal=True)
    assert status == 0
    assert "━" in text
    assert "train: unpacking" in text


def test_fetch_needs_names_that_are_known(cache: Path) -> None:
    with pytest.raises(KlrBenchError, match=r"expected the names of data sets, got none\. Known: a9a, "):
        run(commands.fetch_, [], DIRS, cache, None)
    for verb, args in ((commands.fetch_, (cache, None)), (commands.verify_, (cache,))):
        with pytest.raises(KlrBenchError, match=r"unknown dataset 'magik'\. Did you mean 'magic'\?"):
            run(verb, ["magik"], DIRS, *args)
    with pytest.raises(KlrBenchError, match="unknown dataset 'magik'"):
        run(commands.info, "magik", DIRS, cache)
    assert not cache.exists()


def test_info_tells_where_a_file_comes_from(cache: Path) -> None:
    status, text = run(commands.info, "magic", DIRS, cache)
    assert status == 0
    train = SPECS["magic"]["train"]
    for expected in (train["url"], train["sha256"], str(cache / train["name"]), "19,020", "not fetched"):
        assert expected in text


def test_a_yaml_file_without_a_format_is_refused(configs: list[Path], cache: Path) -> None:
    (configs[0] / "dataset" / "bad.yaml").write_text("label: Bad\n")
    with pytest.raises(KlrBenchError, match=r"bad\.yaml: expected 'format: csv, svmlight"):
        run(commands.list_, configs, cache)


def test_a_listing_imports_nothing_heavy() -> None:
    code = (
        "import sys; from klr_bench.experiment.data import commands\n"
        "print([name for name in ('sklearn', 'scipy', 'pandas', 'numba', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_cache_of_a_checkout_is_its_data_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert default_cache() == ROOT / "data"
    elsewhere = tmp_path / "klr_bench" / "experiment" / "data" / "cache.py"
    monkeypatch.setattr("klr_bench.experiment.data.cache.__file__", str(elsewhere))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    installed = default_cache()
    assert installed.is_relative_to(tmp_path / "user")
    assert installed.name == "klr-bench"


def test_configs_are_found() -> None:
    assert set(config_files.names("dataset", DIRS)) == set(SPECS)
    assert json.dumps(SPECS)  # plain values only
