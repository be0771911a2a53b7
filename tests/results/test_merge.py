"""Tests of merging: shards, cells that occur twice, and conflicts."""

import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from klr_bench.cli import main
from klr_bench.config.models import RunConfig
from klr_bench.errors import KlrBenchError
from klr_bench.files import read_checked_json, write_checked_json
from klr_bench.report.load import read_results
from klr_bench.results import archive as archives
from klr_bench.results.merge import MACHINE_METRICS, merge
from klr_bench.results.store import Store
from tests.attack.promise import files_in
from tests.config.composing import altered
from tests.results.test_store import record, write
from tests.runner import small
from tests.runner.small import NC, algorithm, small_config

"""Results folder written when keys still depended on the names of metrics."""
TIMES = [*MACHINE_METRICS, "host", "cpu"]


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> RunConfig:
    algorithms = {"nc": NC | {"grid": {"R": [1.0, 100.0]}}, "oskl": algorithm("klr_bench.OSKL")}
    return small_config(tmp_path_factory.mktemp("config"), repeats=3, algorithms=algorithms, sweep={})


def run(config: RunConfig, folder: Path, **changes: object) -> Path:
    small.run(altered(config, results_dir=str(folder), **changes))
    return folder


@pytest.fixture(scope="module")
def whole(config: RunConfig) -> Path:
    """Return the results of a complete run, which tests must not modify."""
    return run(config, Path(config.results_dir))


def changed_copy(whole: Path, folder: Path, changes: dict[str, Any], **metrics: float) -> str:
    """Copy results, modify the first cell of the copy, and return its key."""
    path = sorted((Path(shutil.copytree(whole, folder)) / "tiny" / "cells").glob("*.json"))[0]
    content = read_checked_json(path)
    content["record"] |= changes
    content["record"]["metrics"] |= metrics
    write_checked_json(path, content)
    return path.stem


def records(folder: Path) -> pd.DataFrame:
    found = pd.read_csv(folder / "tiny" / "records.csv")
    return found.drop(columns=[name for name in TIMES if name in found])


def test_merged_shards_equal_a_run_without_shards(whole: Path, config: RunConfig, tmp_path: Path) -> None:
    shards = [run(config, tmp_path / f"shard{k}", shard=f"{k}/4") for k in (1, 2, 3, 4)]
    assert [len(records(shard)) for shard in shards] == [2, 2, 1, 1]
    (merged,) = merge(shards, tmp_path / "all")
    assert (merged.n_new, merged.n_known, merged.conflicts) == (6, 0, [])
    pd.testing.assert_frame_equal(records(tmp_path / "all"), records(whole))
    ours, theirs = (
        {path.name for path in (folder / "tiny/selections").glob("*/*")} for folder in (tmp_path / "all", whole)
    )
    assert ours == theirs
    again = merge([whole, tmp_path / "shard1" / "tiny"], tmp_path / "all")
    assert [(merged.n_new, merged.n_known, merged.conflicts) for merged in again] == [(0, 8, [])]


def test_parts_with_different_algorithms_have_all_labels(whole: Path, config: RunConfig, tmp_path: Path) -> None:
    parts = [run(config, tmp_path / name, algorithms={name: config.algorithms[name]}) for name in ("nc", "oskl")]
    merge(parts, tmp_path / "all")
    assert main(["report", "experiment=tiny", f"results_dir={tmp_path / 'all'}"]) == 0
    assert set(records(tmp_path / "all")["algorithm"]) == {"nc", "oskl"}
    manifest = Store(tmp_path / "all" / "tiny").read_manifest()
    assert set(manifest["labels"]["algorithms"]) == set(manifest["config"]["algorithms"]) == {"nc", "oskl"}


