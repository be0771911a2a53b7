"""The page of a run: a server on the loopback, during runs that go on, end and are killed."""

import http.client
import json
import os
import re
import shutil
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
from klr_bench.report import watch
from klr_bench.report.page.html import SHARED, asset
from klr_bench.report.watch import Server, Watched, describe, is_loopback_name, serve_in_background
from klr_bench.results.progress import NAME, Count, Failed, Progress, Running, birth
from tests.report.folders import record, write
from tests.runner.test_interruptions import LEARNERS, Workplace, patiently

ROOT = Path(__file__).parents[2]
HOSTILE = "<script>alert(1)<img src=x onerror=alert(2)>"
"""A name without slashes, which may be that of a data set."""
CONFIG = {
    "repeats": 2,
    "datasets": {"set": {"label": "</td></table></script><script>alert('set')</script>"}},
    "algorithms": {"nc": {"label": "<b onclick=alert(3)>NC", "estimator": {}}},
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


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    rows = [
        record("nc", "", 0, dataset="set", accuracy=0.81),
        record("nc", "", 0, dataset=HOSTILE, accuracy=0.6, key="hostile"),
        record("nc", "", 1, dataset="set", status="error", message="<script>alert(5)</script>"),
    ]
    return write(tmp_path / "demo", rows, CONFIG)


@contextmanager
def served(folder: Path, **options: Any) -> Iterator[Server]:
    with Server(folder, **options) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def server(demo: Path) -> Iterator[Server]:
    with served(demo) as running:
        yield running


def request(url: str, path: str, method: str = "GET", **headers: str) -> tuple[int, http.client.HTTPMessage, str]:
    """Return status, headers and text of an answer."""
    with closing(http.client.HTTPConnection(url.removeprefix("http://").rstrip("/"), timeout=60)) as connection:
        connection.putrequest(method, path, skip_host="Host" in headers)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()


def values(url: str, path: str) -> dict[str, Any]:
    return dict(json.loads(request(url, path)[2]))


def test_answers_are_not_cached_or_sniffed_and_load_own_files_alone(server: Server) -> None:
    kinds = {"/": "text/html", "/state.json": "application/json", "/results.json": "application/json"}
    kinds |= {"/nothing": "text/plain", "/assets/watch.js": "text/javascript", "/assets/watch.css": "text/css"}
    for path, kind in kinds.items():
        _, headers, text = request(server.url, path)
        assert headers["Content-Type"].partition(";")[0] == kind
        assert (headers["Cache-Control"], headers["X-Content-Type-Options"]) == ("no-store", "nosniff")
        assert headers["Content-Security-Policy"].startswith("default-src 'none'")
        assert "Access-Control-Allow-Origin" not in headers
        assert not path.startswith("/assets") or text == asset(Path(path).name)
    _, headers, text = request(server.url, "/")
    addresses = set(re.findall(r'(?:src|href|srcset|action)="([^"]*)"', text))
    assert addresses - {"data:,", "#content"} == {f"/assets/{name}" for name in (*SHARED, "watch.js", "watch.css")}
    assert not re.search(r"https?://|@import|url\(|\son\w+=|<script>|<style>", text)
    policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
    assert policy["frame-ancestors"] == "'none'"
    assert policy["connect-src"] == policy["script-src"] == "'self'"


def test_nothing_else_is_served_and_nothing_can_be_changed(server: Server) -> None:
    for path in ("/records.csv", "/assets/../page.js", "/assets/watch.html", "/%2e%2e/demo/manifest.yaml"):
        assert request(server.url, path)[0] == 404
    for method in ("POST", "PUT", "DELETE", "BREW"):
        assert request(server.url, "/state.json", method)[0] == 501


def test_another_site_whose_name_resolves_to_this_machine_reads_nothing(server: Server) -> None:
    for host in ("evil.example", "127.0.0.1.evil.example", "", "[", "10.0.0.1"):
        for path in ("/", "/state.json", "/results.json"):
            status, _, text = request(server.url, path, Host=host)
            assert (status, "demo" in text) == (403, False)
    for host in ("localhost", "127.0.0.1", "[::1]:8765", "127.0.0.2"):
        assert is_loopback_name(host)


def test_a_malformed_request_is_refused_and_the_server_continues(
    server: Server, capfd: pytest.CaptureFixture[str]
) -> None:
    for content in (b"\x16\x03\x01\x00", b"GET / HTTP/9.9\r\n\r\n", b"GET /" + b"x" * 70000, b""):
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
            connection.sendall(content + b"\r\n\r\n")
            connection.shutdown(socket.SHUT_WR)
            assert not connection.recv(100).startswith(b"HTTP/1.0 200")
    assert request(server.url, "/")[0] == 200
    assert "Traceback" not in capfd.readouterr().err


def test_only_the_loopback_is_served_by_default(server: Server, demo: Path) -> None:
    assert server.is_loopback
    assert server.socket.getsockname()[0] == "127.0.0.1"
    with served(demo, host="0.0.0.0") as open_server:
        assert not open_server.is_loopback
        assert request(f"http://127.0.0.1:{open_server.port}/", "/", Host="my.machine.example")[0] == 200


def test_an_unavailable_address_has_a_message(demo: Path, server: Server, capfd: pytest.CaptureFixture[str]) -> None:
    for host in ("no.such.host.invalid", "203.0.113.1", "a" * 300):
        with pytest.raises(KlrBenchError, match="Expected an address of this machine"):
            Server(demo, host)
    with serve_in_background(demo, server.port) as url:
        assert url == ""
    assert f"port={server.port}: cannot serve here (Address already in use)" in capfd.readouterr().err


def test_hostile_names_stay_text(demo: Path, server: Server) -> None:
    write_json(demo / NAME, LIVE.model_dump())
    html, failures = values(server.url, "/results.json")["html"], values(server.url, "/state.json")["failures"]
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


def test_a_damaged_progress_file_has_a_message_and_the_table_is_there(demo: Path) -> None:
    wrong = json.dumps(LIVE.model_dump() | {"running": [{"what": 3, "started": 1}]})
    for content, message in (("{", "got invalid JSON"), (wrong, "running[0].what")):
        (demo / NAME).write_text(content)
        state = Watched(demo).state()
        assert (state["standing"], message in state["problem"]) == ("unknown", True), state
        assert "81.0" in Watched(demo).results()["html"]


def test_damaged_records_have_a_message_until_they_are_complete(demo: Path) -> None:
    complete, watched = (demo / "records.csv").read_text(), Watched(demo)
    (demo / "records.csv").write_text(complete.replace("0.81", "<i>81</i>"))
    results = watched.results()
    assert (results["html"], "<i>81</i>" in results["message"]) == ("", True)
    assert results["version"] != watched.state()["version"], "so that the page asks again"
    (demo / "records.csv").write_text(complete)
    results = watched.results()
    assert "81.0" in results["html"]
    assert results["version"] == watched.state()["version"]
    (demo / "records.csv").unlink()
    os.mkfifo(demo / "records.csv")
    assert "a named pipe" in watched.results()["message"], "and it is not waited for"


def test_the_page_waits_for_the_first_result_and_fills(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    watched = Watched(folder)
    state = watched.state()
    assert state["sentence"] == "Waiting for a run: klr-bench run experiment=demo"
    write(folder, [], CONFIG)
    assert watched.results()["message"] == "Waiting for the first result."
    versions = [state["version"]]
    for repeat, (accuracy, mean) in enumerate([(0.5, "50.0"), (1.0, "75.0")]):
        write(folder, [record("nc", "", repeat, dataset="set", accuracy=accuracy)], CONFIG)
        versions.append(watched.state()["version"])
        assert mean in watched.results()["html"]
    assert len({*versions}) == 3


def test_reports_are_rare_during_a_run(demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """During a run a new version is announced when its report is due; after the run at once."""
    monkeypatch.setattr(watch, "INTERVAL_S", 3600.0)
    write_json(demo / NAME, LIVE.model_dump())
    watched = Watched(demo)
    first = watched.results()
    records = (demo / "records.csv").read_text()
    shutil.rmtree(demo / "cells")  # which this table contradicts
    (demo / "records.csv").write_text(records.replace("0.81", "0.83"))
    assert watched.state()["version"] == first["version"]
    assert watched.results() == first
    write_json(demo / NAME, LIVE.model_dump() | {"state": "finished"})
    assert watched.state()["version"] != first["version"]
    assert "83.0" in watched.results()["html"]


def test_a_run_is_described() -> None:
    state = describe(LIVE, LIVE.updated + 30)
    assert (state["standing"], state["left"]) == ("running", "about 60 s")
    assert (state["done"], state["failed"], state["total"], state["n_running"]) == (4, 1, 12, 101)
    assert state["running"] == [(f"nc on {HOSTILE}, repeat 1", "95 s")]
    assert "9 of 20 folds and cells. No update for 30 s" in state["sentence"]


ELSEWHERE = LIVE.model_dump() | {"host": "another"}
HERE = {"host": LIVE.host}


@pytest.mark.parametrize(
    ("changes", "after", "standing", "sentence"),
    [
        ({}, 10, "running", "Running for"),
        ({}, 30, "silent", "No update for 30 s from process"),
        (HERE, 30, "running", "No update for 30 s: a long fit may be in progress"),
        (HERE | {"born": 1}, 3, "killed", "Killed after 2 min, within the last 3 s (process"),
        ({"state": "finished"}, 7200, "finished", "Finished after 2 min, 2 h 0 min ago. Run the same command"),
        ({"state": "interrupted", "message": "No space."}, 3, "interrupted", "after 2 min, 3 s ago. No space. Run the"),
    ],
)
def test_the_standing_of_a_run(changes: dict[str, Any], after: float, standing: str, sentence: str) -> None:
    progress = Progress(**(ELSEWHERE | changes))
    state = describe(progress, progress.updated + after)
    assert (state["standing"], sentence in state["sentence"]) == (standing, True), state["sentence"]


def test_mistakes_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, message in (
        (["watch", "experiment=../other"], "watch: expected experiment=<name>, got '../other'."),
        (["watch", "experiment=tiny", "port=65536"], "port: expected a whole number from 0"),
        (["run", "--dry-run", "watch=yes"], "watch: expected true or false, got 'yes'."),
    ):
        assert main(arguments) == 2
        assert message in capsys.readouterr().err


def becomes(url: str, what: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Return the first state that satisfies a condition; fail if none does."""
    states: list[dict[str, Any]] = []

    def happens() -> bool:
        states.append(values(url, "/state.json"))
        return what(states[-1])

    patiently(happens)
    return states[-1]


@pytest.mark.exhaustive
def test_a_run_is_watched_killed_and_continued(tmp_path: Path) -> None:
    learners = {"first": f"{LEARNERS}.Watched", "failing": f"{LEARNERS}.Failing"}
    place = Workplace(tmp_path, {name: {"_target_": target} for name, target in learners.items()})
    watcher = subprocess.Popen(
        [sys.executable, "-m", "klr_bench", "watch", "experiment=tiny"],
        cwd=place.folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # in the background it is ignored
    )
    assert watcher.stdout
    try:
        line = watcher.stdout.readline()
        assert line.startswith(f"{Path('results', 'tiny')} at http://127.0.0.1:")
        url = re.findall(r"http://\S+", line)[0]
        assert becomes(url, bool)["standing"] == "none"
        place.hold(3)
        run = place.start()
        state = becomes(url, lambda state: state.get("done") == 2 and len(state["running"]) >= 1)
        assert (state["standing"], state["total"]) == ("running", 8)
        assert all(re.fullmatch(r"(first|failing) on small, repeat \d", what) for what, _ in state["running"])
        patiently(lambda: "first" in values(url, "/results.json")["html"])
        run.kill()
        run.wait()
        killed = becomes(url, lambda state: state["standing"] != "running")
        assert killed["standing"] == "killed"
        assert f"process {run.pid} on" in killed["sentence"]
        place.release()
        assert "4 of 8 cells are finished (2 by earlier runs), 4 failed" in place.finish(status=1)
        ended = becomes(url, lambda state: state["standing"] == "finished")
        assert (ended["done"], ended["failed"], ended["total"]) == (4, 4, 8)
        assert [status for _, status, _ in ended["failures"]] == ["error"] * 4
        message = r"RuntimeError: this learner is broken \(.*learners\.py:\d+\)"
        assert all(re.fullmatch(message, failure) for _, _, failure in ended["failures"])
        patiently(lambda: "4/4" in values(url, "/results.json")["html"])
        watcher.send_signal(signal.SIGINT)
        assert watcher.wait(60) == 0
        assert "Traceback" not in watcher.stdout.read()
    finally:
        watcher.kill()
        watcher.communicate()


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
        assert becomes(url, lambda state: state["standing"] == "finished")["done"] == 2  # before the page is gone
        assert run.wait(60) == 0
        with pytest.raises(OSError, match="refused"):
            request(url, "/state.json")
    finally:
        run.kill()
        run.communicate()
    output = place.finish("-m", "repeats=1,2", "watch=true")
    addresses = re.findall(r"Watch it at (\S+)", output)
    assert (len(addresses), len({*addresses})) == (2, 1), "the runs of a sweep have one address"
    assert "Watch it" not in place.finish("watch=true", "--dry-run")


@pytest.mark.exhaustive
def test_the_page_ends_with_a_run_that_is_killed(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from klr_bench.report.watch import serve_in_background\n"
        "with serve_in_background(Path(sys.argv[1])) as url: print(url, flush=True); time.sleep(600)"
    )
    run = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert run.stdout
    url = run.stdout.readline().strip()
    assert values(url, "/state.json")["standing"] == "none"
    run.kill()
    run.communicate()

    address = ("127.0.0.1", int(url.rstrip("/").rpartition(":")[2]))
    patiently(lambda: socket.socket().connect_ex(address) != 0)
