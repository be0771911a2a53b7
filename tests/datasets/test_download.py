"""Fetching from mirrors and upstream, tested with a real server on the loopback interface."""

import bz2
import errno
import gzip
import hashlib
import lzma
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from select import select
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from klr_bench.config.models import FileEntry
from klr_bench.datasets import cache as cache_module
from klr_bench.datasets import download as download_module
from klr_bench.datasets import transfer
from klr_bench.datasets.download import fetch, verify
from klr_bench.errors import KlrBenchError
from klr_bench.files import write_checked_json
from tests.attack.promise import rejected
from tests.datasets.conftest import Patch
from tests.datasets.server import Reply, Server

PLAIN = random.Random(0).randbytes(300_000)
OTHER = random.Random(1).randbytes(300_000)
SHA256, OTHER_SHA256 = (hashlib.sha256(content).hexdigest() for content in (PLAIN, OTHER))
PACKED = {"": PLAIN, ".xz": lzma.compress(PLAIN), ".gz": gzip.compress(PLAIN), ".bz2": bz2.compress(PLAIN)}
NAME = "set/file"


def entry(server: Server | None = None, path: str = "/up", sha256: str = SHA256) -> FileEntry:
    return FileEntry(name=NAME, sha256=sha256, url=server.url + path if server else None)


def check_complete(cache: Path) -> None:
    """Check that the cache contains the file, its stamp and its lock, and no other file."""
    assert (cache / NAME).read_bytes() == PLAIN
    names = {str(path.relative_to(cache)) for path in cache.rglob("*") if path.is_file()}
    assert names == {NAME, f"{NAME}.stamp", f"{NAME}.lock"}


def refused(entry: FileEntry, cache: Path, *parts: str, mirror: str | None = None) -> str:
    """Return the message of a fetch that must fail without leaving a temporary file."""
    message = rejected(lambda: fetch(entry, cache=cache, mirror=mirror), *parts)
    assert not list(cache.rglob("*.tmp"))
    return message


@pytest.mark.parametrize("suffix", PACKED)
@pytest.mark.parametrize("source", ["by hand", "folder", "prefix", "upstream"])
def test_each_source_may_be_compressed(server: Server, tmp_path: Path, cache: Path, source: str, suffix: str) -> None:
    folder = {"by hand": cache, "folder": tmp_path / "mirror"}.get(source)
    if folder:
        (folder / NAME).parent.mkdir(parents=True)
        (folder / (NAME + suffix)).write_bytes(PACKED[suffix])
    server.replies |= {f"/pre/{NAME}{suffix}": [Reply(PACKED[suffix])], "/up": [Reply(PACKED[suffix])]}
    mirror = {"folder": str(folder), "prefix": server.url + "/pre/"}.get(source)
    path = fetch(entry(server), cache=cache, mirror=mirror)
    assert ("/up" in [request.path for request in server.requests]) == (source == "upstream")
    assert path == cache / NAME
    assert path.read_bytes() == PLAIN
    if source != "by hand":
        check_complete(cache)


@pytest.mark.parametrize("first", [Reply(b"<html>nothing here</html>"), Reply(status=403), Reply(status=503)])
def test_all_suffixes_are_tried_unless_the_mirror_is_unreachable(server: Server, cache: Path, first: Reply) -> None:
    server.replies |= {"/up": [Reply(PLAIN)], f"/{NAME}": [first], f"/{NAME}.xz": [Reply(PACKED[".xz"])]}
    assert fetch(entry(server), cache=cache, mirror=server.url).read_bytes() == PLAIN
    paths = [f"/{NAME}"] * transfer.ATTEMPTS + ["/up"] if first.status == 503 else [f"/{NAME}", f"/{NAME}.xz"]
    assert [request.path for request in server.requests] == paths


