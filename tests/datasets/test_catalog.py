"""Data sets of configs/dataset: keys, the cache of parsed arrays, and the `data` commands."""

import hashlib
import io
import re
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import scipy.sparse as sp
import yaml
from rich.console import Console

from klr_bench.config import datasets as config_datasets
from klr_bench.config.models import DatasetConfig
from klr_bench.config.splitting import Share
from klr_bench.datasets import Dataset, catalog, dataset, dataset_hash, default_cache, load, readers
from klr_bench.datasets.download import files
from klr_bench.errors import KlrBenchError
from tests.datasets.conftest import Patch

ROOT = Path(__file__).parents[2]
DIRS = [ROOT / "configs"]
SPECS = catalog.datasets(DIRS)
Mirrored = tuple[DatasetConfig, str]
SVM = "+1 1:0.5 3:2\n-1 2:1\n"


@pytest.fixture
def mirrored(tmp_path: Path) -> Mirrored:
    """Return a spec with a training and a test file, and the mirror that has these files."""
    return spec_with_files(tmp_path / "mirror", SVM, "-1 1:7\n"), str(tmp_path / "mirror")


def spec_with_files(folder: Path, *contents: str) -> DatasetConfig:
    folder.mkdir()
    source: dict[str, Any] = {"format": "svmlight"}
    for part, content in zip(("train", "test"), contents, strict=False):
        (folder / part).write_text(content)
        source[part] = {"name": part, "sha256": hashlib.sha256(content.encode()).hexdigest()}
    return DatasetConfig(label="Set", source=source, split={"official": True})


def having(spec: DatasetConfig, **values: Any) -> DatasetConfig:
    return spec.model_copy(update=values)


def with_source(spec: DatasetConfig, **values: Any) -> DatasetConfig:
    return having(spec, source=spec.source.model_copy(update=values))


def call(spec: DatasetConfig) -> dict[str, Any]:
    """Return the generator call of a data set."""
    assert spec.source.generator is not None
    return spec.source.generator


def own(path: Path, **source: Any) -> DatasetConfig:
    return with_source(SPECS["file"], path=str(path), **source)


NO_HASH = (
    *("rcv1", "gisette", "epsilon", "epsilon_50k", "real_sim", "news20", "astro_ph"),
    *("url_days", "url_day0_day1", "infinite_mnist"),
)
"""Data sets with unknown hashes, because no copy was available."""

FROM_A_MIRROR = ("rcv1_subset", "url", "astro_ph")
"""Data sets without a public URL of files in a supported format."""


@pytest.mark.parametrize("name", SPECS)
def test_every_yaml_file_is_complete(name: str) -> None:
    text = (DIRS[0] / "dataset" / f"{name}.yaml").read_text(encoding="utf-8")
    assert text.splitlines()[0] == f"# @package datasets.{name}"
    spec = SPECS[name]
    assert spec.label
    source = spec.source
    assert spec.positive or spec.multiclass or name in ("file", "stream")
    assert bool(source.name) == bool(source.train), "downloads are described in configs/source"
    for entry in files(spec):
        assert entry.megabytes
        assert bool(entry.megabytes[0]) == bool(entry.url)
        assert re.fullmatch(r"[0-9a-f]{64}", entry.sha256) or (name in NO_HASH and entry.sha256 == "unknown")
        assert (entry.url or "").startswith("https://") or name in FROM_A_MIRROR
    if any(entry.sha256 == "unknown" for entry in files(spec)):
        assert source.n_samples
        assert source.n_features


FEW = 10_000
MADE = [name for name, spec in SPECS.items() if spec.source.generator]


