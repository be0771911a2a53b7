"""Fetching: mirror, upstream, resume, retry, hashes, locks, disks; against a real server on the loopback."""

from __future__ import annotations

import bz2
import errno
import gzip
import hashlib
import json
import lzma
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from select import select
from types import SimpleNamespace
from typing import Any

import pytest

from klr_bench.config.models import FileEntry
from klr_bench.datasets import cache as cache_module
from klr_bench.datasets import transfer
from klr_bench.datasets.download import fetch, verify
from klr_bench.errors import KlrBenchError
from klr_bench.parsing import parse
from tests.datasets.loopback import Loopback, Reply

PLAIN = random.Random(0).randbytes(300_000)
OTHER = random.Random(1).randbytes(300_000)
SHA256 = hashlib.sha256(PLAIN).hexdigest()
PACKED = {"": PLAIN, ".xz": lzma.compress(PLAIN), ".gz": gzip.compress(PLAIN), ".bz2": bz2.compress(PLAIN)}
NAME = "set/file"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    monkeypatch.setattr(transfer, "BACKOFF_S", 0.001)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with Loopback() as running:
        yield running


def entry(server: Loopback | None = None, path: str = "/up", sha256: str = SHA256) -> FileEntry:
    return FileEntry(name=NAME, sha256=sha256, url=server.url + path if server else None)


def leftovers(cache: Path) -> list[str]:
    """All files in the cache but the data file, its stamp and its lock."""
    usual = {NAME, f"{NAME}.stamp", f"{NAME}.lock"}
    found = {str(path.relative_to(cache)) for path in cache.rglob("*") if path.is_file()}
    return sorted(found - usual)


def refused(entry: FileEntry, cache: Path, mirror: str | None = None) -> str:
    with pytest.raises(KlrBenchError) as caught:
        fetch(entry, cache=cache, mirror=mirror)
    return str(caught.value)


# -- the mirror ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", PACKED)
@pytest.mark.parametrize("source", ["by hand", "folder", "prefix", "upstream"])
def test_each_source_serves_plain_and_compressed_files(
    server: Loopback, tmp_path: Path, cache: Path, source: str, suffix: str
) -> None:
    folder = {"by hand": cache, "folder": tmp_path / "mirror"}.get(source)
    if folder:
        (folder / NAME).parent.mkdir(parents=True)
        (folder / (NAME + suffix)).write_bytes(PACKED[suffix])
    server.replies |= {f"/pre/{NAME}{suffix}": [Reply(PACKED[suffix])], "/up": [Reply(PACKED[suffix])]}
    mirror = {"folder": str(folder), "prefix": server.url + "/pre/"}.get(source)
    path = fetch(entry(server if source == "upstream" else None), cache=cache, mirror=mirror)
    assert path == cache / NAME
    assert path.read_bytes() == PLAIN
    if source != "by hand":
        assert leftovers(cache) == []


@pytest.mark.parametrize("held", [True, False])
def test_the_mirror_comes_before_the_upstream_address(
    server: Loopback, cache: Path, tmp_path: Path, held: bool
) -> None:
    server.replies["/up"] = [Reply(PLAIN)]
    (tmp_path / "set").mkdir()
    if held:
        (tmp_path / NAME).write_bytes(PLAIN)
    assert fetch(entry(server), cache=cache, mirror=str(tmp_path)).read_bytes() == PLAIN
    assert len(server.requests) == int(not held)


def test_a_mirror_and_an_upstream_that_lack_the_file_are_both_named(server: Loopback, cache: Path) -> None:
    lines = refused(entry(server), cache, server.url + "/pre").splitlines()
    assert lines[1:3] == [
        f"  {server.url}/pre/{NAME}[.xz|.gz|.bz2]: not there (HTTP 404 Not Found)",
        f"  {server.url}/up: not there (HTTP 404 Not Found)",
    ]


