"""The page of a run: a real server on the loopback, beside runs that go on, end and are killed."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from klr_bench.cli import main
from klr_bench.errors import KlrBenchError
from klr_bench.files import write_json
from klr_bench.report import watch as watch_module
from klr_bench.report.page.html import SHARED, asset
from klr_bench.report.watch import Server, Watched, describe, is_loopback_name, serve_beside, span
from klr_bench.results.progress import NAME, Count, Failed, Progress, Running, birth
from tests.report.folders import record, write
from tests.runner.test_interruptions import LEARNERS, Workplace, patiently

ROOT = Path(__file__).parents[2]
HOSTILE = "<script>alert(1)<img src=x onerror=alert(2)>"
"""A name without slashes, which may be that of a data set."""
CONFIG = {
    "title": "Demo & co",
    "repeats": 2,
    "datasets": {"set": {"label": "</td></table></script><script>alert('set')</script>"}, HOSTILE: {}},
    "algorithms": {"nc": {"label": "<b onclick=alert(3)>NC", "estimator": {}}},
    "sweep": {},
}
LIVE = Progress(
    experiment="demo",
    state="running",
    host=os.uname().nodename,
    pid=os.getpid(),
    born=birth(os.getpid()),
    started=time.time() - 100,
    updated=time.time(),
    tasks=Count(total=20, done=8, failed=1),
    cells=Count(total=12, done=4, failed=1),
    n_running=101,
    running=[Running(what=f"nc on {HOSTILE}, repeat 1", started=time.time() - 65)],
    failures=[Failed(what=f"nc on {HOSTILE}, repeat 0", status="error", message="<script>alert(4)</script>")],
    left_s=90.0,
)


@contextmanager
def served(folder: Path, **options: Any) -> Iterator[Server]:
    """Serve the page of a folder while the block runs."""
    with Server(folder, **options) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def server(demo: Path) -> Iterator[Server]:
    with served(demo) as found:
        yield found


def ask(
    server: Server | str, path: str, method: str = "GET", **headers: str
) -> tuple[int, http.client.HTTPMessage, str]:
    """Return status, headers and text of an answer; `Host=""` sends no such header."""
    url = server if isinstance(server, str) else server.url
    with closing(http.client.HTTPConnection(url.removeprefix("http://").rstrip("/"), timeout=60)) as connection:
        connection.putrequest(method, path, skip_host="Host" in headers)
        for name, value in headers.items():
            if value:
                connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()


def state(server: Server | str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ask(server, "/state.json")[2])
    return found


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    rows = [record("nc", "", 0, dataset="set", accuracy=0.81), record("nc", "", 0, dataset=HOSTILE, accuracy=0.6)]
    rows += [record("nc", "", 1, dataset="set", status="error", message="<script>alert(5)</script>")]
    for number, row in enumerate(rows):
        row.key = f"k{number}"
    return write(tmp_path / "demo", rows, CONFIG)


def results(server: Server | str) -> dict[str, str]:
    found: dict[str, str] = json.loads(ask(server, "/results.json")[2])
    return found


# What is answered


def test_the_page_asks_for_its_own_files_alone(server: Server) -> None:
    status, headers, text = ask(server, "/")
    assert "81.0" in results(server)["html"]
    assert status == 200
    addresses = set(re.findall(r'(?:src|href|srcset|action)="([^"]*)"', text))
    own = {*SHARED, "watch.js", "watch.css"}
    assert addresses - {"data:,", "#content"} == {f"/assets/{name}" for name in own}
    assert not re.search(r"https?://|@import|url\(|\son\w+=|<script>|<style>", text)
    policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == policy["frame-ancestors"] == "'none'"
    assert policy["connect-src"] == policy["script-src"] == "'self'"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "text/html; charset=utf-8"),
        ("/state.json", "application/json"),
        ("/results.json", "application/json"),
        ("/nothing", "text/plain; charset=utf-8"),
        *((f"/assets/{name}", "text/javascript; charset=utf-8") for name in ("page.js", "watch.js")),
        ("/assets/watch.css", "text/css; charset=utf-8"),
    ],
)
def test_no_answer_is_kept_or_guessed_at(server: Server, path: str, kind: str) -> None:
    _, headers, text = ask(server, path)
    assert headers["Content-Type"] == kind
    assert headers["Cache-Control"] == "no-store"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert "Access-Control-Allow-Origin" not in headers
    assert not path.startswith("/assets") or text == asset(Path(path).name)


def test_nothing_else_is_served_and_nothing_can_be_changed(server: Server) -> None:
    for path in (
        *("/records.csv", "/assets/", "/assets/../page.js", "/assets/watch.html", "/../demo/records.csv", "*", "x"),
        *("/%2e%2e/demo/manifest.yaml", "//etc/passwd", "/results.json/"),
    ):
        assert ask(server, path)[0] == 404
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "BREW"):
        status, _, text = ask(server, "/state.json", method)
        assert status == 501
        assert "demo" not in text


@pytest.mark.parametrize("path", ["/", "/state.json", "/results.json"])
def test_a_site_whose_name_leads_here_reads_nothing(server: Server, path: str) -> None:
    for host in ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "", "[", "10.0.0.1"):
        status, _, text = ask(server, path, Host=host)
        assert status == 403
        assert "demo" not in text


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "127.0.0.2"])
def test_this_machine_reads_it_by_any_of_its_own_names(host: str) -> None:
    assert is_loopback_name(host)
    assert is_loopback_name(f"{host}:8765")


def test_a_request_that_is_none_is_refused_and_the_server_goes_on(
    server: Server, capfd: pytest.CaptureFixture[str]
) -> None:
    for request in (b"\x16\x03\x01\x00", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET /" + b"x" * 70000, b""):
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
            connection.sendall(request + b"\r\n\r\n")
            connection.shutdown(socket.SHUT_WR)
            assert not connection.recv(100).startswith(b"HTTP/1.0 200")
    assert ask(server, "/")[0] == 200
    assert "Traceback" not in capfd.readouterr().err


# Text from elsewhere


def test_hostile_names_stay_text(demo: Path, server: Server) -> None:
    write_json(demo / NAME, LIVE.model_dump())
    html, failures = results(server)["html"], state(server)["failures"]
    assert html.count("<script") == 1, "the data"
    assert not re.search(r"<(img|b)[ >]", html)
    assert "&lt;script&gt;alert(&#39;set&#39;)&lt;/script&gt;" in html
    assert "&lt;script&gt;alert(5)" in html
    assert failures == [[f"nc on {HOSTILE}, repeat 0", "error", "<script>alert(4)</script>"]]


def test_scripts_set_text_as_text() -> None:
    """Only the report, which is escaped when it is made, is set as HTML."""
    setters = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function"
    assert not re.search(setters, asset("watch.js"))
    assert re.findall(setters, asset("page.js")) == ["innerHTML"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        *((b"{", "got no JSON"), (b"[" * 100_000, "got no JSON"), (b"[1]", "expected keys and values")),
        (json.dumps(LIVE.model_dump() | {"pid": -1}).encode(), "pid: expected from 1"),
        (json.dumps(LIVE.model_dump() | {"running": [{"what": 3, "started": 1}]}).encode(), "running[0].what"),
    ],
)
def test_a_broken_progress_file_has_a_message_and_the_table_is_there(demo: Path, content: bytes, message: str) -> None:
    (demo / NAME).write_bytes(content)
    watched = Watched(demo)
    found = watched.state()
    assert (found["standing"], message in found["problem"]) == ("unknown", True), found
    assert "81.0" in watched.results()["html"]


def test_broken_records_have_a_message_until_they_are_whole(demo: Path) -> None:
    whole = (demo / "records.csv").read_text()
    watched = Watched(demo)
    (demo / "records.csv").write_text(whole.replace("0.81", "<i>81</i>"))
    found = watched.results()
    assert (found["html"], "<i>81</i>" in found["message"]) == ("", True)
    assert found["version"] != watched.state()["version"], "so that the page asks again"
    (demo / "records.csv").write_text(whole)
    found = watched.results()
    assert "81.0" in found["html"]
    assert found["version"] == watched.state()["version"]


def test_a_folder_that_is_removed_while_it_is_read_has_a_message(demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def vanish(folder: Path) -> None:
        raise FileNotFoundError(2, "gone", str(folder))

    monkeypatch.setattr("klr_bench.report.watch.experiment_part", vanish)
    assert "FileNotFoundError" in Watched(demo).results()["message"]


def test_a_pipe_in_place_of_the_records_is_not_waited_for(demo: Path) -> None:
    (demo / "records.csv").unlink()
    os.mkfifo(demo / "records.csv")
    assert "a named pipe" in Watched(demo).results()["message"]


def test_records_are_replaced_while_they_are_read(demo: Path) -> None:
    texts = [(demo / "records.csv").read_text(), (demo / "records.csv").read_text().replace("0.81", "0.82")]
    ended = threading.Event()

    def replace() -> None:
        number = 0
        while not ended.is_set():
            number += 1
            (demo / "new").write_text(texts[number % 2])
            (demo / "new").replace(demo / "records.csv")

    writer, watched = threading.Thread(target=replace), Watched(demo)
    writer.start()
    try:
        found = [watched.results()["html"] for _ in range(40)]
    finally:
        ended.set()
        writer.join()
    assert all("81.0" in text or "82.0" in text for text in found)
    assert len({*found}) == 2


# How a run stands


def test_the_page_waits_for_the_first_result_and_fills(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    watched = Watched(folder)
    nothing = watched.state()
    assert nothing["sentence"] == "Waiting for a run: klr-bench run experiment=demo"
    assert watched.results()["message"] == "Waiting for the first result."
    write(folder, [], CONFIG)
    assert watched.results()["message"] == "Waiting for the first result."
    versions = [nothing["version"]]
    for repeat, (accuracy, mean) in enumerate([(0.5, "50.0"), (1.0, "75.0")]):
        write(folder, [record("nc", "", repeat, dataset="set", accuracy=accuracy)], CONFIG)
        versions.append(watched.state()["version"])
        assert mean in watched.results()["html"]
    assert len({*versions}) == 3


def test_tables_are_made_seldom_beside_a_run(demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a run goes on a version is not told before its table is due; when it has ended the last one is made."""
    monkeypatch.setattr(watch_module, "INTERVAL_S", 3600.0)
    write_json(demo / NAME, LIVE.model_dump())
    watched = Watched(demo)
    first = watched.results()
    records = (demo / "records.csv").read_text()
    (demo / "records.csv").write_text(records.replace("0.81", "0.83"))
    assert watched.state()["version"] == first["version"]
    assert watched.results() == first
    write_json(demo / NAME, LIVE.model_dump() | {"state": "finished"})
    assert watched.state()["version"] != first["version"]
    assert "83.0" in watched.results()["html"]