@pytest.mark.parametrize("name", MADE)
def test_sets_without_files_have_the_declared_size(name: str, cache: Path) -> None:
    spec = SPECS[name]
    if spec.source.n_samples > FEW:
        spec = with_source(spec, n_samples=FEW, n_train=None, generator=call(spec) | {"n_samples": FEW})
    made = load(name, spec, cache=cache, mirror=None)
    assert made.X.shape == (spec.source.n_samples, spec.source.n_features)
    assert made.X.dtype == np.float32
    assert sp.issparse(made.X) == name.startswith(("sparse", "rcv1_like", "gisette_like", "correlated_blocks"))
    assert made.n_train_official == spec.source.n_train
    if len(made.classes) > 2:
        assert set(made.y.tolist()) == set(range(len(made.classes)))
    else:
        assert set(made.y.tolist()) == {-1, 1}
        assert made.classes[1] == str(spec.positive)
    assert (made.name, made.hash) == (name, dataset_hash(name, spec))
    assert not cache.exists()


REAL = [
    ("magic", (19020, 10), 6688, ("g", "h"), None),
    ("a9a", (32561, 123), 7841, ("-1", "+1"), None),
    ("adult", (48842, 123), 7841 + 3846, ("-1", "+1"), 32561),
    ("mushrooms", (8124, 112), 4208, ("1", "2"), None),
    ("ijcnn1", (141691, 22), 4853 + 8712, ("-1", "1"), 49990),
    ("cod_rna", (331152, 8), 19845 + 90539, ("-1", "1"), 59535),
    ("mnist10k", (70000, 784), 6131 + 1010, ("not 3", "3"), 60000),
    ("mnist", (70000, 784), 6742 + 1135, tuple("0123456789"), 60000),
    ("mnist49", (13782, 784), 5842 + 982, ("9", "4"), 5842 + 5949),
    ("rcv1_subset", (23748, 47236), 11829, ("-1", "1"), 20000),
]


@pytest.mark.exhaustive
@pytest.mark.parametrize("expected", [pytest.param(row, marks=pytest.mark.mirror(row[0])) for row in REAL])
def test_real_sets_from_the_mirror(mirror: Path, cache: Path, expected: tuple[Any, ...]) -> None:
    name = expected[0]
    real = load(name, SPECS[name], cache=cache, mirror=str(mirror))
    assert real.X.dtype == np.float32
    assert (real.X.min(), real.X.max()) == (0, 1) or not name.startswith("mnist")
    assert sp.isspmatrix_csr(real.X) if name == "rcv1_subset" else real.X.flags.c_contiguous
    assert (name, real.X.shape, (real.y == 1).sum(), real.classes, real.n_train_official) == expected
    assert real.hash == dataset_hash(name, SPECS[name])
    assert catalog.verify_([name], DIRS, cache, Console(file=io.StringIO())) == 0


@pytest.mark.exhaustive
@pytest.mark.mirror("mnist8m")
def test_deformed_digits_from_the_mirror(mirror: Path, cache: Path) -> None:
    derive = SPECS["mnist8m"].derive or {}
    small = having(SPECS["mnist8m"], n_samples=3000, derive=derive | {"n_samples": 3000})
    made = load("mnist8m", small, cache=cache, mirror=str(mirror))
    assert (made.X.shape, made.X.dtype, made.classes) == ((3000, 784), np.float32, ("not 8", "8"))
    assert (made.y.sum(), made.n_train_official) == (0, None)
    assert 0.1 < made.X.nnz / (3000 * 784) < 0.3
    others = (SPECS["mnist8m"], small, having(SPECS["mnist"], positive="8", multiclass=False))
    assert len({dataset_hash("mnist8m", spec) for spec in others}) == 3


def check(loaded: Dataset) -> None:
    np.testing.assert_array_equal(loaded.X, [[0.5, 0, 2], [0, 1, 0], [7, 0, 0]])
    assert loaded.y.tolist() == [1, -1, -1]
    assert (loaded.classes, loaded.n_train_official) == (("-1", "+1"), 2)


def counted(monkeypatch: Patch) -> Mock:
    """Return a mock that counts the calls of the parser."""
    parsing = Mock(wraps=readers.read)
    monkeypatch.setattr(dataset, "read", parsing)
    return parsing