def test_an_http_mirror_that_fails_is_not_asked_for_each_suffix(server: Loopback, cache: Path) -> None:
    server.replies["/up"] = [Reply(PLAIN)]
    server.replies[f"/{NAME}"] = [Reply(status=503)]
    fetch(entry(server), cache=cache, mirror=server.url)
    assert [request.path for request in server.requests] == [f"/{NAME}"] * transfer.ATTEMPTS + ["/up"]


@pytest.mark.parametrize("first", [Reply(b"<html>nothing here</html>"), Reply(status=403)])
def test_an_http_mirror_that_does_not_say_404_is_asked_on(server: Loopback, cache: Path, first: Reply) -> None:
    server.replies |= {f"/{NAME}": [first], f"/{NAME}.xz": [Reply(PACKED[".xz"])]}
    assert fetch(entry(), cache=cache, mirror=server.url).read_bytes() == PLAIN


def test_wrong_content_at_the_mirror_is_said_and_not_kept(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / NAME).write_bytes(OTHER)
    message = refused(entry(), cache, str(tmp_path))
    got = hashlib.sha256(OTHER).hexdigest()
    assert f"{tmp_path / NAME}: wrong content: sha256 is {got}, expected {SHA256}; not kept" in message
    assert not (cache / NAME).exists()
    assert leftovers(cache) == []


