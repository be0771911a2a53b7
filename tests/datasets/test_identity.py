"""Files whose hash is not declared are identified by their content, wherever it comes from."""

import bz2
import gzip
import hashlib
import io
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from klr_bench.config.models import DatasetConfig
from klr_bench.datasets import catalog, dataset_hash, load
from klr_bench.datasets.compression import SUFFIXES
from klr_bench.datasets.identity import _say_removed, identified
from klr_bench.errors import KlrBenchError
from tests.config.composing import dataset_of
from tests.datasets.conftest import Patch
from tests.datasets.server import Reply, Server

NAME = "rings/rings.csv"
FIRST, SECOND, THIRD = (f"{n},2,a\n3,4,b\n5,6,a\n".encode() for n in (1, 7, 8))
PACK: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".xz": lzma.compress,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
}


def rings(sha256: str = "unknown", url: str | None = None, **source: Any) -> DatasetConfig:
    train = {"name": NAME, "sha256": sha256} | ({"url": url} if url else {})
    return dataset_of({"source": {"format": "csv", "train": train} | source, "split": {"test_size": 0.5}})


def write(folder: Path, content: bytes, suffix: str = "", name: str = NAME) -> str:
    """Write a file into a mirror or the cache, and return the folder."""
    path = folder / (name + suffix)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(PACK[suffix](content))
    return str(folder)


def check(content: bytes, spec: DatasetConfig, cache: Path, mirror: str | None = None) -> str:
    """Check that a data set is loaded from a content, and that its key is that of the declared hash; return the key."""
    loaded = load("rings", spec, cache=cache, mirror=mirror)
    assert loaded.X[0, 0] == float(content[:1])
    assert loaded.hash == dataset_hash("rings", rings(hashlib.sha256(content).hexdigest()))
    return loaded.hash


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize("where", ["cache", "mirror"])
def test_a_changed_local_file_is_used_at_once(tmp_path: Path, cache: Path, where: str, suffix: str) -> None:
    keys = []
    for content in (FIRST, SECOND, FIRST, THIRD):
        mirror = write(tmp_path / where, content, suffix)
        keys.append(check(content, rings(), cache, mirror if where == "mirror" else None))
    assert (keys[0], len(set(keys))) == (keys[2], 3)
    assert set(SUFFIXES) < set(PACK)


def test_files_of_the_same_name_do_not_replace_each_other(tmp_path: Path, cache: Path, server: Server) -> None:
    first, second = write(tmp_path / "one", FIRST), write(tmp_path / "other", SECOND, ".gz")
    server.replies |= {"/up": [Reply(THIRD)], f"/mirror/{NAME}": [Reply(b"9" + THIRD[1:])]}
    declared = rings(hashlib.sha256(SECOND).hexdigest())
    for _ in range(2):
        check(FIRST, rings(), cache, first)
        check(SECOND, rings(), cache, second)
        check(THIRD, rings(url=f"{server.url}/up"), cache)
        check(b"9" + THIRD[1:], rings(), cache, f"{server.url}/mirror")
        check(SECOND, declared, cache, second)
    assert [request.path for request in server.requests] == ["/up", f"/mirror/{NAME}"]


def test_a_file_of_a_data_set_with_a_declared_hash_is_not_used_for_another(tmp_path: Path, cache: Path) -> None:
    check(FIRST, rings(hashlib.sha256(FIRST).hexdigest()), cache, write(tmp_path / "one", FIRST))
    assert (cache / NAME).read_bytes() == FIRST
    with pytest.raises(
        KlrBenchError, match=r"rings\.csv: belongs to a data set that declares its hash; to use it here"
    ):
        load("rings", rings(), cache=cache, mirror=None)
    check(SECOND, rings(), cache, write(tmp_path / "other", SECOND))
    assert (cache / NAME).read_bytes() == FIRST


def test_a_download_keeps_the_content_that_was_fetched(cache: Path, server: Server) -> None:
    server.replies["/up"] = [Reply(FIRST), Reply(SECOND)]
    spec = rings(url=f"{server.url}/up")
    for _ in range(2):
        check(FIRST, spec, cache)
    (copy,) = cache.glob("rings/*/rings.csv")
    copy.unlink()
    for _ in range(2):
        check(SECOND, spec, cache)
    assert len(server.requests) == 2


@pytest.mark.parametrize("suffix", PACK)
def test_a_removed_file_is_replaced_by_its_last_content_or_refused(
    tmp_path: Path, cache: Path, suffix: str, caplog: pytest.LogCaptureFixture
) -> None:
    for content in (FIRST, SECOND, FIRST):
        mirror = write(tmp_path / "mirror", content, suffix)
        check(content, rings(), cache, mirror)
    (tmp_path / "mirror" / (NAME + suffix)).unlink()
    _say_removed.cache_clear()
    check(FIRST, rings(), cache, mirror)
    (message,) = caplog.messages
    assert message.startswith(f"{mirror}/{NAME}{suffix} is gone; its last content is used.")
    for copy in cache.glob("rings/*/rings.csv"):
        copy.unlink()
    with pytest.raises(KlrBenchError, match=r"The data file rings/rings\.csv is not available\. Tried:"):
        load("rings", rings(), cache=cache, mirror=mirror)


def test_a_damaged_local_file_is_refused_and_not_replaced_by_another(
    tmp_path: Path, cache: Path, server: Server
) -> None:
    server.replies["/up"] = [Reply(SECOND)]
    mirror = write(tmp_path / "mirror", FIRST, ".gz")
    path = tmp_path / "mirror" / f"{NAME}.gz"
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(KlrBenchError, match=r"rings\.csv\.gz: truncated or corrupted"):
        load("rings", rings(url=f"{server.url}/up"), cache=cache, mirror=mirror)
    assert not server.requests