def test_files_are_parsed_once_and_mapped(mirrored: Mirrored, cache: Path, monkeypatch: Patch) -> None:
    spec, mirror = mirrored
    parsing = counted(monkeypatch)
    for _ in range(3):
        loaded = load("set", spec, cache=cache, mirror=mirror)
        check(loaded)
        assert isinstance(loaded.X.base, np.memmap)
        assert type(loaded.X) is np.ndarray
        assert not loaded.X.flags.writeable
    assert parsing.call_count == 1


def test_sparse_arrays_are_mapped_without_a_copy(cache: Path, tmp_path: Path) -> None:
    spec = spec_with_files(tmp_path / "mirror", "+1 1:0.5 9001:2\n-1 5000:1\n1\n")
    for _ in range(2):
        X = load("set", spec, cache=cache, mirror=str(tmp_path / "mirror")).X
        assert (X.shape, X.dtype, X.has_sorted_indices) == ((3, 9001), np.float32, True)
        np.testing.assert_array_equal(X.nonzero(), [[0, 0, 1], [0, 9000, 4999]])
        for array in (X.data, X.indices, X.indptr):
            assert not array.flags.owndata
            assert not array.flags.writeable


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [Path.unlink, flip])
@pytest.mark.parametrize("name", ["X.npy", "y.npy", "meta.json"])
def test_damaged_arrays_are_remade(mirrored: Mirrored, cache: Path, monkeypatch: Patch, name: str, damage: Any) -> None:
    spec, mirror = mirrored
    folder = cache / "parsed" / load("set", spec, cache=cache, mirror=mirror).hash
    damage(folder / name)
    parsing = counted(monkeypatch)
    for _ in range(2):
        check(load("set", spec, cache=cache, mirror=mirror))
    assert parsing.call_count == 1
    assert sorted(path.name for path in folder.iterdir()) == ["X.npy", "meta.json", "y.npy"]


@pytest.mark.parametrize("midway", [False, True])
def test_a_full_disk_leaves_no_parsed_arrays(mirrored: Mirrored, cache: Path, monkeypatch: Patch, midway: bool) -> None:
    spec, mirror = mirrored
    save = np.save

    def save_on_a_full_disk(path: Path, array: Any) -> None:
        with open("/dev/full", "wb", buffering=0) as full:
            if midway:  # the header is written: NumPy raises an error without an errno
                np.zeros(100_000).tofile(full)
            save(full, array)

    monkeypatch.setattr(np, "save", save_on_a_full_disk)
    with pytest.raises(KlrBenchError, match=r"could not be written: the disk is full\. Free some space"):
        load("set", spec, cache=cache, mirror=mirror)
    assert [path.name for path in (cache / "parsed").iterdir() if not path.name.endswith(".lock")] == []
    monkeypatch.undo()
    check(load("set", spec, cache=cache, mirror=mirror))


def test_keys_depend_only_on_content() -> None:
    magic, rcv1, moons = SPECS["magic"], SPECS["rcv1"], SPECS["moons"]
    same: list[dict[str, Any]] = [{"label": "x"}, {"scale": None}, {"split": Share(test_size=0.5)}, {"reference": ""}]
    assert {dataset_hash("other", having(magic, **change)) for change in same} == {dataset_hash("magic", magic)}
    train, first, second = magic.source.train, rcv1.source.train, rcv1.source.test  # those of rcv1 are unknown content
    assert train
    assert first
    assert second
    nowhere = first.model_copy(update={"url": None})
    others = [
        *(magic, rcv1, moons),
        having(magic, positive="g"),
        having(magic, only=["g", "h"]),
        *(with_source(magic, **change) for change in ({"label_column": 0}, {"format": "svmlight"}, {"n_features": 11})),
        with_source(magic, train=train.model_copy(update={"sha256": "0" * 64})),
        with_source(magic, test=train),
        with_source(rcv1, train=second, test=first),
        with_source(rcv1, train=nowhere),
        with_source(rcv1, train=nowhere.model_copy(update={"name": "other/file"})),
        with_source(moons, generator=call(moons) | {"seed": 1}),
    ]
    assert len({dataset_hash("any", other) for other in others}) == len(others)


