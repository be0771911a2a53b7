"""manifest.yaml as a run writes it is what a report reads."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from klr_bench.config.locations import config_dir, names
from klr_bench.config.models import RunConfig
from klr_bench.errors import KlrBenchError
from klr_bench.parsing import parse
from klr_bench.report.manifest import Manifest, read_manifest
from klr_bench.results.store import Store
from klr_bench.runner.manifest import manifest
from tests.config.composing import composed
from tests.report.folders import configuration

METRIC = """\
from klr_bench.metrics.metric import Metric

METRIC = Metric("hits", "Hits", unit="count", better="higher", whole=True, of=lambda predictions: 1.0)
"""


def written(folder: Path, config: RunConfig) -> Manifest:
    """Write the manifest of a run and read it as a report does."""
    store = Store(folder)
    store.write_manifest(manifest(config, 1, store.read_manifest()))
    return read_manifest(folder)


@pytest.mark.parametrize("experiment", names("experiment", [config_dir()]))
def test_a_report_reads_the_manifest_of_each_experiment(experiment: str, tmp_path: Path) -> None:
    own_file = ["data.path=mine.csv"] if experiment in ("own_file", "stream_own") else []
    config = composed(f"experiment={experiment}", *own_file)
    read = written(tmp_path, config)
    assert (read.experiment, list(read.config.datasets)) == (config.name, list(config.datasets))
    for name in ("title", "sweep", "metrics", "figures", "against"):
        assert getattr(read.config, name) == getattr(config, name)
    content = yaml.safe_load((tmp_path / "manifest.yaml").read_text(encoding="utf-8"))
    assert set(content) == set(Manifest.model_fields), "a report knows the keys that a run writes, and no others"


def test_a_metric_of_the_user_is_described_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    metric_file = tmp_path / "configs" / "metric" / "hits.py"
    metric_file.parent.mkdir(parents=True)
    metric_file.write_text(METRIC, encoding="utf-8")
    folder = tmp_path / "results" / "quickstart"
    config = composed("experiment=quickstart", "metrics=[accuracy,hits]")
    own_metric = written(folder, config).metrics["hits"]
    assert (own_metric.title, own_metric.unit, own_metric.better, own_metric.whole) == ("Hits", "count", "higher", True)
    assert "hits" in written(folder, composed("experiment=quickstart")).metrics, "of the cells of the first run"
    path = folder / "manifest.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("name: hits", "name: his"), encoding="utf-8")
    with pytest.raises(KlrBenchError, match=r"own_metrics\.hits\.name: expected 'hits', got 'his'\."):
        read_manifest(folder)


def test_whether_each_repeat_splits_a_data_set_again() -> None:
    splits: list[tuple[Any, bool]] = [
        *(({"test_size": 0.2, "stratify": True}, True), ({"folds": 5}, True), ({"n_test": 10}, True)),
        *(({"official": True, "n_train": 10}, False), ({"n_train": 10}, False), ({"stream": True}, False)),
    ]
    for split, resampled in splits:
        datasets = {"moons": {"split": split}, "file": {"source": {"format": "file"}, "split": split}}
        manifest = parse(Manifest, {"experiment": "demo", "config": configuration({"datasets": datasets})})
        assert manifest.resampled("moons") is resampled
        assert manifest.resampled("mine-1a2b3c") is resampled, "records have another name of the user's own file"
    assert parse(Manifest, {"experiment": "demo", "config": configuration({})}).resampled("moons") is None
