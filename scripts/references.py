"""Make the references again: real runs of every experiment, whose records and tables are kept in results/reference.

    scripts/references [NAME...] [--list] [--anew] [--busy]

NAME    an experiment, a paper (all experiments of its tables, figures and claims), benchmark (all its parts), or one
        part, such as benchmark/floor; without a name everything that results/reference holds, the quickest first
--list  say what there is to do and how long each took the last time, and do nothing
--anew  forget that they are done, and make them with the commit that is checked out now
--busy  run although other processes use this machine; reports then name the share that they had

Everything runs in a clone in build/references.  A reference is made with the commit that is checked out when it begins,
which its manifest names, whatever is edited here meanwhile; one experiment or one paper may be made alone.  A run can
be stopped at any time: the same command goes on where it was, with that commit.  A reference is replaced in
results/reference as soon as it is complete.  Data come
from the mirror or are fetched, into data/ of this checkout.  The part benchmark/peers measures the packages that are
installed: first .venv/bin/python -m pip install lightgbm skglm.
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
from pathlib import Path

import pandas as pd
import yaml

from klr_bench.config.locations import config_dir
from klr_bench.report.papers.reading import experiments_of, paper_files

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "results" / "reference"
WORK = ROOT / "build" / "references"
CLONE, DONE = WORK / "checkout", WORK / "done"
RESULTS = CLONE / "results"
TIMES = KEPT / "times.csv"
"""Seconds that each reference took, in all, with cross-validation and on how many cores; written by this script."""
PART = "benchmark/"
IDLE = 0.3
"""Load (processes at work, averaged over a minute) above which a machine is not idle."""
TABLES = ("records", "traces", "reliability", "rows")


def names_of(wanted: Sequence[str], seconds: Mapping[str, float]) -> list[str]:
    """Return the references that are asked for, the quickest first.  Raises ValueError for a name that is none."""
    files = sorted((ROOT / "scripts" / "benchmark").glob("*.py"))
    parts = [f"{PART}{path.stem}" for path in files if path.stem not in ("__main__", "timing")]
    experiments = sorted(path.parent.name for path in KEPT.glob("*/manifest.yaml"))
    papers = {name: experiments_of(name) for name in paper_files([config_dir()])}
    groups = {"benchmark": parts} | {name: [one for one in of if one in experiments] for name, of in papers.items()}
    known = {path.stem for path in (config_dir() / "experiment").glob("*.yaml")} | {*parts}
    found: dict[str, None] = {}
    for name in wanted or [*experiments, *parts]:
        if name not in known and name not in groups:
            message = f"expected experiments, papers, benchmark or its parts, got {name!r}; --list names them"
            raise ValueError(message)
        found |= dict.fromkeys(groups.get(name, [name]))
    return sorted(found, key=lambda name: (name.startswith(PART), seconds.get(name, 0.0), name))


def times() -> dict[str, float]:
    """Return the seconds that references took; of one that this script has not made, what its records tell."""
    found = {}
    for path in KEPT.glob("*/records.csv"):
        columns = pd.read_csv(path, usecols=lambda name: name in ("fit_time_s", "predict_time_s"))
        found[path.parent.name] = columns.sum().sum() / (os.cpu_count() or 1)
    if TIMES.exists():
        with TIMES.open(encoding="utf-8") as file:
            found |= {row["reference"]: float(row["seconds"]) for row in csv.DictReader(file)}
    return found


def prepare(commit: str) -> None:
    """Check a commit of this repository out in the clone, which is made if there is none."""
    if not CLONE.exists():
        half = CLONE.with_name("half")
        shutil.rmtree(half, ignore_errors=True)
        half.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(half)], check=True)
        (ROOT / "data").mkdir(exist_ok=True)
        (half / "data").symlink_to(ROOT / "data")
        half.rename(CLONE)
    if commit_of(CLONE) != commit:
        subprocess.run(["git", "-C", str(CLONE), "fetch", "--quiet", str(ROOT), commit], check=True)
        subprocess.run(["git", "-C", str(CLONE), "checkout", "--quiet", "--detach", commit], check=True)


def forget(names: Sequence[str]) -> None:
    """Remove what is known of references and their results in the clone, so that they are made again."""
    for name in names:
        state_file(name).unlink(missing_ok=True)
        if not name.startswith(PART):
            shutil.rmtree(RESULTS / name, ignore_errors=True)


def state_file(name: str) -> Path:
    """Return the file that says with which commit, how long, and whether to its end a reference has been made."""
    return DONE / f"{name.replace('/', '--')}.json"


def commit_of(folder: Path) -> str:
    """Return the commit that is checked out in a folder."""
    done = subprocess.run(["git", "-C", str(folder), "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def run(name: str) -> bool:
    """Run an experiment, or a part of the benchmark; say whether it is complete."""
    if name.startswith(PART):
        part = name.removeprefix(PART)
        return called("scripts/benchmark", part)
    complete = called("-m", "klr_bench", "run", *words_of(name))
    return called("-m", "klr_bench", "report", f"experiment={name}", "format=md,tex,csv") and complete


def words_of(name: str) -> list[str]:
    """Return what the run of an experiment is asked for: the same as that of its reference, if there is one."""
    path = KEPT / name / "manifest.yaml"
    words = yaml.safe_load(path.read_text("utf-8")).get("command") if path.exists() else None
    return words or [f"experiment={name}"]


def called(*arguments: str) -> bool:
    """Call the clone's Python code in the clone; say whether it ended well."""
    environment = {**os.environ, "PYTHONPATH": str(CLONE)}
    return subprocess.run([sys.executable, *arguments], cwd=CLONE, env=environment, check=False).returncode == 0


