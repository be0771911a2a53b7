"""Tests of runs in this process: output files, keys and rejected input."""

import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import yaml
from filelock import FileLock
from rich.console import Console

import klr_bench
from klr_bench import runner
from klr_bench.config.changes import recorded
from klr_bench.config.models import DataConfig, KernelConfig, ParallelConfig, RunConfig, SelectionConfig, TraceConfig
from klr_bench.datasets.splits import fold_rows
from klr_bench.errors import KlrBenchError, exception_message
from klr_bench.files import read_checked_json, regular, write_checked_json
from klr_bench.instantiate import build
from klr_bench.report.load import read_results
from klr_bench.results import keys
from klr_bench.results.keys import file_hash, module_hash
from klr_bench.runner import execute, fit, plan
from klr_bench.runner.bandwidth import distance_percentile
from klr_bench.runner.manifest import git_state
from klr_bench.runner.plan import group_folds, plan_cells
from klr_bench.runner.scores import ScoreStore
from klr_bench.runner.selection import FAILED
from klr_bench.yaml_file import dump_yaml
from tests.config.composing import altered
from tests.runner.small import MOONS, NC, OSKL, SMALL, SYNTHETIC, algorithm, made, only_cell, run, small_config, table


@pytest.fixture
def config(tmp_path) -> RunConfig:
    return small_config(tmp_path)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Return configuration, outcome and output of a finished run, which tests must not modify."""
    config = small_config(tmp_path_factory.mktemp("finished"))
    return config, *run(config)


@pytest.fixture
def done(finished, tmp_path) -> RunConfig:
    """Return the configuration of a finished run whose results were copied for the test."""
    shutil.copytree(finished[0].results_dir, tmp_path / "results")
    return altered(finished[0], results_dir=str(tmp_path / "results"))


def manifest_of(config) -> dict:
    return yaml.safe_load((Path(config.results_dir) / "tiny" / "manifest.yaml").read_text())


def test_a_run_writes_rows_and_a_manifest(finished):
    config, outcome, text = finished
    assert (outcome.n_computed, outcome.n_found, outcome.n_failed) == (6, 0, 0)
    assert "small: 300 rows, 2 features; '0' is -1, '1' is +1" in text
    rows = table(config)
    methods = [("nc", "{}"), ("oskl", '{"G": 1}'), ("oskl", '{"G": 4}')]
    expected = [[*method, repeat] for method in methods for repeat in (0, 1)]
    assert rows[["algorithm", "variant", "repeat"]].to_numpy().tolist() == expected
    assert (rows.status == "ok").all()
    assert outcome.score == pytest.approx(rows.accuracy.mean())
    assert rows.n_train.tolist() == [240] * 6
    assert (rows.accuracy + rows.error_rate == 1).all()
    assert (rows.log_loss > 0).all()
    bins = table(config, "reliability")
    error = (bins.n * (bins.predicted - bins.positive).abs()).groupby(bins.key).sum() / 60
    assert rows.set_index("key").ece.to_dict() == pytest.approx(error.to_dict())
    assert rows.sparsity[0] == 0
    content = manifest_of(config)
    assert content["config"]["sweep"] == {"oskl": {"G": [1, 4]}}
    assert content["machine"]["threads_per_worker"] == 1
    assert content["schema_version"] == 2


def test_a_class_without_kernel_gets_the_declared_kernel_parameters(config):
    def params(**changes):
        algorithms = {"nc": NC | {"grid": {}}, "one": algorithm("tests.runner.learners.OneKernel") | changes}
        outcome, text = run(altered(config, algorithms=algorithms, repeats=1, sweep={}))
        ours, theirs = (json.loads(text) for text in table(config).params)
        assert ours["gamma"] != 1.0
        return theirs.get("gamma"), theirs.get("gamma") == ours["gamma"], "run's gamma," in text, outcome.n_found

    assert params() == (None, False, True, 0)
    assert params(kernel_parameters=[]) == (None, False, False, 2), "the key is the same"
    assert params(kernel_parameters=["gamma"])[1:] == (True, False, 1)
    target = {"_target_": "tests.runner.learners.OneKernel", "gamma": 5.0}
    for declared in (None, ["gamma"]):
        assert params(kernel_parameters=declared, estimator=target)[:3] == (5.0, False, False)
    grid = {"gamma": [5.0]}
    assert params(kernel_parameters=["gamma"], grid=grid)[:3] == params(grid=grid)[:3] == (5.0, False, False)


def test_the_last_classifier_of_a_budget_learner_is_measured_too(config):
    rbp = algorithm("klr_bench.RandomizedBudgetPerceptron", budget=9, average=True)
    run(altered(config, algorithms={"nc": NC, "rbp": rbp}, sweep={}))
    rows = table(config).set_index("algorithm")
    assert (rows.last_n_support["rbp"].astype(int) == 9).all()
    assert (rows.n_support["rbp"].astype(int) > 9).all()
    assert (rows.last_accuracy["rbp"].astype(float) > 0.5).all()
    assert (rows.last_accuracy["nc"] == "").all()


def test_checkpoints_have_the_available_metrics(config):
    gap = {"objective", "duality_gap"}
    expected = {name: gap | {"n_support"} for name in ("DualCDKLR", "PrimalCDKLR")}
    expected["L1KLR"] = gap | {"nonzero_fraction"}
    algorithms = {name: algorithm(f"klr_bench.{name}") for name in expected}
    run(altered(config, repeats=1, algorithms=algorithms, sweep={}, trace=TraceConfig(points=9, spacing="log")))
    found = table(config, "traces").merge(table(config), on="key").groupby("algorithm").metric.agg(set)
    assert all(found[name] >= {"accuracy", *metrics} for name, metrics in expected.items())


def best_of(cell, score):
    """Return the best candidate of a cell by its mean of `score(learner)`, and this mean."""
    gamma = 1 / (2 * distance_percentile(fit._prepared(cell.source).X_train, 20.0, fit.learner_seed(cell.source)) ** 2)
    means = [np.mean(score(candidate.estimator, gamma)) for candidate in cell.candidates]
    best = int(np.argmax(np.round(means, 12)))
    return cell.candidates[best].estimator, gamma, means[best]


def test_a_cell_is_the_result_of_plain_cross_validation_and_fit(finished):
    config = finished[0]
    rows = table(config).set_index("key")
    folder = Path(config.results_dir) / "tiny" / "selections"
    assert [len(read_checked_json(path)) for path in folder.glob("*/*.json")] == [8] * 6
    for cell in plan_cells(config, Path(config.data.cache))[:4]:
        data, seed = fit._prepared(cell.source), fit.learner_seed(cell.source)

        def score(estimator, gamma, data=data, seed=seed):
            learner = build(estimator, gamma=gamma, random_state=seed)
            for train, test in (fold_rows(len(data.y_train), 3, fold) for fold in range(3)):
                learner.fit(data.X_train[train], data.y_train[train])
                yield learner.score(data.X_train[test], data.y_train[test])

        best, gamma, _ = best_of(cell, lambda *spec: [*score(*spec)])
        learner = build(best, gamma=gamma, random_state=seed).fit(data.X_train, data.y_train)
        row = rows.loc[cell.key]
        assert (row.accuracy, row.n_support) == (learner.score(data.X_test, data.y_test), learner.n_support_)
        assert json.loads(row.params)["gamma"] == pytest.approx(gamma)
        assert json.loads(row.params)["R"] == best["R"]
        assert row.fit_time_s > 0


def test_the_result_of_a_rehearsal_is_fitted_and_its_time_is_not_counted(config, tmp_path, monkeypatch):
    monkeypatch.setenv("FITS_LOG", str(tmp_path / "fits"))
    choices = []
    monkeypatch.setattr(fit, "measure", lambda estimator, *rest: choices.append(estimator.choice) or ({}, 0.0, []))
    cell = only_cell(config, algorithms={"mine": algorithm("tests.runner.learners.Rehearsed")})
    row = fit.run_cell(cell, cell.estimator).record
    assert (row.status, choices) == ("ok", [7])
    assert 0 < row.metrics["fit_time_s"] < 0.4


def test_without_nesting_the_repeats_of_a_partition_share_the_best_choice_on_their_test_rows(config):
    datasets = {"small": SMALL | {"split": {"folds": 3}}}
    config = altered(config, datasets=datasets, selection=SelectionConfig(nested=False), repeats=4)
    config = altered(config, algorithms={"nc": NC}, sweep={})
    run(config)
    rows = table(config)
    cells = plan_cells(config, Path(config.data.cache))
    assert [[fold.source.repeat for fold in cell.folds] for cell in cells] == [[0, 1, 2]] * 3 + [[3, 4, 5]]

    def score(estimator, _):
        for cell in cells[:3]:
            data, seed = fit._prepared(cell.source), fit.learner_seed(cell.source)
            gamma = 1 / (2 * distance_percentile(data.X_train, 20.0, seed) ** 2)
            learner = build(estimator, gamma=gamma, random_state=seed).fit(data.X_train, data.y_train)
            yield learner.score(data.X_test, data.y_test)

    best, _, mean = best_of(cells[0], lambda *spec: [*score(*spec)])
    chosen = [(params["R"], params["eta"]) for params in map(json.loads, rows.params)]
    assert chosen[:3] == [(best["R"], best["eta"])] * 3
    assert rows.accuracy[:3].mean() == pytest.approx(mean)


def test_a_learner_may_be_selected_as_another_one(config):
    grid, once = NC["grid"], {"n_epochs": 1, "shuffle": False}
    nc = algorithm("klr_bench.NonConservativeKLR", grid, **once)
    margin = algorithm("klr_bench.MarginKLR", grid, **once)
    as_nc = margin | {"selected_as": {"_target_": "klr_bench.NonConservativeKLR"}}
    both, alone = (
        altered(config, algorithms={"nc": nc, "margin": second}, sweep={}, repeats=1) for second in (as_nc, margin)
    )
    first, second = plan_cells(both, Path(config.data.cache))
    assert [candidate.key for candidate in first.candidates] == [candidate.key for candidate in second.candidates]
    assert len(group_folds([first, second])[0].candidates) == 4, "each is scored once"
    assert plan_cells(alone, Path(config.data.cache))[1].key != second.key
    run(both)
    assert len(set(table(config).params)) == 1
    assert table(config).sparsity[0] != 0, "the learner itself is fitted"


def test_a_variant_may_be_left_out_on_a_data_set(config):
    def planned(**left_out):
        cells = plan_cells(altered(config, left_out=left_out), Path("c"))
        return {(cell.source.stem, cell.algorithm, cell.variant.get("G")) for cell in cells}

    config = altered(config, datasets={"small": SMALL, "other": SMALL | {"label": "Other"}}, repeats=1)
    assert planned() - planned(other={"oskl": {"G": [4]}}) == {("other", "oskl", 4)}
    assert planned() - planned(other={"oskl": {}}) == {("other", "oskl", 1), ("other", "oskl", 4)}


def test_nonzero_entries_are_counted_in_any_layout():
    X = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0]])
    stored_zero = sp.csr_matrix(X)
    stored_zero.data[0] = 0.0
    assert [fit.nonzero_per_row(X), fit.nonzero_per_row(sp.csr_matrix(X))] == [1.0, 1.0]
    assert fit.nonzero_per_row(stored_zero, X) == 3 / 4


CODE = ("datasets.splits", "runner.selection", "metrics.compute", "metrics.predictions", "protocols", "runner.fit")


def test_keys_depend_on_the_code_that_splits_selects_and_measures_and_on_that_of_the_solver(config, monkeypatch):
    def keys():
        cell = only_cell(config)
        return cell.key, cell.folds[0].key, cell.candidates[0].key

    before = keys()
    for module in (f"klr_bench.{name}" for name in CODE):
        changed = lambda *names, module=module: "changed" if module in names else module_hash(*names)  # noqa: E731
        monkeypatch.setattr(plan, "module_hash", changed)
        assert not {*keys()[:2]} & {*before}
    monkeypatch.setattr(plan, "module_hash", module_hash)
    monkeypatch.setattr(plan, "source_hash", lambda target: "another version")
    assert [old == new for old, new in zip(before, keys(), strict=True)] == [False, True, False]


F1 = '    Metric("f1", "F1", "percent", "higher"'


@pytest.mark.parametrize(
    ("file", "old", "new", "same"),
    [
        ("labels.py", F1, F1.replace("F1", "F-measure"), True),
        ("metric.py", "frozen=True", "frozen=False", True),
        ("compute.py", "2 * tp / total", "3 * tp / total", False),
    ],
    ids=["title", "class", "function"],
)
def test_only_the_function_of_a_metric_is_part_of_a_key(config, monkeypatch, file, old, new, same):
    def edited(read, *most):
        return io.BytesIO(content.replace(old, new).encode()) if Path(read) == path else regular(read, *most)

    before = [(cell.key, cell.folds[0].key) for cell in plan_cells(config, Path("cache"))]
    path = Path(klr_bench.__file__).parent / "metrics" / file
    content = path.read_text()
    assert old.lower() in content.lower()
    monkeypatch.setattr(keys, "regular", edited)
    clear_hashes()
    try:
        again = plan_cells(config, Path("cache"))
        assert ([(cell.key, cell.folds[0].key) for cell in again] == before) == same
    finally:
        clear_hashes()


def clear_hashes():
    for cached in (keys.source_hash, keys.module_hash, keys._module):
        cached.cache_clear()


@pytest.mark.parametrize(("old", "new", "same"), [("Mine", "Ours", True), ("# rate", "", True), ("0.5", "0.6", False)])
def test_keys_depend_on_the_code_of_a_user_metric_and_not_on_its_labels(config, monkeypatch, tmp_path, old, new, same):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "configs" / "metric" / "mine.py"
    path.parent.mkdir(parents=True)
    text = 'METRIC = Metric("mine", "Mine", unit="percent", better="higher", of=lambda _: 0.5)  # rate'
    path.write_text(text)
    measured = altered(config, metrics=["accuracy", "mine"])
    first = only_cell(measured).key
    assert first != only_cell(config).key
    path.write_text(text.replace(old, new))
    file_hash.cache_clear()
    assert (only_cell(measured).key == first) == same
    file_hash.cache_clear()


def test_training_rows_in_the_plane_are_kept_on_request(config):
    traced = altered(config, algorithms={"oskl": algorithm("klr_bench.OSKL")}, sweep={}, trace=TraceConfig(rows=True))
    run(traced)
    rows = table(config, "rows")
    (first, _) = plan_cells(traced, Path(config.data.cache))
    data = fit._prepared(first.source)
    assert (rows.key == first.key).all(), "of repeat 0 alone"
    np.testing.assert_allclose(rows[["x1", "x2"]], data.X_train)
    assert rows.label.tolist() == (data.y_train > 0).astype(int).tolist()
    wide = SMALL | {"source": made({"_target_": "klr_bench.datasets.bundled.breast_cancer"})}
    with pytest.raises(KlrBenchError, match=r"trace\.rows=true: .* with two features, but small has 30"):
        run(altered(traced, datasets={"small": wide}, name="wide"))


def test_labels_outlive_a_run_of_a_part_and_a_damaged_manifest(done):
    path = Path(done.results_dir) / "tiny" / "manifest.yaml"
    labels = {"nc": "klr_bench.NonConservativeKLR"}
    for damaged in (labels, None, 5, {"a": [1]}):
        path.write_text(dump_yaml(manifest_of(done) | {"labels": {"algorithms": damaged}}))
        run(altered(done, algorithms={"oskl": OSKL | {"label": "Another"}}))
        expected = {"oskl": "Another"} | (labels if damaged == labels else {})
        assert manifest_of(done)["labels"]["algorithms"] == expected


def nc(*arguments, **parameters):
    return {"algorithms": {"nc": algorithm(*arguments, **parameters)}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (nc("klr_bench.MarginKLR", eta=2.0), "algorithms.nc.estimator: The 'eta' parameter"),
        (nc("klr_bench.MarginKLR", {"eta": [0.1, 3]}), "'eta' parameter of .* Got 3"),
        (nc("klr_bench.OSKL", G=0.5), "'G' parameter of OSKL must be at least 1 for the logit loss"),
        (nc("sklearn.linear_model.LinearRegression"), "expected a classifier, got .*Linear"),
        ({"selection": SelectionConfig(folds=200)}, r"240 training rows, .* and 400 in total \(two per fold\)"),
        (
            {"parallel": ParallelConfig(backend="threads")},
            r"^parallel\.backend: unknown value 'threads'\. Known: dask, joblib, serial\.$",
        ),
        (
            {"datasets": {"small": SMALL | {"source": made({"_target_": f"{SYNTHETIC}.moons", "n_samples": 0})}}},
            r"^datasets\.small\.source\.generator\.n_samples: expected from 1 ",
        ),
    ],
)
def test_invalid_experiments_are_refused_before_anything_is_written(config, changes, message):
    with pytest.raises(KlrBenchError, match=message):
        run(altered(config, **{"sweep": {}} | changes))
    assert not Path(config.results_dir).exists()


def test_more_than_two_classes(config):
    mixtures = {"_target_": f"{SYNTHETIC}.gaussian_mixtures", "n_classes": 3, "components": 1, "spread": 0.8, "seed": 3}
    three = SMALL | {"multiclass": True, "source": made(mixtures | {"n_samples": 300})}
    logistic = algorithm("sklearn.linear_model.LogisticRegression", {"C": [1e-6, 1.0]})
    config = altered(config, datasets={"three": three}, algorithms={"lr": logistic}, sweep={}, repeats=1)
    for score in ("accuracy", "log_loss"):
        outcome, text = run(altered(config, selection=SelectionConfig(folds=3, score=score), force=True))
        assert (outcome.n_computed, outcome.n_failed) == (1, 0)
        assert "three: 300 rows, 2 features; 3 classes: 0, 1, 2" in text
        (row,) = table(config).itertuples()
        assert row.accuracy > 0.85
        assert row.log_loss < 0.4
        assert json.loads(row.params)["C"] == 1.0
    with pytest.raises(KlrBenchError, match=r"two: supports only two classes, but three has 3\. Remove it"):
        run(altered(config, algorithms={"lr": logistic, "two": algorithm("tests.runner.learners.OfTwoClasses")}))
    few = three | {"source": made(mixtures | {"n_samples": 12}), "split": {"test_size": 0.75}}
    with pytest.raises(KlrBenchError, match="0 of the rarest class"):
        run(altered(config, repeats=20, datasets={"three": few}, selection=SelectionConfig(folds=2)))


def test_a_rerun_computes_only_missing_or_forced_cells(done, finished):
    assert run(done)[0] == runner.Outcome(0, 6, [], finished[1].score)
    for changes, expected in (({"repeats": 3}, (3, 6)), ({"force": True}, (6, 0))):
        outcome, _ = run(altered(done, **changes))
        assert (outcome.n_computed, outcome.n_found) == expected


def test_a_failure_does_not_replace_the_result_of_another_run(done, monkeypatch):
    """The other run finishes a cell after this one has begun to compute it."""
    before = table(done)
    shutil.move(Path(done.results_dir) / "tiny", done.results_dir + "-of-the-other-run")
    of_other = Path(done.results_dir + "-of-the-other-run") / "cells"

    cells = Path(done.results_dir) / "tiny" / "cells"

    def fit(cell, *_):
        cells.mkdir(exist_ok=True)
        shutil.copy(of_other / f"{cell.key}.json", cells)
        raise MemoryError

    monkeypatch.setattr(execute, "run_cell", fit)
    assert run(done)[0].n_failed == 6
    pd.testing.assert_frame_equal(table(done), before)


def test_a_damaged_cell_is_named_and_computed_again(done):
    before = table(done)
    path = sorted((Path(done.results_dir) / "tiny" / "cells").glob("*.json"))[0]
    path.write_text(path.read_text().replace('"accuracy": 0.', '"accuracy": 0.1', 1))
    outcome, text = run(done)
    assert (outcome.n_computed, outcome.n_found) == (1, 5)
    assert f"Damaged cell files (1): {path.name}. They are computed again." in text
    pd.testing.assert_series_equal(table(done).accuracy, before.accuracy)


def test_only_added_learners_are_scored(config, monkeypatch):
    scored = []
    monkeypatch.setattr(execute, "run_fold", lambda fold: scored.append(fold) or [0.5] * len(fold.candidates))
    run(altered(config, algorithms={"oskl": OSKL}))
    run(config)
    firsts = [{candidate.chosen["_target_"] for candidate in fold.candidates} for fold in scored]
    assert firsts == [{"klr_bench.OSKL"}] * 6 + [{"klr_bench.NonConservativeKLR"}] * 6
    assert [len(fold.candidates) for fold in scored] == [4] * 12


@pytest.mark.parametrize("n_failing", [1, 2, 3, 4])
def test_failed_candidates_are_reported_and_tried_again(config, monkeypatch, n_failing):
    scored = []

    def score(fold):
        scored.append(len(fold.candidates))
        is_first = len(scored) <= 6  # 2 repeats of 3 folds
        return [{FAILED: "MemoryError: for now"} if is_first else 0.9] * n_failing + [0.5] * (4 - n_failing)

    monkeypatch.setattr(execute, "run_fold", lambda fold: score(fold)[: len(fold.candidates)])
    alone = altered(config, algorithms={"nc": NC}, sweep={})
    outcome, text = run(alone)
    assert outcome.n_failed == (2 if n_failing == 4 else 0)
    assert "MemoryError: for now" in text
    assert ("nc on small, repeat 1 (" + f"{n_failing} of 4: " in text) == (n_failing < 4)
    shutil.rmtree(Path(config.results_dir) / "tiny" / "cells")
    assert run(alone)[0].n_failed == 0
    assert scored == [4] * 6 + [n_failing] * 6
    first = plan_cells(alone, Path("cache"))[0].candidates[0].chosen
    assert all(
        json.loads(params).items() >= {"R": first["R"], "eta": first["eta"]}.items() for params in table(alone).params
    )


def test_the_order_of_learners_does_not_change_results(config, finished):
    run(altered(config, algorithms={"oskl": OSKL, "nc": NC}, sweep={"oskl": {"G": [4, 1]}}))
    times = ["fit_time_s", "predict_time_s", "peak_memory_mb", "load"]
    ours, theirs = (table(run_config).drop(columns=times, errors="ignore") for run_config in (config, finished[0]))
    pd.testing.assert_frame_equal(ours, theirs)


DATA = ({"scale": "minmax"}, {"split": {"test_size": 0.3}}, {"source": made(MOONS | {"seed": 1})}, {"positive": "0"})
LEARNERS = (
    {"grid": {"R": [1.0]}},
    {"time_limit_s": 5.0},
    {"estimator": NC["estimator"] | {"average": False}},
    {"estimator": {"_target_": "klr_bench.KernelOGD"}, "grid": {"eta": [1.0, 0.1]}},
)


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": 1},
        {"selection": SelectionConfig(folds=4)},
        {"trace": TraceConfig(points=5)},
        {"kernel": KernelConfig(percentile=5.0)},
        *({"datasets": {"small": SMALL | change}} for change in DATA),
        {"datasets": {"renamed": SMALL}},
        *({"algorithms": {"nc": NC | change}} for change in LEARNERS),
    ],
    ids=str,
)
def test_keys_depend_on_what_results_depend_on(config, changes):
    assert only_cell(config).key != only_cell(config, **changes).key


def test_keys_depend_on_nothing_else(config):
    expected = only_cell(config)
    elsewhere = {"n_jobs": 2, "results_dir": "elsewhere", "data": DataConfig(mirror="/somewhere")}
    named = {"algorithms": {"nc": NC | {"label": "Baseline"}}, "datasets": {"small": SMALL | {"label": "Other"}}}
    cell = only_cell(config, title="another", repeats=7, **elsewhere, **named)
    assert (cell.key, cell.config_hash) == (expected.key, expected.config_hash)


def test_a_sweep_can_combine_selection_with_fixed_values(config):
    run(altered(config, algorithms={"oskl": OSKL}, sweep={"oskl": {"R": [7.0, "cv"]}}))
    variants, chosen = ([json.loads(text)["R"] for text in table(config)[name]] for name in ("variant", "params"))
    assert variants == [7, 7, "cv", "cv"]
    assert chosen[:2] == [7, 7]
    assert {*chosen[2:]} <= {1, 100}


def test_a_run_lists_cells_of_its_configuration(done):
    first = table(done).params[0]
    _, text = run(altered(done, kernel=altered(done.kernel, percentile=5.0), algorithms={"nc": NC}, sweep={}))
    assert "2 cells of older configurations are omitted: nc on small (2 of configuration" in text
    assert table(done).algorithm.tolist() == ["nc"] * 2 + ["oskl"] * 4
    assert table(done).params[0] != first
    run(done)
    assert table(done).params[0] == first


@pytest.mark.parametrize("n_cells", [0, 1])
@pytest.mark.parametrize("part", [["nc"], ["oskl"], ["nc", "oskl"]])
def test_a_stopped_run_lists_no_rows_of_other_settings(done, monkeypatch, n_cells, part):
    def row_configurations():
        cells = [read_checked_json(path) for path in (Path(done.results_dir) / "tiny" / "cells").glob("*.json")]
        configurations = {cell["record"]["key"]: cell["config_hash"] for cell in cells}
        records = table(done)
        return [(algorithm, configurations[key]) for key, algorithm in zip(records.key, records.algorithm, strict=True)]

    def stop(*arguments):
        during.append(row_configurations())
        if len(during) > n_cells:
            raise KeyboardInterrupt
        return run_cell(*arguments)

    before, during, run_cell = row_configurations(), [], execute.run_cell
    algorithms = {name: done.algorithms[name] for name in part}
    sweep = {name: values for name, values in done.sweep.items() if name in part}
    other = altered(done, algorithms=algorithms, sweep=sweep, kernel=altered(done.kernel, percentile=5.0))
    monkeypatch.setattr(execute, "run_cell", stop)
    with pytest.raises(KeyboardInterrupt):
        run(other, overrides=["kernel.percentile=5.0"])
    planned = {cell.config_hash for cell in plan_cells(other, Path(done.data.cache))}
    for rows in (*during, row_configurations()):
        assert {config for name, config in rows if name in part} <= planned
        assert [row for row in rows if row[0] not in part] == [row for row in before if row[0] not in part]
    assert len([row for row in row_configurations() if row[0] in part]) == n_cells
    assert manifest_of(done)["changes"] == ["kernel.percentile=5.0"]
    if len(row_configurations()):
        read_results(Path(done.results_dir) / "tiny")
    monkeypatch.undo()
    run(done)
    assert sorted(row_configurations()) == sorted(before)


@pytest.mark.parametrize("force", [True, False])
def test_a_stopped_or_failed_run_says_how_to_go_on(config, monkeypatch, force):
    def stop(*arguments):
        raise error

    monkeypatch.setattr(execute, "run_cell", stop)
    again = "; with force=true it computes all cells again, without it earlier results stay" if force else ""
    error = ValueError("no fit")
    assert f"Run the same command again to retry the failed cells{again}." in run(altered(config, force=force))[1]
    error = KeyboardInterrupt()
    console = Console(record=True, width=300, file=io.StringIO())
    with pytest.raises(KeyboardInterrupt):
        runner.run(altered(config, force=force), console=console)
    assert f"Run the same command again to continue{again}." in console.export_text()


def test_a_variant_with_another_spelling_replaces_the_earlier_one(config):
    for values in ([1, 4], [1.0, 2.0]):
        run(altered(config, algorithms={"oskl": OSKL}, sweep={"oskl": {"G": values}}, repeats=1))
    records = read_results(Path(config.results_dir) / "tiny").records
    assert sorted(map(str, records["variant"])) == [f"Variant({{'G': {G}}})" for G in ("1.0", "2.0", "4")]


def test_a_lock_in_the_middle_of_a_run_is_harmless(config, monkeypatch):
    def run_locked(*arguments):
        calls.append(arguments)
        lock.acquire()
        if len(calls) == 6:
            lock.release(force=True)
        return run_cell(*arguments)

    lock, calls, run_cell = FileLock(Path(config.results_dir) / "tiny" / ".lock"), [], execute.run_cell
    monkeypatch.setattr(execute, "run_cell", run_locked)
    monkeypatch.setattr(execute, "REBUILD_INTERVAL_S", 0.01)
    outcome, _ = run(config)
    assert (outcome.n_computed, len(table(config))) == (6, 6)


def test_a_dry_run_writes_nothing(config, finished):
    text = run(config, dry_run=True)[1]
    assert not Path(config.results_dir).exists()
    assert "tiny: 6 cells, 0 of them finished" in text
    assert "would run 6 selection folds (48 fits) and 6 cells (list: --verbose):\n  small: nc 2, oskl 4\n" in text
    assert "small: nc" not in run(config, dry_run=True, quiet=True)[1]
    assert "cells:\n  nc on small, repeat 0\n" in run(config, dry_run=True, verbose=True)[1]
    assert "tiny: 6 cells, 6 of them finished" in run(finished[0], dry_run=True)[1]


def test_traces_and_time_limits(config):
    limited = algorithm("klr_bench.NonConservativeKLR", n_epochs=5, time_limit_s=1e-9)
    run(altered(config, algorithms={"nc": limited}, sweep={}, trace=TraceConfig(points=9, spacing="log")))
    rows = table(config)
    assert rows[["status", "message"]].to_numpy().tolist() == [["timeout", "stopped after 1e-09 s"]] * 2
    assert (rows.accuracy > 0.5).all()
    traces = table(config, "traces")
    assert set(traces.metric) == {"accuracy", "n_support", "cumulative_loss"}
    assert set(traces.key) == set(rows.key)
    assert traces[traces.metric == "n_support"].value.tolist() == [240, 240]


def test_classifiers_of_other_libraries_are_algorithms_too(config):
    sgd = algorithm("sklearn.linear_model.SGDClassifier", loss="log_loss")
    algorithms = {"svc": algorithm("sklearn.svm.SVC", {"C": [0.1, 10.0]}), "sgd": sgd}
    run(altered(config, algorithms=algorithms, sweep={}, repeats=1))
    rows = table(config).set_index("algorithm")
    assert (rows.status == "ok").all()
    assert yaml.safe_load(rows.params["svc"])["gamma"] > 0
    assert 0 < float(rows.sparsity["svc"]) < 1
    assert float(rows.nonzero_fraction["sgd"]) == 1


def test_no_candidate_that_can_be_fitted_is_an_error_row(config):
    unbounded = algorithm("klr_bench.OSKL", {"R": [10.0, 100.0]}, loss="exponential", eta=1.0)
    outcome, text = run(altered(config, algorithms={"oskl": unbounded}, sweep={}, repeats=1))
    assert outcome.n_failed == 1
    assert "none of the 2 candidates in the grid could be fitted in every fold" in text
    assert table(config).status.tolist() == ["error"]


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    """Return the path of a user module that is not written yet."""
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path / "own_module.py"
    sys.modules.pop("own_module", None)


@pytest.mark.parametrize("part", ["source", "derive"])
def test_a_dry_run_does_not_import_generators(config, own_module, part):
    mark = own_module.with_name("mark")
    own_module.write_text(f"from pathlib import Path\nPath({str(mark)!r}).touch()\ndef make():\n    pass\n")
    make = {"_target_": "own_module.make"}
    dataset = SMALL | {part: made(make) if part == "source" else make}
    assert "6 cells, 0 of them finished" in run(altered(config, datasets={"small": dataset}), dry_run=True)[1]
    assert not mark.exists()


def test_derived_data_may_have_missing_values(config, own_module):
    own_module.write_text("def same(arrays):\n    return arrays\n")
    own_module.with_name("own.csv").write_text(
        "a,b,y\n" + "".join(f"0.{i},{i % 7 or 'NA'},{i % 2}\n" for i in range(60))
    )
    source = {"format": "file", "path": str(own_module.with_name("own.csv"))}
    own = {"source": source, "split": {"test_size": 0.2}, "derive": {"_target_": "own_module.same"}}
    outcome, text = run(altered(config, datasets={"own": own}, repeats=1))
    assert not outcome.n_failed, text


def test_a_dry_run_calls_no_estimator_and_a_run_names_the_one_that_raises(config, own_module):
    own_module.write_text(
        "class Learner:\n"
        "    def __init__(self, rate=1.0):\n        raise KeyError('rate')\n"
        "    def fit(self, X, y):\n        pass\n"
        "    def predict(self, X):\n        pass\n"
    )
    config = altered(config, algorithms={"mine": algorithm("own_module.Learner", {"rate": [1.0, 2.0]})}, sweep={})
    run(config, dry_run=True)
    message = r"algorithms\.mine\.estimator: own_module\.Learner raised KeyError: 'rate'"
    with pytest.raises(KlrBenchError, match=message):
        run(config)
    assert not Path(config.results_dir).exists()


def test_a_classifier_needs_only_fit_and_predict(config, own_module):
    own_module.write_text(
        "import numpy as np\n"
        "class Constant:\n"
        "    def __init__(self, value=1):\n        self.value = value\n"
        "    def fit(self, X, y):\n        return self\n"
        "    def predict(self, X):\n        return np.full(len(X), self.value)\n"
    )
    mine = algorithm("own_module.Constant", {"value": [-1, 1]})
    outcome, text = run(altered(config, algorithms={"mine": mine}, sweep={}))
    assert outcome.n_computed == 2, text
    assert table(config).accuracy.min() > 0.3


def test_the_manifest_keeps_overrides_that_affect_results():
    words = ["experiment=oskl_magic", "seed=3", "+algorithms.nc.estimator.R=1"]
    places = ["results_dir=/tmp/x", "parallel.address=tcp://a:1"]
    assert recorded(words + places) == words


def test_the_manifest_names_the_changed_files_of_the_package(tmp_path):
    def git(*arguments):
        identity = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", "-C", str(tmp_path), *identity, *arguments], check=True, capture_output=True)

    files = [tmp_path / name for name in ("package/solver.py", "package/other.py", "configs/tiny.yaml", "notes.txt")]
    for file in files:
        file.parent.mkdir(exist_ok=True)
        file.write_text("1")
    assert git_state(tmp_path / "package") == (None, [])
    for words in (["init"], ["add", "-A"], ["commit", "-m", "all"]):
        git(*words)
    for file in (files[0], tmp_path / "package/a new one.py", files[-1]):
        file.write_text("2")
    files[2].unlink()
    if sys.platform == "linux":
        Path(os.fsdecode(bytes(tmp_path / "configs") + b"/\xff")).touch()
    commit, changed = git_state(tmp_path / "package")
    assert len(commit) == 40
    added = ["configs/\\xff"] if sys.platform == "linux" else []
    assert changed == [*added, "configs/tiny.yaml", "package/a new one.py", "package/solver.py"]


def test_damaged_scores_are_ignored(tmp_path):
    fold = SimpleNamespace(key="fold", selection=SelectionConfig(score="accuracy"))
    path, scores = tmp_path / "selections" / "fold" / "a.json", {"a": 0.75, "none": None}
    write_checked_json(path, scores)
    assert ScoreStore(tmp_path, fresh=False)._scores(fold) == scores
    content = path.read_bytes()
    for bit in range(8 * len(content)):
        path.write_bytes(content[: bit // 8] + bytes([content[bit // 8] ^ 1 << bit % 8]) + content[bit // 8 + 1 :])
        assert ScoreStore(tmp_path, fresh=False)._scores(fold) in ({}, scores)


def test_the_last_cells_may_use_spare_cores(config):
    last = altered(config, algorithms={"nc": algorithm("klr_bench.NonConservativeKLR")}, sweep={}, repeats=1, n_jobs=2)
    run(altered(last, parallel=ParallelConfig(backend="joblib", spare_threads=True)))
    assert table(config).cpu[0].endswith("2 threads")
    assert manifest_of(config)["machine"]["threads_per_worker"] == "1, and more for the last cells"


def test_an_exception_without_a_message_has_a_class() -> None:
    class Broken(Exception):
        def __str__(self) -> str:
            raise AttributeError

    assert exception_message(Broken()).startswith("Broken: (without a message)")