def test_a_run_at_work_in_words() -> None:
    found = describe(LIVE, LIVE.updated + 30)
    assert found["standing"] == "running"
    assert found["numbers"] == {
        "cells done": "4 of 12", "cells failed": "1", "tasks running": "101", "time left": "about 60 s",
    }  # fmt: skip
    assert found["running"] == [(f"nc on {HOSTILE}, repeat 1", "95 s")]
    assert found["more_running"] == 100
    assert "9 of 20 folds and cells. No update for 30 s" in found["sentence"]


ELSEWHERE = LIVE.model_dump() | {"host": "another", "running": [], "failures": [], "cells": Count(failed=1)}
HERE = {"host": LIVE.host}


@pytest.mark.parametrize(
    ("changes", "after", "standing", "said"),
    [
        ({}, 10, "running", "Running for"),
        ({}, 30, "silent", "No update for 30 s from process"),
        (HERE, 30, "running", "No update for 30 s: a fit blocks it"),
        (HERE | {"born": 1}, 3, "killed", "Killed after 2 min, at most 3 s ago"),
        ({"state": "finished"}, 7200, "finished", "Finished after 2 min, 2 h 0 min ago. Run the same command"),
        (
            {"state": "interrupted", "message": "No space."},
            3,
            "interrupted",
            "Stopped after 2 min, 3 s ago. No space. Run the",
        ),
    ],
)
def test_how_a_run_stands(changes: dict[str, Any], after: float, standing: str, said: str) -> None:
    progress = Progress(**(ELSEWHERE | changes))
    found = describe(progress, progress.updated + after)
    assert (found["standing"], said in found["sentence"]) == (standing, True), found["sentence"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-3, "0 s"), (99.4, "99 s"), (100, "2 min"), (5969, "99 min"), (6000, "1 h 40 min"), (172740, "47 h 59 min"),
     (172800, "2 d 0 h"), (1e6, "11 d 13 h")],
)  # fmt: skip
def test_spans_of_time(seconds: float, text: str) -> None:
    assert span(seconds) == text