def test_wrong_content_at_the_mirror_falls_back_to_upstream_with_a_warning(
    server: Loopback, tmp_path: Path, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server.replies["/up"] = [Reply(PLAIN)]
    (tmp_path / "set").mkdir()
    (tmp_path / f"{NAME}.xz").write_bytes(PACKED[".xz"][:-20])
    assert fetch(entry(server), cache=cache, mirror=str(tmp_path)).read_bytes() == PLAIN
    assert f"{NAME}.xz: truncated or corrupted" in caplog.text
    assert f"now taken from {server.url}/up" in caplog.text


def test_no_network_and_no_mirror_says_what_to_do(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "BACKOFF_S", 0.0)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    url = "http://127.0.0.1:9/a9a"  # the discard port: nobody listens
    message = refused(entry().model_copy(update={"url": url}), cache)
    assert f"The data file {NAME} cannot be had." in message
    assert f"{url}: no connection (4 attempts)" in message
    assert "no mirror: none is set" in message
    assert "KLR_BENCH_MIRROR (or data.mirror=)" in message
    assert str(cache / NAME) in message


# -- HTTP ------------------------------------------------------------------------------------------------


def test_progress_counts_up_to_the_size_of_a_download(server: Loopback, cache: Path) -> None:
    server.replies["/up"] = [Reply(PLAIN)]
    seen: list[tuple[int, int | None, str]] = []
    fetch(entry(server), cache=cache, progress=lambda *step: seen.append(step))
    steps = [(done, total) for done, total, what in seen if what == f"{NAME}: downloading"]
    assert len(steps) > 10
    assert steps == sorted(steps)
    assert (steps[0], steps[-1]) == ((0, len(PLAIN)), (len(PLAIN), len(PLAIN)))


@pytest.mark.parametrize(("status", "reason"), [(404, "not there (HTTP 404 Not Found)"), (403, "HTTP 403 Forbidden")])
def test_what_the_server_refuses_is_not_asked_for_again(
    server: Loopback, cache: Path, status: int, reason: str
) -> None:
    server.replies["/up"] = [Reply(status=status)]
    assert f"{server.url}/up: {reason}" in refused(entry(server), cache)
    assert len(server.requests) == 1


def test_500_then_200_succeeds(server: Loopback, cache: Path) -> None:
    server.replies["/up"] = [Reply(status=500), Reply(status=503), Reply(PLAIN)]
    assert fetch(entry(server), cache=cache).read_bytes() == PLAIN
    assert [request.status for request in server.requests] == [500, 503, 200]


def test_500_for_ever_is_given_up_after_growing_waits(
    server: Loopback, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.replies["/up"] = [Reply(status=500)]
    waits: list[float] = []
    monkeypatch.setattr(transfer, "BACKOFF_S", 0.5)
    monkeypatch.setattr(transfer, "time", SimpleNamespace(sleep=waits.append, monotonic=time.monotonic))
    assert "HTTP 500 Internal Server Error (4 attempts)" in refused(entry(server), cache)
    assert len(server.requests) == transfer.ATTEMPTS
    assert waits == [1.0, 2.0, 4.0]


def test_a_server_that_hangs_is_given_up(server: Loopback, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "TIMEOUT_S", (0.1, 0.05))
    monkeypatch.setattr(transfer, "ATTEMPTS", 2)
    gate = threading.Event()
    server.replies["/up"] = [Reply(PLAIN, gate=gate)]
    assert "(2 attempts)" in refused(entry(server), cache)
    gate.set()


def test_a_broken_download_is_resumed_where_it_stopped(server: Loopback, cache: Path) -> None:
    server.replies["/up"] = [Reply(PLAIN, cut=100_000), Reply(PLAIN, cut=100_000), Reply(PLAIN)]
    assert fetch(entry(server), cache=cache).read_bytes() == PLAIN
    first, second, third = server.requests
    assert (first.range, first.status) == (None, 200)
    assert (second.if_range, second.status) == ('"one"', 206)
    assert third.status == 206
    starts = [int(str(request.range)[6:-1]) for request in (second, third)]
    assert 100_000 - transfer.CHUNK <= starts[0] <= 100_000
    assert 2 * (100_000 - transfer.CHUNK) <= starts[1] <= 200_000
    assert server.sent <= len(PLAIN) + 2 * transfer.CHUNK


def test_a_later_run_resumes_what_an_earlier_one_left(
    server: Loopback, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "ATTEMPTS", 1)
    server.replies["/up"] = [Reply(PLAIN, cut=200_000), Reply(status=500), Reply(PLAIN)]
    refused(entry(server), cache)
    part = cache / f"{NAME}.part"
    kept = part.stat().st_size
    assert 200_000 - transfer.CHUNK <= kept <= 200_000
    assert fetch(entry(server), cache=cache).read_bytes() == PLAIN
    assert server.requests[-1].range == f"bytes={kept}-"
    assert server.requests[-1].sent == len(PLAIN) - kept
    assert leftovers(cache) == []


def test_many_breaks_are_no_failure_while_bytes_arrive(server: Loopback, cache: Path) -> None:
    server.replies["/up"] = [Reply(PLAIN, cut=40_000)]
    assert fetch(entry(server), cache=cache).read_bytes() == PLAIN
    assert len(server.requests) > transfer.ATTEMPTS


def test_a_server_that_ignores_ranges_sends_all_again(server: Loopback, cache: Path) -> None:
    server.replies["/up"] = [Reply(PLAIN, cut=100_000), Reply(PLAIN, ranges=False)]
    assert fetch(entry(server), cache=cache).read_bytes() == PLAIN
    assert [request.status for request in server.requests] == [200, 200]
    assert server.requests[1].range is not None


@pytest.mark.parametrize("etag", [None, 'W/"one"'], ids=["no validator", "weak ETag"])
def test_without_a_strong_validator_all_is_sent_again(server: Loopback, cache: Path, etag: str | None) -> None:
    server.replies["/up"] = [Reply(PLAIN, cut=100_000, etag=etag), Reply(PLAIN, etag=etag)]
    assert fetch(entry(server), cache=cache).read_bytes() == PLAIN
    assert [request.range for request in server.requests] == [None, None]


@pytest.mark.parametrize(
    ("second", "statuses"),
    [
        (Reply(PLAIN, etag='"two"'), [200, 200]),
        (Reply(PLAIN, etag='"two"', checks_if_range=False), [200, 206, 200]),
        (Reply(PLAIN, shift=10), [200, 206, 200]),
    ],
    ids=["changed", "changed, If-Range ignored", "from another place"],
)
def test_a_download_that_goes_on_with_another_file_is_begun_anew(
    server: Loopback, cache: Path, second: Reply, statuses: list[int]
) -> None:
    server.replies["/up"] = [Reply(PLAIN if second.shift else OTHER, cut=100_000), second, Reply(PLAIN, etag='"two"')]
    assert fetch(entry(server), cache=cache).read_bytes() == PLAIN
    assert [request.status for request in server.requests] == statuses


@pytest.mark.parametrize(
    ("content", "statuses"), [(PLAIN + b"more", [416, 200]), (OTHER[:1000], [206, 200])], ids=["too long", "wrong"]
)
def test_a_part_that_does_not_fit_costs_one_more_download(
    server: Loopback, cache: Path, content: bytes, statuses: list[int]
) -> None:
    server.replies["/up"] = [Reply(PLAIN)]
    leave_part(cache, content, json.dumps({"url": server.url + "/up", "validator": '"one"'}))
    assert fetch(entry(server), cache=cache).read_bytes() == PLAIN
    assert [request.status for request in server.requests] == statuses


@pytest.mark.parametrize("note", ["", "[]", "{}", '{"url": 3}', '{"url": "http://a/elsewhere", "validator": "1"}'])
def test_a_part_of_another_address_or_with_a_damaged_note_is_begun_anew(
    server: Loopback, cache: Path, note: str
) -> None:
    server.replies["/up"] = [Reply(PLAIN)]
    leave_part(cache, PLAIN[:1000], note)
    assert fetch(entry(server), cache=cache).read_bytes() == PLAIN
    assert server.requests[0].range is None


def leave_part(cache: Path, content: bytes, note: str) -> None:
    """Leave what a killed run leaves."""
    (cache / "set").mkdir(parents=True)
    (cache / f"{NAME}.part").write_bytes(content)
    (cache / f"{NAME}.part.json").write_text(note)


def test_wrong_bytes_are_refused_and_not_kept(server: Loopback, cache: Path) -> None:
    server.replies["/up"] = [Reply(OTHER)]
    got = hashlib.sha256(OTHER).hexdigest()
    assert refused(entry(server), cache).splitlines() == [
        f"The data file {NAME} cannot be had. Tried:",
        f"  {server.url}/up: wrong content: sha256 is {got}, expected {SHA256}; not kept",
        "  no mirror: none is set",
        "Connect to the network, or set KLR_BENCH_MIRROR (or data.mirror=) to a folder or http(s) prefix",
        f"that holds {NAME}, or put the file by hand (plain or .xz, .gz, .bz2) at {cache / NAME}",
    ]
    assert len(server.requests) == 1
    assert not (cache / NAME).exists()
    assert leftovers(cache) == []


# -- the cache -------------------------------------------------------------------------------------------


@pytest.fixture
def fetched(server: Loopback, cache: Path) -> Path:
    server.replies["/up"] = [Reply(PLAIN)]
    return fetch(entry(server), cache=cache)


def test_a_cached_file_is_neither_fetched_nor_hashed_again(
    server: Loopback, cache: Path, fetched: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_module, "sha256_of", lambda path: pytest.fail("hashed again"))
    assert fetch(entry(server), cache=cache) == fetched
    assert len(server.requests) == 1


def test_a_touched_file_is_hashed_again_and_kept(server: Loopback, cache: Path, fetched: Path) -> None:
    os.utime(fetched, ns=(1, 1))
    fetch(entry(server), cache=cache)
    assert len(server.requests) == 1
    assert json.loads((cache / f"{NAME}.stamp").read_text())["mtime_ns"] == 1


@pytest.mark.parametrize("damage", [OTHER, PLAIN[:-1], b""])
def test_a_changed_file_is_fetched_again(server: Loopback, cache: Path, fetched: Path, damage: bytes) -> None:
    fetched.write_bytes(damage)
    assert fetch(entry(server), cache=cache).read_bytes() == PLAIN
    assert len(server.requests) == 2


def test_a_changed_file_that_cannot_be_fetched_again_is_named(cache: Path, fetched: Path) -> None:
    fetched.write_bytes(OTHER)
    message = refused(entry(), cache)
    assert f"{fetched}: wrong content: sha256 is {hashlib.sha256(OTHER).hexdigest()}, expected" in message


def test_verify_looks_at_the_content_and_not_at_the_stamp(server: Loopback, cache: Path, fetched: Path) -> None:
    assert verify(entry(), cache=cache / "elsewhere") == "missing"
    assert verify(entry(), cache=cache) == "ok"
    fetched.write_bytes(OTHER)  # as many bytes, and the times of the stamp: what a failing disk does
    state = dict(zip(cache_module.STATE, cache_module.state_of(fetched), strict=True))
    (cache / f"{NAME}.stamp").write_text(json.dumps(state | {"sha256": SHA256}))
    assert fetch(entry(server), cache=cache) == fetched
    assert len(server.requests) == 1
    assert verify(entry(), cache=cache) == "corrupt"
    assert fetch(entry(server), cache=cache).read_bytes() == PLAIN
    assert len(server.requests) == 2


def test_a_read_only_cache_that_is_complete_serves(
    server: Loopback, cache: Path, fetched: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cache / f"{NAME}.stamp").unlink()

    def fails(*args: Any) -> None:
        message = "read-only"
        raise KlrBenchError(message)

    monkeypatch.setattr(cache_module, "write_json", fails)
    assert fetch(entry(server), cache=cache) == fetched


def test_a_cache_that_cannot_be_written_is_refused(server: Loopback, tmp_path: Path) -> None:
    server.replies["/up"] = [Reply(PLAIN)]
    (tmp_path / "occupied").write_text("a file, not a folder")
    message = refused(entry(server), tmp_path / "occupied" / "cache")
    assert f"{tmp_path / 'occupied' / 'cache' / NAME} could not be written: Not a directory" in message
    assert "data.cache=FOLDER" in message
    assert server.requests == []


@pytest.mark.parametrize("full", ["part", "tmp"])
def test_a_full_disk_is_refused_with_nothing_half_written(
    server: Loopback, cache: Path, monkeypatch: pytest.MonkeyPatch, full: str
) -> None:
    server.replies["/up"] = [Reply(PLAIN)]
    open_file = Path.open

    def opened(path: Path, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if mode in {"ab", "wb"} and path.name.endswith(full):
            return open_file(Path("/dev/full"), mode, *args, **kwargs)
        return open_file(path, mode, *args, **kwargs)

    monkeypatch.setattr(Path, "open", opened)
    message = refused(entry(server), cache)
    assert f"{cache / NAME} could not be written: the disk is full." in message
    assert not (cache / NAME).exists()
    assert [name for name in leftovers(cache) if not name.endswith(".part.json")] == []
    monkeypatch.undo()
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    assert fetch(entry(server), cache=cache).read_bytes() == PLAIN


def test_a_permission_error_is_refused(server: Loopback, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server.replies["/up"] = [Reply(PLAIN)]

    def denied(*args: Any) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr("klr_bench.datasets.download.os.replace", denied)
    assert "could not be written: Permission denied. Make its folder writable" in refused(entry(server), cache)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        *(({"name": name}, "name: expected a path inside the cache") for name in ("../outside", "/etc/x", "a/../../b")),
        *(({key: None}, f"{key}: expected text, got None") for key in ("name", "sha256")),
    ],
)
def test_entries_that_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(KlrBenchError, match=message):
        parse(FileEntry, {"name": NAME, "sha256": SHA256} | changes)


# -- unknown content -------------------------------------------------------------------------------------


def test_unknown_content_is_taken_as_it_comes_and_remembered(server: Loopback, cache: Path) -> None:
    server.replies["/up"] = [Reply(PACKED[".bz2"])] * 2
    unknown = entry(server, sha256="unknown")
    assert verify(unknown, cache=cache) == "missing"
    path = fetch(unknown, cache=cache)
    assert path.read_bytes() == PLAIN
    assert verify(unknown, cache=cache) == "ok"
    state = path.stat()
    path.write_bytes(OTHER)  # as a failing disk would: size and time stay
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert verify(unknown, cache=cache) == "corrupt"
    assert fetch(unknown, cache=cache).read_bytes() == PLAIN


def test_a_file_without_an_address_is_asked_for_at_the_mirror(tmp_path: Path, cache: Path) -> None:
    message = refused(entry().model_copy(update={"url": None}), cache)
    assert "It has no address upstream. Set KLR_BENCH_MIRROR" in message
    assert "Connect to the network" not in message


# -- several processes -----------------------------------------------------------------------------------

CHILD = """
import sys
from pathlib import Path
from klr_bench.config.models import FileEntry
from klr_bench.datasets.download import fetch
entry = FileEntry.model_validate_json(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
fetch(entry, cache=Path(sys.argv[2]), mirror=None, progress=lambda done, total, what: print(what, file=sys.stderr))
"""


def child(entry: FileEntry, cache: Path, said: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, entry.model_dump_json(), str(cache)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=said,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    return process


def start(process: subprocess.Popen[str]) -> None:
    assert process.stdin
    process.stdin.write("\n")
    process.stdin.flush()


def test_of_several_processes_one_downloads(server: Loopback, cache: Path) -> None:
    gate = threading.Event()
    server.replies["/up"] = [Reply(PLAIN, gate=gate)]
    out, said = os.pipe()
    children = [child(entry(server), cache, said) for _ in range(3)]
    os.close(said)
    for process in children:
        start(process)
    with open(out, "rb", buffering=0) as stream:
        heard = b""
        # The time only guards against hanging: whoever comes late finds the file, and must not ask for it again.
        while heard.count(b": waiting for another process") < 2 and select([stream], [], [], 30.0)[0]:
            heard += stream.read(4096)
        gate.set()
        while piece := stream.read(4096):
            heard += piece
    for process in children:
        process.communicate(timeout=30)
    assert [process.returncode for process in children] == [0, 0, 0], heard.decode()
    assert len(server.requests) == 1, heard.decode()
    assert (cache / NAME).read_bytes() == PLAIN


def test_a_killed_download_is_resumed_by_the_next_run(server: Loopback, cache: Path) -> None:
    gate = threading.Event()
    server.replies["/up"] = [Reply(PLAIN, gate=gate, free=120_000), Reply(PLAIN)]
    out, said = os.pipe()
    process = child(entry(server), cache, said)
    os.close(said)
    start(process)
    part = cache / f"{NAME}.part"
    with open(out) as lines:
        assert any(part.exists() and part.stat().st_size > 90_000 for _ in lines)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=10)
    gate.set()
    kept = part.stat().st_size
    assert not (cache / NAME).exists()
    assert fetch(entry(server), cache=cache).read_bytes() == PLAIN
    assert server.requests[-1].range == f"bytes={kept}-"
    assert server.requests[-1].sent == len(PLAIN) - kept
    assert leftovers(cache) == []


def test_who_waits_for_another_process_says_so(cache: Path) -> None:
    (cache / "set").mkdir(parents=True)
    code = (
        "import sys; from filelock import FileLock\n"
        "with FileLock(sys.argv[1]): print('held', flush=True); sys.stdin.readline()"
    )
    command = [sys.executable, "-c", code, str(cache / f"{NAME}.lock")]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout
    assert holder.stdout.readline() == "held\n"
    said: list[str] = []

    def progress(done: int, total: int | None, description: str) -> None:
        said.append(description)
        (cache / NAME).write_bytes(PLAIN)
        start(holder)

    assert fetch(entry(), cache=cache, progress=progress).read_bytes() == PLAIN
    holder.communicate(timeout=10)
    assert said == [f"{NAME}: waiting for another process"]


# -- the real files --------------------------------------------------------------------------------------


@pytest.mark.mirror("covtype")
def test_covtype_comes_from_the_mirror(mirror: Path, cache: Path) -> None:
    from klr_bench.config import locations as config_files
    from klr_bench.config.datasets import read_dataset

    train = read_dataset("covtype", config_files.folders()).source.train
    assert train is not None
    path = fetch(train, cache=cache, mirror=str(mirror))
    assert path.stat().st_size == 71_183_474
    assert verify(train, cache=cache) == "ok"