KEYS = {"magic": "238171db033d530b", "mnist10k": "fcd396fcbae95f2e", "rcv1": "6c5f31b7e2344e10"}
"""Keys of data sets that are read from files, without the code of readers; a change makes all users parse again."""


def test_keys_have_not_changed(monkeypatch: Patch) -> None:
    monkeypatch.setattr(dataset, "module_hash", lambda *_: "code")
    assert {name: dataset_hash(name, SPECS[name]) for name in KEYS} == KEYS


def test_the_first_rows_of_one_file_may_be_the_training_set(mirrored: Mirrored, cache: Path) -> None:
    spec, mirror = mirrored
    without_test = with_source(spec, test=None)
    assert load("set", without_test, cache=cache, mirror=mirror).n_train_official is None
    assert load("set", with_source(without_test, n_train=1), cache=cache, mirror=mirror).n_train_official == 1
    assert dataset_hash("set", with_source(without_test, n_train=1)) != dataset_hash("set", without_test)
    for n_train in (0, 2):
        with pytest.raises(KlrBenchError, match=r"set: n_train: expected an integer from 1 to 1, got .*set\.yaml"):
            load("set", with_source(without_test, n_train=n_train), cache=cache, mirror=mirror)
    with pytest.raises(KlrBenchError, match=r"set: expected n_samples=99 as declared, got 3 rows; correct .*set\.yaml"):
        load("set", with_source(spec, n_samples=99), cache=cache, mirror=mirror)


@pytest.mark.parametrize("module", dataset.READING_MODULES)
def test_the_code_of_readers_is_part_of_the_key(tmp_path: Path, monkeypatch: Patch, module: str) -> None:
    (tmp_path / "mine.csv").write_text("x,class\n1,no\n2,yes\n")

    def keys() -> list[str]:
        return [dataset_hash("file", own(tmp_path / "mine.csv")), *(dataset_hash(name, SPECS[name]) for name in names)]

    names = ("magic", "digits")
    before = keys()
    monkeypatch.setattr(dataset, "module_hash", lambda *names: [name for name in names if name != module])
    assert not {*keys()} & {*before}


def test_an_own_file_is_named_by_stem_and_hash(tmp_path: Path, cache: Path, monkeypatch: Patch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    path = tmp_path / "mine.txt.gz"
    path.write_text("class;x\n3;1\n4;2\n5;2\n")
    spec = own(Path("~/mine.txt.gz"), file_format="csv", label_column="class", n_features=1)
    loaded = load("file", having(spec, positive="4"), cache=cache, mirror=None)
    assert loaded.name == f"mine-{hashlib.sha256(path.read_bytes()).hexdigest()[:6]}"
    assert (loaded.classes, loaded.y.tolist()) == (("not 4", "4"), [-1, 1, -1])
    np.testing.assert_array_equal(loaded.X, [[1], [2], [2]])
    assert (cache / "parsed" / loaded.hash / "meta.json").is_file()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "mine.txt.gz"]