def test_wrong_content_at_the_mirror_falls_back_to_upstream_with_a_warning(
    server: Server, tmp_path: Path, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server.replies["/up"] = [Reply(PLAIN)]
    (tmp_path / "set").mkdir()
    (tmp_path / NAME).write_bytes(OTHER)
    (tmp_path / f"{NAME}.xz").write_bytes(PACKED[".xz"][:-20])
    wrong = f"{tmp_path / NAME}: wrong content: sha256 is {OTHER_SHA256}, expected {SHA256}; discarded"
    refused(entry(), cache, wrong, f"{NAME}.xz: truncated or corrupted", mirror=str(tmp_path))
    fetch(entry(server), cache=cache, mirror=str(tmp_path))
    check_complete(cache)
    assert f"{wrong}; fetched from {server.url}/up instead" in caplog.text


def test_the_message_lists_all_sources_and_what_to_do(server: Server, cache: Path) -> None:
    missing = "not found (HTTP 404 Not Found)"
    lines = refused(entry(server), cache, mirror=server.url + "/pre").splitlines()
    assert lines[1:3] == [f"  {server.url}/pre/{NAME}[.xz|.gz|.bz2]: {missing}", f"  {server.url}/up: {missing}"]
    assert len(server.requests) == 5, "a refusal is final"
    server.replies["/up"] = [Reply(OTHER)]
    assert refused(entry(server), cache).splitlines() == [
        f"The data file {NAME} is not available. Tried:",
        f"  {server.url}/up: wrong content: sha256 is {OTHER_SHA256}, expected {SHA256}; discarded",
        "  mirror: not set",
        "Connect to the network, or set KLR_BENCH_MIRROR (or data.mirror=) to a folder or an http(s) prefix",
        f"that contains {NAME}, or copy the file (plain or .xz, .gz, .bz2) to {cache / NAME}",
    ]
    unreachable = entry().model_copy(update={"url": "http://127.0.0.1:9/a9a"})  # the discard port
    refused(unreachable, cache, "http://127.0.0.1:9/a9a: no connection (4 attempts)", "mirror: not set")
    assert "Connect" not in refused(entry(), cache, "The file has no upstream URL. Set KLR_BENCH_MIRROR")


def test_500_is_retried_with_growing_delays(server: Server, cache: Path, monkeypatch: Patch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(transfer, "BACKOFF_S", 0.5)
    monkeypatch.setattr(transfer, "time", SimpleNamespace(sleep=waits.append, monotonic=time.monotonic))
    server.replies["/up"] = [Reply(status=500)]
    refused(entry(server), cache, "HTTP 500 Internal Server Error (4 attempts)")
    assert waits == [1.0, 2.0, 4.0]
    server.replies["/up"] = [Reply(status=500), Reply(status=503), Reply(PLAIN)]
    fetch(entry(server), cache=cache)
    check_complete(cache)
    assert [request.status for request in server.requests[4:]] == [500, 503, 200]


def test_a_hanging_server_times_out(server: Server, cache: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(transfer, "TIMEOUT_S", (0.1, 0.05))
    monkeypatch.setattr(transfer, "ATTEMPTS", 2)
    gate = threading.Event()
    server.replies["/up"] = [Reply(PLAIN, gate=gate)]
    refused(entry(server), cache, "(2 attempts)")
    gate.set()


def test_a_broken_download_is_resumed_where_it_stopped(server: Server, cache: Path) -> None:
    server.replies["/up"] = [Reply(PLAIN, cut=40_000)]
    steps: list[tuple[int, int | None, str]] = []
    fetch(entry(server), cache=cache, progress=lambda *step: steps.append(step))
    check_complete(cache)
    assert len(server.requests) > transfer.ATTEMPTS, "no failure while bytes arrive"
    starts = [int(str(request.range)[6:-1]) for request in server.requests[1:]]
    assert all(0 <= (i + 1) * 40_000 - start <= (i + 1) * transfer.CHUNK for i, start in enumerate(starts))
    assert {(request.if_range, request.status) for request in server.requests[1:]} == {('"one"', 206)}
    counts = [(done, total) for done, total, what in steps if what == f"{NAME}: downloading"]
    assert counts == sorted(counts)
    assert (counts[0], counts[-1]) == ((0, len(PLAIN)), (len(PLAIN), len(PLAIN)))


@pytest.mark.parametrize(
    ("replies", "statuses"),
    [
        ([Reply(PLAIN, cut=100_000), Reply(PLAIN, ranges=False)], [200, 200]),
        ([Reply(PLAIN, cut=100_000, etag=None), Reply(PLAIN, etag=None)], [200, 200]),
        ([Reply(PLAIN, cut=100_000, etag='W/"one"'), Reply(PLAIN, etag='W/"one"')], [200, 200]),
        ([Reply(OTHER, cut=100_000), Reply(PLAIN, etag='"two"')], [200, 200]),
        ([Reply(OTHER, cut=100_000), Reply(PLAIN, etag='"two"', checks_if_range=False), Reply(PLAIN)], [200, 206, 200]),
        ([Reply(PLAIN, cut=100_000), Reply(PLAIN, shift=10), Reply(PLAIN, etag='"two"')], [200, 206, 200]),
    ],
    ids=["no ranges", "no validator", "weak ETag", "changed", "changed, If-Range ignored", "from another place"],
)
def test_other_downloads_start_over(server: Server, cache: Path, replies: list[Reply], statuses: list[int]) -> None:
    server.replies["/up"] = [*replies]
    fetch(entry(server), cache=cache)
    check_complete(cache)
    assert [request.status for request in server.requests] == statuses


NOTE = '{"url": "URL/up", "validator": "\\"one\\""}'


@pytest.mark.parametrize(
    ("content", "note", "statuses"),
    [
        (PLAIN + b"more", NOTE, [416, 200]),
        *((PLAIN[:1000], note, [200]) for note in ("", "[]", '{"url": 3}', NOTE.replace("/up", "/elsewhere"))),
    ],
)
def test_a_wrong_part_is_not_used(server: Server, cache: Path, content: bytes, note: str, statuses: list[int]) -> None:
    server.replies["/up"] = [Reply(PLAIN)]
    (cache / "set").mkdir(parents=True)
    (cache / f"{NAME}.part").write_bytes(content)
    (cache / f"{NAME}.part.json").write_text(note.replace("URL", server.url))
    fetch(entry(server), cache=cache)
    check_complete(cache)
    assert [request.status for request in server.requests] == statuses


def test_a_complete_part_is_not_loaded_again(server: Server, cache: Path, monkeypatch: Patch) -> None:
    server.replies["/up"] = [Reply(PLAIN)]
    monkeypatch.setattr(download_module, "_decompress", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        fetch(entry(server), cache=cache)
    monkeypatch.undo()
    fetch(entry(server), cache=cache)
    check_complete(cache)
    assert [request.status for request in server.requests] == [200, 416]


@pytest.fixture
def fetched(server: Server, cache: Path) -> Path:
    server.replies["/up"] = [Reply(PLAIN)]
    return fetch(entry(server), cache=cache)


def test_a_file_is_fetched_and_hashed_once(server: Server, cache: Path, fetched: Path, monkeypatch: Patch) -> None:
    os.utime(fetched, ns=(1, 1))
    fetch(entry(server), cache=cache)  # hashed once more
    monkeypatch.setattr(cache_module, "sha256_of", lambda path: pytest.fail("hashed again"))
    assert fetch(entry(server), cache=cache) == fetched
    assert len(server.requests) == 1


@pytest.mark.parametrize("damage", [OTHER, PLAIN[:-1], b""])
def test_a_changed_file_is_fetched_again(server: Server, cache: Path, fetched: Path, damage: bytes) -> None:
    fetched.write_bytes(damage)
    got = hashlib.sha256(damage).hexdigest()
    refused(entry(), cache, f"{fetched}: wrong content: sha256 is {got}, expected {SHA256}")
    assert fetch(entry(server), cache=cache).read_bytes() == PLAIN
    assert len(server.requests) == 2


def test_verify_ignores_the_stamp(server: Server, cache: Path) -> None:
    server.replies["/up"] = [Reply(PACKED[".bz2"])]
    file = entry(server)
    assert verify(file, cache=cache) == "missing"
    path = fetch(file, cache=cache)
    assert verify(file, cache=cache) == "ok"
    path.write_bytes(OTHER)  # same size and times as in the stamp, as after a disk failure
    write_checked_json(cache / f"{NAME}.stamp", {"state": cache_module.state_of(path), "sha256": SHA256})
    assert fetch(file, cache=cache) == path
    assert len(server.requests) == 1
    assert verify(file, cache=cache) == "corrupt"
    assert fetch(file, cache=cache).read_bytes() == PLAIN


def test_a_complete_read_only_cache_is_usable(server: Server, cache: Path, fetched: Path, monkeypatch: Patch) -> None:
    (cache / f"{NAME}.stamp").unlink()

    monkeypatch.setattr(cache_module, "write_checked_json", Mock(side_effect=KlrBenchError("read-only")))
    assert fetch(entry(server), cache=cache) == fetched


@pytest.mark.parametrize("full", ["part", "tmp"])
def test_a_full_disk_leaves_no_incomplete_file(server: Server, cache: Path, monkeypatch: Patch, full: str) -> None:
    server.replies["/up"] = [Reply(PLAIN)]
    open_file = Path.open

    def opened(path: Path, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if mode in {"ab", "wb"} and path.name.endswith(full):
            return open_file(Path("/dev/full"), mode, *args, **kwargs)
        return open_file(path, mode, *args, **kwargs)

    monkeypatch.setattr(Path, "open", opened)
    refused(entry(server), cache, f"{cache / NAME} could not be written: the disk is full.")
    monkeypatch.setattr(Path, "open", open_file)
    assert not (cache / NAME).exists()
    fetch(entry(server), cache=cache)
    check_complete(cache)


def test_a_cache_that_is_not_writable_is_rejected(server: Server, tmp_path: Path, monkeypatch: Patch) -> None:
    server.replies["/up"] = [Reply(PLAIN)]
    (tmp_path / "occupied").write_text("a file, not a folder")
    inside = tmp_path / "occupied" / "cache"
    refused(entry(server), inside, f"{inside / NAME} could not be written: Not a directory", "data.cache=FOLDER")
    assert server.requests == []
    denied = PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    monkeypatch.setattr("klr_bench.datasets.download.os.replace", Mock(side_effect=denied))
    refused(entry(server), tmp_path, "could not be written: Permission denied. Make its folder writable")


CHILD = """
import sys
from pathlib import Path
from klr_bench.config.models import FileEntry
from klr_bench.datasets.download import fetch
entry = FileEntry.model_validate_json(sys.argv[1])
fetch(entry, cache=Path(sys.argv[2]), mirror=None, progress=lambda done, total, what: print(what, flush=True))
"""


def child(entry: FileEntry, cache: Path, out: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", CHILD, entry.model_dump_json(), str(cache)]
    return subprocess.Popen(command, stdout=out, cwd=Path(__file__).parents[2])


def test_of_several_processes_one_downloads(server: Server, cache: Path) -> None:
    gate = threading.Event()
    server.replies["/up"] = [Reply(PLAIN, gate=gate)]
    read_end, write_end = os.pipe()
    children = [child(entry(server), cache, write_end) for _ in range(3)]
    os.close(write_end)
    with open(read_end, "rb", buffering=0) as stream:
        output = b""
        # The timeout only guards against hanging: a late process finds the file and must not request it again.
        while output.count(b": waiting for another process") < 2 and select([stream], [], [], 30.0)[0]:
            output += stream.read(4096)
        gate.set()
        stream.read()
    assert [process.wait(timeout=30) for process in children] == [0, 0, 0], output.decode()
    assert len(server.requests) == 1, output.decode()
    check_complete(cache)


def test_a_killed_download_is_resumed_by_the_next_run(server: Server, cache: Path) -> None:
    gate = threading.Event()
    server.replies["/up"] = [Reply(PLAIN, gate=gate, free=120_000), Reply(PLAIN)]
    process = child(entry(server), cache, subprocess.PIPE)
    part = cache / f"{NAME}.part"
    assert process.stdout
    assert any(part.exists() and part.stat().st_size > 90_000 for _ in process.stdout)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=10)
    gate.set()
    n_bytes = part.stat().st_size
    assert not (cache / NAME).exists()
    fetch(entry(server), cache=cache)
    assert (server.requests[-1].range, server.requests[-1].sent) == (f"bytes={n_bytes}-", len(PLAIN) - n_bytes)
    check_complete(cache)