def test_a_difference_is_a_conflict_and_the_first_result_counts(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed_copy(whole, tmp_path / "slower", {}, fit_time_s=99.0, pass_time_s=98.0)
    assert merge([whole, tmp_path / "slower"], tmp_path / "all")[0].conflicts == []
    key = changed_copy(whole, tmp_path / "other", {}, accuracy=0.5)
    (merged,) = merge([tmp_path / "other"], tmp_path / "all")
    (conflict,) = merged.conflicts
    assert f"{key}.json" in conflict
    assert "accuracy" in conflict
    pd.testing.assert_frame_equal(records(tmp_path / "all"), records(whole))
    assert main(["merge", str(tmp_path / "other"), f"into={tmp_path / 'all'}"]) == 1
    assert "accuracy" in capsys.readouterr().out


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("part", [["nc"], ["nc", "oskl"]])
def test_other_settings_are_a_conflict_and_the_first_count(
    whole: Path, config: RunConfig, tmp_path: Path, part: list[str], order: int, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = {"kernel": altered(config.kernel, percentile=5.0), "repeats": 1, "results_dir": str(tmp_path / "other")}
    algorithms = {name: config.algorithms[name] for name in part}
    small.run(altered(config, algorithms=algorithms, **changes), overrides=["kernel.percentile=5.0"])
    sources = [str(whole), str(tmp_path / "other")][::order]
    assert main(["merge", *sources, f"into={tmp_path / 'all'}"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    names = ", ".join(f"{name} on small" for name in part)
    assert f"other settings, code or versions than before, so these cells are not listed: {names}" in said
    assert "cells of older configurations are omitted" in said
    n_repeats = {name: 1 if name in part and order < 0 else 3 for name in config.algorithms}
    assert read_results(tmp_path / "all" / "tiny").records.algorithm.value_counts().to_dict() == n_repeats
    assert Store(tmp_path / "all" / "tiny").read_manifest()["changes"] == ["kernel.percentile=5.0"]


def test_a_run_of_tables_beside_others_is_named(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = Path(shutil.copytree(whole, tmp_path / "both"))
    shutil.copytree(both / "tiny", both / "tables", ignore=shutil.ignore_patterns("cells"))
    assert main(["merge", str(both), f"into={tmp_path / 'all'}"]) == 0
    assert f"{both / 'tables'}: not merged, because it has only tables; merge it into" in capsys.readouterr().err


@pytest.mark.parametrize("into", ["all", "all.csv", "all.zip"])
def test_empty_shards_are_skipped(
    whole: Path, config: RunConfig, tmp_path: Path, into: str, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = [run(config, tmp_path / f"shard{k}", shard=f"{k}/8") for k in (7, 8)]
    killed = tmp_path / "killed" / "tiny"
    killed.mkdir(parents=True)
    shutil.copy(empty[0] / "tiny" / "manifest.yaml", killed)
    sources = [*map(str, empty), str(whole), str(killed.parent)]
    assert main(["merge", *sources, f"into={tmp_path / into}"]) == 0
    assert capsys.readouterr().err.count("not merged, because no cell has been computed there") == 3
    if into == "all":
        pd.testing.assert_frame_equal(records(tmp_path / "all"), records(whole))
    assert main(["merge", *map(str, empty), f"into={tmp_path / f'none-{into}'}"]) == 2
    assert "no cell has been computed in any of them" in capsys.readouterr().err
    assert not (tmp_path / f"none-{into}").exists()


def test_an_archive_can_be_read(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, (place, source) in enumerate([(whole / "tiny", "."), (whole, "tiny"), (whole, "."), (whole, "tiny/.")]):
        monkeypatch.chdir(place)
        archive = tmp_path / f"{number}.zip"
        assert main(["merge", source, f"into={archive}"]) == 0
        assert main(["report", "experiment=tiny", f"results_dir={archive}", f"output={tmp_path / 'report'}"]) == 0
    size = sum((whole / "tiny" / name).stat().st_size for name in archives.FILES if (whole / "tiny" / name).exists())
    monkeypatch.setattr(archives, "LARGEST", size - 1)
    assert main(["merge", str(whole), f"into={tmp_path / 'large.zip'}"]) == 2
    assert f"expected runs of at most {size - 1:,} bytes in total, got {size:,}" in capsys.readouterr().err
    assert not (tmp_path / "large.zip").exists()


def test_a_finished_cell_replaces_a_failed_one(whole: Path, tmp_path: Path) -> None:
    changed_copy(whole, tmp_path / "first", {"status": "killed", "message": "by hand", "metrics": {}})
    (merged,) = merge([tmp_path / "first", whole], tmp_path / "all")
    assert merged.conflicts == []
    pd.testing.assert_frame_equal(records(tmp_path / "all"), records(whole), check_dtype=False)


def test_invalid_sources_are_refused_before_anything_is_written(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(KlrBenchError, match="nowhere: expected a results folder"):
        merge([whole, tmp_path / "nowhere"], tmp_path / "all")
    with pytest.raises(KlrBenchError, match="cannot be merged into itself"):
        merge([whole], whole)
    for words, message in ((["merge", str(whole)], "merge"), (["merge", "x", "to=y"], "unknown key")):
        assert main(words) == 2
        assert message in capsys.readouterr().err
    assert not (tmp_path / "all").exists()


def test_damaged_cells_and_scores_are_conflicts(whole: Path, tmp_path: Path) -> None:
    source = Path(shutil.copytree(whole, tmp_path / "source")) / "tiny"
    first, second, *_ = sorted((source / "cells").glob("*.json"))
    first.write_text("{")
    second.write_text(second.read_text().replace('"accuracy": 0.', '"accuracy": 0.1', 1))
    scores = sorted((source / "selections").glob("*/*.json"))
    scores[0].write_text(scores[0].read_text().replace("0.", "1.", 1))
    (merged,) = merge([source], tmp_path / "all")
    assert merged.n_new == 4
    assert len(merged.conflicts) == 3
    assert all("cannot be read" in conflict for conflict in merged.conflicts)
    assert len(list((tmp_path / "all/tiny/selections").glob("*/*.json"))) == len(scores) - 1


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ({"experiment": "../../outside"}, "experiment: expected a name without slashes"),
        ({"labels": "hello"}, "labels: expected keys and values, got 'hello'"),
        ({"config": [1]}, "config: expected keys and values, got [1]"),
    ],
)
@pytest.mark.parametrize("where", ["source", "into"])
def test_an_invalid_manifest_is_refused_before_anything_is_written(
    tmp_path: Path, manifest: dict[str, object], message: str, where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("source", "into"):
        folder = tmp_path / "a" / "b" / name / "tiny"
        write(Store(folder), record("key"))
        (folder / "manifest.yaml").write_text(yaml.safe_dump(manifest if name == where else {"experiment": "tiny"}))
    before = sorted(tmp_path.rglob("*")), files_in(tmp_path)
    for given in (folder.parents[1] / "source", folder.parents[1] / "source" / "tiny"):
        assert main(["merge", str(given), f"into={folder.parent}"]) == 2
        said = " ".join(capsys.readouterr().err.split())
        assert message in said
        assert "manifest.yaml" in said
    assert (sorted(tmp_path.rglob("*")), files_in(tmp_path)) == before


@pytest.mark.parametrize("shard", ["0/4", "5/4", "1", "a/b"])
def test_an_invalid_shard_is_refused(shard: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", f"shard='{shard}'", "--dry-run"]) == 2
    assert "shard: expected K/N" in capsys.readouterr().err