def test_the_key_of_an_own_file_follows_its_content(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "mine.svm"
    path.write_text("+1 1:1\n-1 1:2\n")
    first = load("file", own(path), cache=cache, mirror=None)
    path.write_text("+1 1:1\n-1 1:3\n")
    second = load("file", own(path), cache=cache, mirror=None)
    np.testing.assert_array_equal(second.X, [[1], [3]])
    (tmp_path / "test.svm").write_text("+1 1:4\n")
    third = load("file", own(path, test_path=str(tmp_path / "test.svm")), cache=cache, mirror=None)
    assert len({(loaded.hash, loaded.name) for loaded in (first, second, third)}) == 3
    assert third.n_train_official == 2


def run(verb: Any, *args: Any, terminal: bool = False) -> tuple[int, str]:
    out = io.StringIO()
    status = verb(*args, Console(file=out, width=200, force_terminal=terminal))
    return status, out.getvalue()


@pytest.fixture
def configs(mirrored: Mirrored, tmp_path: Path) -> list[Path]:
    """Return a folder of configs with a data set `little` that has files, and one without files."""
    folder = tmp_path / "configs"
    (folder / "dataset").mkdir(parents=True)
    for name, spec in (("little", mirrored[0]), ("moons", SPECS["moons"])):
        (folder / "dataset" / f"{name}.yaml").write_text(yaml.safe_dump(spec.model_dump()))
    return [folder]


def test_list_and_info_describe_every_set(cache: Path) -> None:
    status, text = run(catalog.list_, DIRS, cache)
    assert status == 0
    lines = {line.split()[0]: line for line in text.splitlines()}
    assert set(SPECS) <= set(lines)
    assert re.search(r"MAGIC +19,020 +10 +not fetched", lines["magic"])
    assert lines["digits"].rstrip().endswith("built in")
    assert lines["file"].rstrip().endswith("your own")
    assert f"cache: {cache}" in text
    train = SPECS["magic"].source.train
    assert train is not None
    status, text = run(catalog.info, "magic", DIRS, cache)
    for expected in (str(train.url), train.sha256, str(cache / train.name), "19,020", "not fetched"):
        assert expected in text
    assert not cache.exists()


@pytest.mark.parametrize("terminal", [False, True])
def test_commands_with_a_fetched_file(configs: list[Path], mirrored: Mirrored, cache: Path, terminal: bool) -> None:
    assert run(catalog.verify_, ["little"], configs, cache)[1].count("missing  little: ") == 2
    status, text = run(catalog.fetch_, ["little", "moons"], configs, cache, mirrored[1], terminal=terminal)
    assert status == 0
    assert "train: unpacking" in text
    assert ("━" in text) == terminal
    assert terminal or f"little: {cache / 'test'} (7 bytes)" in text
    assert terminal or "moons: built in, nothing to fetch" in text
    assert re.search(r"little .* fetched, 27 bytes", run(catalog.list_, configs, cache)[1])
    lines = [f"ok       little: {cache / part}\n" for part in ("train", "test")]
    assert run(catalog.verify_, [], configs, cache) == (0, "".join(lines))
    (cache / "test").unlink()
    flip(cache / "train")
    assert "partly fetched" in run(catalog.list_, configs, cache)[1]
    status, text = run(catalog.verify_, [], configs, cache)
    assert status == 2
    assert f"corrupt  little: {cache / 'train'}" in text
    assert f"missing  little: {cache / 'test'}" in text
    assert "Corrupt: 1. The next run, or klr-bench data fetch, replaces the corrupt files." in text


def test_verify_reads_parsed_arrays(configs: list[Path], mirrored: Mirrored, cache: Path) -> None:
    spec = config_datasets.read_dataset("little", configs)
    folder = cache / "parsed" / load("little", spec, cache=cache, mirror=mirrored[1]).hash
    for names in ([], ["little"]):
        assert f"ok       little: {folder}\n" in run(catalog.verify_, names, configs, cache)[1]
    flip(folder / "y.npy")
    status, text = run(catalog.verify_, ["little", "little"], configs, cache)
    assert (status, text.count(f"corrupt  little: {folder}\n")) == (2, 1)
    assert run(catalog.verify_, ["little"], configs, cache)[0] == 0
    assert not folder.exists()


def test_fetch_needs_known_names(cache: Path) -> None:
    with pytest.raises(KlrBenchError, match=r"expected the names of data sets, got none\. Known data sets: a9a, "):
        run(catalog.fetch_, [], DIRS, cache, None)
    with pytest.raises(KlrBenchError, match=r"unknown dataset 'magik'\. Did you mean 'magic'\?"):
        run(catalog.fetch_, ["magik"], DIRS, cache, None)
    assert not cache.exists()


def test_the_cache_of_a_checkout_is_its_data_folder(monkeypatch: Patch, tmp_path: Path) -> None:
    assert default_cache() == ROOT / "data"
    elsewhere = tmp_path / "klr_bench" / "experiment" / "data" / "cache.py"
    monkeypatch.setattr("klr_bench.datasets.cache.__file__", str(elsewhere))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    installed = default_cache()
    assert installed.is_relative_to(tmp_path / "user")
    assert installed.name == "klr-bench"