# The address


@pytest.mark.skipif(sys.platform != "linux", reason="any address of 127/8 is the loopback on Linux alone")
def test_nothing_but_the_loopback_listens(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getfqdn", lambda *_: pytest.fail("a name is looked up in the network"))
    assert server.is_loopback
    assert server.socket.getsockname()[0] == "127.0.0.1"
    assert ask(server, "/")[0] == 200
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.2", server.port), timeout=30)


def test_an_address_that_cannot_be_had_has_a_message(demo: Path, server: Server) -> None:
    with pytest.raises(KlrBenchError, match=rf"port={server.port}: cannot be served \(Address already in use\)"):
        Server(demo, port=server.port)
    for host in ("no.such.host.invalid", "203.0.113.1", "a" * 300, "\udcff"):
        with pytest.raises(KlrBenchError, match="Expected an address of this machine"):
            Server(demo, host)


def test_all_addresses_are_served_only_if_asked_for(demo: Path) -> None:
    with served(demo, host="0.0.0.0") as server:
        assert not server.is_loopback
        assert ask(f"http://127.0.0.1:{server.port}/", "/", Host="my.machine.example")[0] == 200


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["watch"], "watch: expected experiment=<name>, got none."),
        (["watch", "tiny"], "watch: expected experiment=<name>, got 'tiny'."),
        (["watch", "experiment=../other"], "watch: expected experiment=<name>, got '../other'."),
        (["watch", "experiment=tiny", "port=http"], "port: expected a whole number from 0"),
        (["watch", "experiment=tiny", "port=65536"], "port: expected a whole number from 0"),
        (["watch", "experiment=tiny", "open=yes"], "open: expected true or false, got 'yes'."),
        (["watch", "experiment=tiny", "prot=1"], "unknown key 'prot'. Did you mean 'port'?"),
        (["run", "--dry-run", "watch=yes"], "watch: expected true or false, got 'yes'."),
        (["run", "--dry-run", "watch=true", "watch=false"], "watch: expected it once, got 'true' and 'false'."),
        (["run", "--dry-run", "wacth=true"], "unknown key 'wacth'. Did you mean 'watch'?"),
    ],
)
def test_mistakes_on_the_command_line(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


# Beside real runs


@contextmanager
def command(place: Workplace, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str, list[str]]]:
    """Run `klr-bench watch` while the block does; yield the process, the address and the lines up to it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "klr_bench", "watch", "experiment=tiny", *arguments],
        cwd=place.folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # in the background it is ignored
    )
    try:
        assert process.stdout
        line = process.stdout.readline()
        yield process, re.findall(r"http://\S+", line)[0], [line]
    finally:
        process.kill()
        process.communicate()


def becomes(url: str, what: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Return the first state that is as described; fail where none ever is."""
    found: list[dict[str, Any]] = []

    def happens() -> bool:
        found.append(state(url))
        return what(found[-1])

    patiently(happens)
    return found[-1]