def test_each_file_of_a_data_set_is_part_of_its_identity(tmp_path: Path, cache: Path) -> None:
    def idx(values: Any) -> bytes:
        array = np.array(values, dtype=np.uint8)
        sizes = b"".join(n.to_bytes(4, "big") for n in array.shape)
        return bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes()

    names = [f"{part}-{kind}" for part in ("train", "test") for kind in ("images", "labels")]
    parts = {p: {"name": f"set/{p}-images", "labels": {"name": f"set/{p}-labels"}} for p in ("train", "test")}
    spec = dataset_of({"source": {"format": "idx", **parts}, "split": {"official": True}})
    contents = {name: idx([[[1]], [[2]]]) if "images" in name else idx([0, 1]) for name in names}
    keys = []
    for name in ("", *names):
        changed = {name: idx([[[3]], [[4]]]) if "images" in name else idx([1, 0])} if name else {}
        for file, content in (contents | changed).items():
            mirror = write(tmp_path / "mirror", content, name=f"set/{file}")
        loaded = load("set", spec, cache=cache, mirror=mirror)
        keys.append(loaded.hash)
        pixels = [v for part in ("train", "test") for v in ([3, 4] if name == f"{part}-images" else [1, 2])]
        assert np.round(255 * loaded.X.ravel()).tolist() == pixels
        labels = [y for part in ("train", "test") for y in ([1, -1] if name == f"{part}-labels" else [-1, 1])]
        assert loaded.y.tolist() == labels
    assert len(set(keys)) == 5


def test_without_fetching_nothing_is_written(tmp_path: Path, cache: Path) -> None:
    def key(mirror: str | None) -> str:
        return dataset_hash("rings", identified(rings(), cache=cache, mirror=mirror, fetching=False))

    plain, packed = write(tmp_path / "plain", FIRST), write(tmp_path / "packed", FIRST, ".gz")
    declared = dataset_hash("rings", rings(hashlib.sha256(FIRST).hexdigest()))
    assert (key(plain), key(packed)) == (declared, key(None)), "a compressed file must be fetched first"
    assert not cache.exists()
    check(FIRST, rings(), cache, packed)
    assert key(packed) == declared


def test_a_file_that_changes_while_it_is_copied_is_refused(tmp_path: Path, cache: Path, monkeypatch: Patch) -> None:
    from klr_bench.datasets import download

    mirror, real = write(tmp_path / "mirror", FIRST, ".gz"), download.plain_chunks

    def chunks(path: Path) -> Any:
        yield from real(path)
        write(tmp_path / "mirror", SECOND, ".gz")

    monkeypatch.setattr(download, "plain_chunks", chunks)
    with pytest.raises(KlrBenchError, match=r"rings\.csv\.gz changed while it was being copied; run the same command"):
        load("rings", rings(), cache=cache, mirror=mirror)
    monkeypatch.undo()
    check(SECOND, rings(), cache, mirror)


def test_the_data_commands_see_a_change(tmp_path: Path, cache: Path) -> None:
    configs = tmp_path / "configs"
    (configs / "dataset").mkdir(parents=True)
    (configs / "dataset" / "rings.yaml").write_text(
        "# @package datasets.rings\nlabel: Rings\nsource: {format: csv, train: {name: rings/rings.csv}}\n"
        "split: {test_size: 0.2}\n"
    )

    def printed(verb: Any, *arguments: Any, **options: Any) -> str:
        text = io.StringIO()
        status = verb(*arguments, Console(file=text, width=200), **options)
        assert status == (2 if "corrupt" in text.getvalue() else 0)
        return text.getvalue()

    def verified() -> list[str]:
        lines = printed(catalog.verify_, ["rings"], [configs], cache, mirror=mirror).splitlines()
        of_files = [line for line in lines if "/parsed/" not in line]
        assert printed(catalog.verify_, ["rings"], [configs], cache).splitlines() == of_files, (
            "the mirror is remembered"
        )
        return lines

    def info() -> str:
        return printed(catalog.info, "rings", [configs], cache, mirror=mirror)

    mirror, plain = write(tmp_path / "mirror", FIRST), tmp_path / "mirror" / NAME
    assert verified() == [f"missing  rings: {cache / NAME}"]
    assert "not fetched" in printed(catalog.list_, [configs], cache)
    paths = []
    for content in (FIRST, SECOND):
        write(tmp_path / "mirror", content)
        sha256 = hashlib.sha256(content).hexdigest()
        paths.append(cache / "rings" / sha256[:16] / "rings.csv")
        if content is SECOND:
            changed = ["Changed since they were fetched: 1. The next run uses their new content."]
            assert verified() == [f"ok       rings: {paths[0]}", f"changed  rings: {plain}", *changed]
        assert f"here       {sha256}" in info()
        assert f"rings: {paths[-1]} (18 bytes)" in printed(catalog.fetch_, ["rings"], [configs], cache, mirror)
        assert f"file       {paths[-1]}" in info()
        assert printed(catalog.info, "rings", [configs], cache) == info()
        assert f"from       {plain}" in info()
        assert "fetched, 18 bytes" in printed(catalog.list_, [configs], cache)
    assert verified() == [f"ok       rings: {path}" for path in sorted(paths)]
    paths[1].write_bytes(THIRD)
    assert f"corrupt  rings: {paths[1]}" in verified()
    check(SECOND, rings(), cache, mirror)
    assert f"ok       rings: {paths[1]}" in verified()
