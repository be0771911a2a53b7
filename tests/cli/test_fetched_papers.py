"""Published numbers on data that a mirror may lack get verdicts once the data are fetched.

The server is on the loopback interface and has small files of the kind of the published ones.
"""

import json
import lzma
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from klr_bench.cli import main
from klr_bench.config.datasets import read_dataset
from klr_bench.config.locations import config_dir, find, read
from klr_bench.config.needs import datasets_of, needs_of, reference_times
from klr_bench.metrics.labels import METRICS
from klr_bench.report.papers.match import Match
from klr_bench.report.papers.reading import experiments_of, find_papers, read_paper
from klr_bench.report.papers.reproduction import Reproduction
from klr_bench.report.papers.verdicts import NotCompared
from klr_bench.yaml_file import dump_yaml
from tests.cover import usually
from tests.datasets.server import Reply, Server
from tests.report.folders import REFERENCE

SHIPPED = (config_dir(),)
PAPERS = [name for name in find_papers("all") if experiments_of(name)]
EVERY = {
    name: read_dataset(name, SHIPPED)
    for name in {
        data for paper in PAPERS for experiment in experiments_of(paper) for data in datasets_of(experiment, SHIPPED)
    }
}
FETCHED = {
    name: dataset for name, dataset in EVERY.items() if any(file.sha256 == "unknown" for file in dataset.files())
}
"""Data sets of the papers whose files have not been available."""
EXPERIMENTS = {
    paper: [experiment for experiment in experiments_of(paper) if FETCHED.keys() & {*datasets_of(experiment, SHIPPED)}]
    for paper in PAPERS
}
SPLITS = {
    "epsilon_50k": {"official": True, "n_train": 40},
    "infinite_mnist": {"n_test": 10, "n_train": 40, "equal_classes": True},
    "url_days": {"runs": [[20, 4]]},
    "url_day0_day1": {"runs": [[30, 1], [20, 1]]},
}
"""Splits with absolute numbers of rows, for the small files."""
ROWS = 80


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


def small_file(rows: int, columns: int, labels: tuple[int, int], seed: int) -> bytes:
    """Return a LIBSVM file with two classes that differ in the first features."""
    random = np.random.default_rng(seed)
    lines = []
    for row in range(rows):
        positive = row % 2
        values = np.round(random.uniform(0.1, 1.0, columns) + positive * (np.arange(columns) < 3), 3)
        lines.append(" ".join([str(labels[positive]), *(f"{i}:{value}" for i, value in enumerate(values, 1))]))
    return ("\n".join(lines) + "\n").encode()


def small_source(name: str, server: Server) -> dict[str, Any]:
    """Put small files of a source on the server; return the source with their addresses and size.

    The files are compressed by xz, although some addresses end in .bz2, as if the upstream server had replaced them.
    """
    source = read(find("source", name, SHIPPED))
    columns = 12
    labels = (3, 8) if name == "mnist8m" else (-1, 1)
    parts = [part for part in ("train", "test") if part in source]
    for seed, part in enumerate(parts):
        path = f"/{source[part]['name']}"
        content = small_file(ROWS // len(parts), columns, labels, seed)
        server.replies[f"{path}.xz"] = [Reply(lzma.compress(content))]
        source[part] = source[part] | {"url": f"{server.url}{path}.{'bz2' if name != 'mnist8m' else 'xz'}"}
    return source | {"n_samples": ROWS, "n_features": columns}


def overrides(experiment: str, server: Server) -> Iterator[str]:
    """Yield the keys that replace the data of an experiment by small files."""
    for name in datasets_of(experiment, SHIPPED):
        source = FETCHED[name].source.name
        assert source
        yield f"datasets.{name}.source={flow(small_source(source, server))}"
        if name in SPLITS:
            yield f"datasets.{name}.split={flow(SPLITS[name])}"
        if FETCHED[name].derive:
            yield f"datasets.{name}.derive.n_samples=50"
            yield f"datasets.{name}.n_samples=50"


def flow(value: Any) -> str:
    """Return a value in Hydra's grammar, in which keys have no quotes."""
    return re.sub(r'"(\w+)": ', r"\1: ", json.dumps(value))


def on_fetched(matches: list[Match]) -> list[Match]:
    """Return the numbers on fetched data, without times, which are never compared."""
    return [
        match
        for match in matches
        if match.printed.dataset in FETCHED
        and not (match.printed.algorithm and METRICS[match.printed.metric].unit == "s")
    ]


def test_each_data_set_of_a_table_has_an_experiment() -> None:
    numbers = [number for paper in PAPERS for number in Reproduction(paper, find_papers(paper)[paper], REFERENCE).lines]
    assert {number.dataset for number in numbers} <= {*EVERY}


def test_the_time_of_each_experiment_is_measured_or_estimated() -> None:
    for paper in PAPERS:
        estimated = read_paper(find_papers(paper)[paper], SHIPPED).estimated_hours
        assert {*experiments_of(paper)} - {*reference_times()} == {*estimated}


def test_a_paper_needs_its_files_once(capsys: pytest.CaptureFixture[str]) -> None:
    alone, both = (needs_of(names, SHIPPED) for names in (["cw_epsilon"], ["cw_epsilon", "cw_epsilon50k_real"]))
    assert alone.download == both.download == sum(file.megabytes[0] for file in FETCHED["epsilon"].files())
    assert needs_of(["sbcw_astroph"], SHIPPED).size() == "astro_ph from a mirror"
    assert main(["list", "papers"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "h estimated (cw_epsilon, " in text
    assert "rcv1_subset and astro_ph and url from a mirror; about " in text


def test_a_paper_leaves_out_what_no_source_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KLR_BENCH_MIRROR", raising=False)
    monkeypatch.setattr("klr_bench.report.papers.reading.experiments_of", lambda _: ["sbcw_astroph", "quickstart"])
    words = ["repeats=1", "parallel=serial", "data.cache=cache", "algorithm=[nc]", "sweep=null"]
    assert main(["run", "--quiet", "paper=qin2011", *words]) == 1
    assert [path.parent.name for path in Path("results").glob("*/records.csv")] == ["quickstart"]
    error = capsys.readouterr().err
    assert error.endswith("Left out:\n  sbcw_astroph: The data file astro-ph/astro-ph.train is not available.\n")


@pytest.mark.parametrize("paper", usually([paper for paper in PAPERS if EXPERIMENTS[paper]], ["zhang2012aaai"]))
def test_a_fetched_data_set_gives_its_numbers_a_verdict(
    paper: str, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = find_papers(paper)[paper]
    before = on_fetched(Reproduction(paper, folder, REFERENCE).matches)
    assert before
    assert {match.not_compared for match in before} <= {NotCompared.NOT_RUN, NotCompared.OTHER_DATA}
    for match in before:
        assert "klr-bench run" in match.reason, match.printed
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KLR_BENCH_MIRROR", raising=False)
    for name in EXPERIMENTS[paper]:
        words = ["repeats=1", "parallel=serial", "data.cache=cache", *overrides(name, server)]
        assert main(["run", "--quiet", f"experiment={name}", *words]) == 0
        manifest = Path("results", name, "manifest.yaml")  # small files need other settings; count these as the shipped
        content = yaml.safe_load(manifest.read_text(encoding="utf-8"))
        manifest.write_text(dump_yaml(content | {"changes": []}), encoding="utf-8")
    assert main(["report", f"paper={paper}", "format=csv"]) == 0
    after = on_fetched(Reproduction(paper, folder, Path("results")).matches)
    assert len(after) == len(before)
    assert [match.printed for match in after if match.not_compared] == []