@pytest.mark.exhaustive
def test_a_run_is_watched_killed_and_gone_on_with(tmp_path: Path) -> None:
    learners = {"first": f"{LEARNERS}.Watched", "failing": f"{LEARNERS}.Failing"}
    place = Workplace(tmp_path, {name: {"_target_": target} for name, target in learners.items()})
    with command(place) as (watcher, url, lines):
        assert lines[0].startswith(f"{Path('results', 'tiny')} at http://127.0.0.1:")
        assert becomes(url, bool)["standing"] == "none"
        place.hold(3)
        run = place.start()
        found = becomes(url, lambda state: state.get("done") == 2 and len(state["running"]) >= 1)
        assert found["standing"] == "running"
        assert found["numbers"]["cells done"] == "2 of 8"
        assert all(re.fullmatch(r"(first|failing) on small, repeat \d", what) for what, _ in found["running"])
        patiently(lambda: "50" in results(url)["html"] or "first" in results(url)["html"])
        run.kill()
        run.wait()
        killed = becomes(url, lambda state: state["standing"] != "running")
        assert killed["standing"] == "killed"
        assert f"process {run.pid} on" in killed["sentence"]
        place.release()
        output = place.finish(status=1)
        assert "4 of 8 cells are done (2 were there already), 4 failed" in output
        ended = becomes(url, lambda state: state["standing"] == "finished")
        assert (ended["done"], ended["failed"], ended["total"]) == (4, 4, 8)
        assert [failure[1:] for failure in ended["failures"]] == [["error", "RuntimeError: this learner is broken"]] * 4
        patiently(lambda: "4 of 4" in results(url)["html"] or "4/4" in results(url)["html"])
        watcher.send_signal(signal.SIGINT)
        assert watcher.wait(60) == 0
        assert watcher.stdout
        assert "Traceback" not in watcher.stdout.read()