def keep(name: str, seconds: float) -> None:
    """Put a reference in its place in results/reference, and its seconds into times.csv."""
    if name.startswith(PART):
        (KEPT / "benchmark").mkdir(exist_ok=True)
        made = RESULTS / "benchmark"
        for file in (made / "machine.csv", *made.glob(f"{name.removeprefix(PART)}.*")):
            shutil.copy(file, KEPT / "benchmark")
    else:
        new, old = KEPT / f".{name}.new", KEPT / f".{name}.old"
        for folder in (new, old):
            shutil.rmtree(folder, ignore_errors=True)
        new.mkdir()
        shutil.copy(RESULTS / name / "manifest.yaml", new)
        for table in TABLES:
            if (RESULTS / name / f"{table}.csv").exists():
                shutil.copy(RESULTS / name / f"{table}.csv", new)
        shutil.copytree(RESULTS / name / "report", new / "report")
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
        csv.writer(file, lineterminator="\n").writerows([header, *(rows[one] for one in sorted(rows))])


def done() -> dict[str, float]:
    """Return the seconds of the references that are complete."""
    states = {path.stem.replace("--", "/"): json.loads(path.read_text("utf-8")) for path in DONE.glob("*.json")}
    return {name: state["seconds"] for name, state in states.items() if state["complete"]}


def make(name: str) -> float | None:
    """Run a reference, or go on with it; return the seconds that it took in all, None where it is not complete."""
    path = state_file(name)
    state = json.loads(path.read_text("utf-8")) if path.exists() else {}
    before, commit = state.get("seconds", 0.0), state.get("commit") or commit_of(ROOT)
    prepare(commit)
    DONE.mkdir(exist_ok=True)
    print(f"{name}: made with commit {commit[:10]}.", flush=True)
    path.write_text(json.dumps({"commit": commit, "seconds": before, "complete": False}), "utf-8")
    started, complete = time.monotonic(), False
    try:
        complete = run(name)
        if complete:
            keep(name, before + time.monotonic() - started)
    finally:
        seconds = before + time.monotonic() - started
        path.write_text(json.dumps({"commit": commit, "seconds": seconds, "complete": complete}), "utf-8")
    return seconds if complete else None


def main() -> int:
    """Make references; return 1 where one of them is incomplete."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    for flag in ("--list", "--anew", "--busy"):
        parser.add_argument(flag, action="store_true")
    asked = parser.parse_args()
    os.chdir(ROOT)  # elsewhere a folder configs/ would count as the user's own
    try:
        seconds = times()
        names = names_of(asked.names, seconds)
    except ValueError as error:
        parser.error(str(error))
    if asked.anew and not asked.list:
        forget(names)
    finished = {} if asked.anew else done()
    for name in names if asked.list else ():
        print(f"{'done' if name in finished else 'to do':6} {name:26} {seconds.get(name, 0.0) / 60:7.1f} min")
    left = [name for name in names if name not in finished]
    print(f"{len(left)} of {len(names)} to do; they took {sum(seconds.get(name, 0.0) for name in left) / 3600:.1f} h.")
    if asked.list or not left:
        return 0
    if os.getloadavg()[0] > IDLE and not asked.busy:
        parser.error(f"expected an idle machine, got a load of {os.getloadavg()[0]:.1f}; wait, or use --busy")
    failed = []
    for number, name in enumerate(left, start=1):
        print(f"[{number}/{len(left)}] {name}", flush=True)
        taken = make(name)
        if taken is None:
            failed.append(name)
        else:
            print(f"[{number}/{len(left)}] {name}: {taken / 60:.1f} min", flush=True)
    subprocess.run([sys.executable, "scripts/tables"], cwd=ROOT, check=True)
    if failed:
        print(f"Not complete, and left as they were: {', '.join(failed)}. The same command tries them again.")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("\nStopped; the same command goes on.")