@pytest.mark.exhaustive
def test_a_run_serves_its_own_page_and_ends_it(tmp_path: Path) -> None:
    place = Workplace(tmp_path, {"first": {"_target_": f"{LEARNERS}.Watched"}})
    place.hold(2)
    run = place.start("watch=true", "repeats=2")
    try:
        assert run.stdout
        url = next(line for line in run.stdout if line.startswith("Watch it at ")).split()[-1]
        becomes(url, lambda state: state["standing"] == "running" and state["done"] == 1)
        place.release()
        ended = becomes(url, lambda state: state["standing"] == "finished")  # before the page is gone
        assert ended["done"] == 2
        assert run.wait(60) == 0
        with pytest.raises(OSError, match="refused"):
            ask(url, "/state.json")
    finally:
        run.kill()
        run.communicate()


@pytest.mark.exhaustive
def test_the_runs_of_a_sweep_are_watched_at_one_address(tmp_path: Path) -> None:
    place = Workplace(tmp_path, {"first": {"_target_": f"{LEARNERS}.Watched"}})
    output = place.finish("-m", "repeats=1,2", "watch=true")
    addresses = re.findall(r"Watch it at (\S+)", output)
    assert len(addresses) == 2
    assert len({*addresses}) == 1


def test_a_dry_run_is_not_watched(tmp_path: Path) -> None:
    output = Workplace(tmp_path, {"first": {"_target_": f"{LEARNERS}.Watched"}}).finish("watch=true", "--dry-run")
    assert "would run" in output
    assert "Watch it" not in output


@pytest.mark.exhaustive
def test_the_page_ends_with_a_run_that_is_killed(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from klr_bench.report.watch import serve_beside\n"
        "with serve_beside(Path(sys.argv[1])) as url: print(url, flush=True); time.sleep(600)"
    )
    run = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert run.stdout
    url = run.stdout.readline().strip()
    assert state(url)["standing"] == "none"
    run.kill()
    run.communicate()

    def gone() -> bool:
        try:
            ask(url, "/nothing")
        except OSError:
            return True
        return False

    patiently(gone)


def test_a_page_that_cannot_be_served_leaves_the_block_alone(
    tmp_path: Path, server: Server, capfd: pytest.CaptureFixture[str]
) -> None:
    with serve_beside(tmp_path, server.port) as url:
        assert url == ""
    assert f"port={server.port}: cannot be served" in capfd.readouterr().err
