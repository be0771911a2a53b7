"""The runner in this process: what a run writes, what its keys depend on, what it refuses."""

from __future__ import annotations

import ast
import io
import json
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
from rich.console import Console

import klr_bench
from klr_bench import runner
from klr_bench.config.models import DataConfig, KernelConfig, ParallelConfig, RunConfig, SelectionConfig, TraceConfig
from klr_bench.datasets.splits import fold_rows
from klr_bench.errors import KlrBenchError
from klr_bench.files import read_checked_json, regular, write_checked_json
from klr_bench.instantiate import build
from klr_bench.results import keys
from klr_bench.results.keys import content_hash, file_hash, module_hash
from klr_bench.runner import dry_run, fit, plan
from klr_bench.runner.bandwidth import distance_percentile
from klr_bench.runner.manifest import _is_place, git_state
from klr_bench.runner.plan import group_folds, plan_cells
from klr_bench.runner.scores import ScoreStore
from tests.config.composing import altered

SYNTHETIC = "klr_bench.datasets.synthetic"
MOONS = {"_target_": f"{SYNTHETIC}.moons", "n_samples": 300, "noise": 0.3, "seed": 0}


def made(generator):
    """Return a source that is generated."""
    return {"format": "generated", "generator": generator}


SMALL = {"label": "Small", "source": made(MOONS), "split": {"test_size": 0.2}}


def algorithm(target, grid=None, time_limit_s=None, **parameters):
    return {
        "label": target,
        "reference": "",
        "estimator": {"_target_": target, **parameters},
        "grid": grid or {},
        "time_limit_s": time_limit_s,
    }


NC = algorithm("klr_bench.NonConservativeKLR", {"R": [1.0, 100.0], "eta": [0.1, 1.0]})
OSKL = algorithm("klr_bench.OSKL", {"R": [1.0, 100.0]}, loss="logit")


def small_config(folder: Path) -> RunConfig:
    return RunConfig(
        name="tiny",
        repeats=2,
        results_dir=str(folder / "results"),
        data=DataConfig(cache=str(folder / "cache")),
        parallel=ParallelConfig(backend="serial"),
        selection=SelectionConfig(folds=3),
        datasets={"small": SMALL},
        algorithms={"nc": NC, "oskl": OSKL},
        sweep={"oskl": {"G": [1, 4]}},
    )


@pytest.fixture
def config(tmp_path) -> RunConfig:
    return small_config(tmp_path)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Configuration, outcome and output of a finished run, which tests must not change."""
    config = small_config(tmp_path_factory.mktemp("finished"))
    return config, *run(config)


@pytest.fixture
def done(finished, tmp_path) -> RunConfig:
    """The configuration of a finished run, with its results in a folder of the test."""
    shutil.copytree(finished[0].results_dir, tmp_path / "results")
    return altered(finished[0], results_dir=str(tmp_path / "results"))


def run(config, **options) -> tuple[runner.Outcome, str]:
    console = Console(record=True, width=300, file=open("/dev/null", "w"))  # noqa: SIM115
    return runner.run(config, console=console, **options), console.export_text()


def records(config) -> pd.DataFrame:
    return pd.read_csv(Path(config.results_dir) / "tiny" / "records.csv", keep_default_na=False)


def manifest_of(config) -> dict:
    return yaml.safe_load((Path(config.results_dir) / "tiny" / "manifest.yaml").read_text())


def test_a_run_writes_rows_and_a_manifest(finished):
    config, outcome, text = finished
    assert (outcome.n_computed, outcome.n_found, outcome.n_failed) == (6, 0, 0)
    assert "small: 300 rows, 2 features; '0' is -1, '1' is +1" in text
    rows = records(config)
    methods = [("nc", "{}"), ("oskl", '{"G": 1}'), ("oskl", '{"G": 4}')]
    expected = [[*method, repeat] for method in methods for repeat in (0, 1)]
    assert rows[["algorithm", "variant", "repeat"]].to_numpy().tolist() == expected
    assert (rows.status == "ok").all()
    assert outcome.score == pytest.approx(rows.accuracy.mean())
    assert rows.n_train.tolist() == [240] * 6
    assert (rows.accuracy + rows.error_rate == 1).all()
    assert (rows.log_loss > 0).all()
    bins = pd.read_csv(Path(config.results_dir) / "tiny" / "reliability.csv")
    error = (bins.n * (bins.predicted - bins.positive).abs()).groupby(bins.key).sum() / 60
    assert rows.set_index("key").ece.to_dict() == pytest.approx(error.to_dict())
    assert rows.sparsity[0] == 0
    content = manifest_of(config)
    assert content["config"]["sweep"] == {"oskl": {"G": [1, 4]}}
    assert content["machine"]["threads_per_worker"] == 1
    assert content["schema_version"] == 2


def test_a_class_without_kernel_gets_what_its_file_declares_of_the_runs(config):
    def params(**changes):
        algorithms = {"nc": NC | {"grid": {}}, "one": algorithm("tests.runner.learners.OneKernel") | changes}
        outcome, text = run(altered(config, algorithms=algorithms, repeats=1, sweep={}))
        ours, theirs = (json.loads(text) for text in records(config).params)
        assert ours["gamma"] != 1.0
        return theirs.get("gamma"), theirs.get("gamma") == ours["gamma"], "keeps its own gamma" in text, outcome.n_found

    assert params() == (None, False, True, 0)
    assert params(kernel_parameters=[]) == (None, False, False, 2), "the key is the same"
    assert params(kernel_parameters=["gamma"])[1:] == (True, False, 1)
    target = {"_target_": "tests.runner.learners.OneKernel", "gamma": 5.0}
    for declared in (None, ["gamma"]):
        assert params(kernel_parameters=declared, estimator=target)[:3] == (5.0, False, False)
    grid = {"gamma": [5.0]}
    assert params(kernel_parameters=["gamma"], grid=grid)[:3] == params(grid=grid)[:3] == (5.0, False, False)


def test_a_learner_with_a_budget_is_judged_by_its_last_classifier_too(config):
    rbp = NC | {
        "estimator": {"_target_": "klr_bench.RandomizedBudgetPerceptron", "budget": 9, "average": True},
        "grid": {},
    }
    run(altered(config, algorithms={"nc": NC, "rbp": rbp}, sweep={}))
    rows = records(config).set_index("algorithm")
    assert (rows.last_n_support["rbp"].astype(int) == 9).all()
    assert (rows.n_support["rbp"].astype(int) > 9).all()
    assert (rows.last_accuracy["rbp"].astype(float) > 0.5).all()
    assert (rows.last_accuracy["nc"] == "").all()


@pytest.mark.parametrize(
    ("target", "metrics"),
    [
        ("klr_bench.NonConservativeKLR", {"accuracy", "n_support"}),
        ("klr_bench.DualCDKLR", {"accuracy", "n_support", "objective", "duality_gap"}),
        ("klr_bench.PrimalCDKLR", {"accuracy", "n_support", "objective", "duality_gap"}),
        ("klr_bench.L1KLR", {"accuracy", "objective", "duality_gap", "nonzero_fraction"}),
    ],
)
def test_checkpoints_measure_what_a_learner_has(config, target, metrics):
    one = altered(
        config, repeats=1, algorithms={"one": algorithm(target)}, sweep={}, trace=TraceConfig(points=9, spacing="log")
    )
    outcome, text = run(one)
    assert outcome.n_failed == 0, text
    traces = pd.read_csv(Path(config.results_dir) / "tiny" / "traces.csv")
    assert set(traces["metric"]) >= metrics


def best_of(cell, score):
    """Return the best candidate of a cell by the mean of `score(learner)`, and this mean."""
    gamma = 1 / (2 * distance_percentile(fit._prepared(cell.source).X_train, 20.0, fit.learner_seed(cell.source)) ** 2)
    means = [np.mean(score(candidate.estimator, gamma)) for candidate in cell.candidates]
    best = int(np.argmax(np.round(means, 12)))
    return cell.candidates[best].estimator, gamma, means[best]


def test_a_cell_is_the_result_of_plain_cross_validation_and_fit(finished):
    config = finished[0]
    rows = records(config).set_index("key")
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
    assert 0 < row.metrics["fit_time_s"] < 1


def test_the_choice_is_by_the_mean_over_folds(config, tmp_path):
    cell = only_cell(config)
    store = ScoreStore(tmp_path, fresh=False)
    table = [0.9, 0.8, 0.8, 0.1], [0.1, 0.8, 0.8, 0.9], [0.5, 0.5, 0.6, 0.9]
    for fold, scores in zip(cell.folds, table, strict=True):
        store.write(fold, scores)
    for reader in (store, ScoreStore(tmp_path, fresh=False)):
        assert reader.choice(cell) == cell.candidates[2].estimator
        assert reader.missing(cell.folds[0]) is None
    assert ScoreStore(tmp_path, fresh=True).missing(cell.folds[0]) is not None


def test_without_nesting_the_repeats_of_a_partition_share_the_best_choice_on_their_test_rows(config):
    datasets = {"small": SMALL | {"split": {"folds": 3}}}
    config = altered(config, datasets=datasets, selection=SelectionConfig(nested=False), repeats=4)
    config = altered(config, algorithms={"nc": NC}, sweep={})
    run(config)
    rows = records(config)
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
    other, once = {"_target_": "klr_bench.NonConservativeKLR"}, {"n_epochs": 1, "shuffle": False}
    grid = {"R": [1.0, 100.0], "eta": [0.1, 1.0]}
    margin = algorithm("klr_bench.MarginKLR", grid, **once) | {"selected_as": other}
    nc = algorithm("klr_bench.NonConservativeKLR", grid, **once)
    config = altered(config, algorithms={"nc": nc, "margin": margin}, sweep={}, repeats=1)
    nc, as_nc = plan_cells(config, Path(config.data.cache))
    assert [one.key for one in as_nc.candidates] == [one.key for one in nc.candidates]
    assert len(group_folds([nc, as_nc])[0].candidates) == 4, "each is scored once"
    alone = altered(config, algorithms={"margin": margin | {"selected_as": {}}})
    assert plan_cells(alone, Path(config.data.cache))[0].key != as_nc.key
    outcome, text = run(config)
    assert outcome.n_failed == 0, text
    first, second = (json.loads(params) for params in records(config).params)
    assert first == second
    assert records(config).sparsity.tolist()[0] != 0, "the learner itself is fitted"


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


def test_keys_depend_on_the_code_of_the_solver(config, monkeypatch):
    before = only_cell(config)
    key, fold_key = before.key, before.folds[0].key
    monkeypatch.setattr("klr_bench.runner.plan.source_hash", lambda target: "another version")
    after = only_cell(config)
    assert after.key != key
    assert after.candidates[0].key != before.candidates[0].key
    assert after.folds[0].key == fold_key


CODE = (
    "klr_bench.datasets.splits",
    "klr_bench.runner.selection",
    "klr_bench.metrics.compute",
    "klr_bench.metrics.predictions",
    "klr_bench.protocols",
    "klr_bench.runner.fit",
)


def test_keys_depend_on_the_code_that_splits_selects_and_measures(config, monkeypatch):
    def keys():
        cell = only_cell(config)
        return {cell.key, cell.folds[0].key}

    known = keys()
    for module in CODE:
        changed = lambda *names, module=module: "changed" if module in names else module_hash(*names)  # noqa: E731
        monkeypatch.setattr("klr_bench.runner.plan.module_hash", changed)
        assert not keys() & known


METRICS_FOLDER = Path(klr_bench.__file__).parent / "metrics"
F1 = '    Metric("f1", "F1", "percent", "higher"'


@pytest.mark.parametrize(
    ("path", "old", "new", "same"),
    [
        (METRICS_FOLDER / "labels.py", F1, F1.replace("F1", "F-measure"), True),
        (METRICS_FOLDER / "labels.py", F1, F1.replace("percent", ""), True),
        (METRICS_FOLDER / "metric.py", "frozen=True", "frozen=False", True),
        (METRICS_FOLDER / "compute.py", "2 * both / either", "3 * both / either", False),
    ],
    ids=["title", "unit", "class", "function"],
)
def test_only_the_function_of_a_metric_is_part_of_a_key(config, monkeypatch, path, old, new, same):
    def edited(read, *most):
        return io.BytesIO(content.replace(old, new).encode()) if Path(read) == path else regular(read, *most)

    cells = plan_cells(config, Path("cache"))
    known = [(cell.key, cell.folds[0].key) for cell in cells]
    content = path.read_text()
    assert old.lower() in content.lower()
    monkeypatch.setattr(keys, "regular", edited)
    clear_hashes()
    try:
        again = plan_cells(config, Path("cache"))
        assert ([(cell.key, cell.folds[0].key) for cell in again] == known) == same
    finally:
        clear_hashes()


def clear_hashes():
    for cached in (keys.source_hash, keys.module_hash, keys._module):
        cached.cache_clear()


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("Mine", "Ours", True),
        ("percent", "", True),
        ("# rate", "", True),
        ("0.5", "0.6", False),
        ("higher", "lower", False),
    ],
)
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


def test_a_large_plan_hashes_a_module_and_a_candidate_once(config, monkeypatch):
    """1,000 cells with 5 folds and 8 candidates: only one hash per cell and one per fold grow with their number."""
    parsed, hashed = [], []
    monkeypatch.setattr(ast, "parse", lambda *args, parse=ast.parse: parsed.append(args) or parse(*args))
    monkeypatch.setattr(plan, "content_hash", lambda content: hashed.append(1) or content_hash(content))
    monkeypatch.setattr(plan, "dataset_hash", lambda *args, of=plan.dataset_hash: hashed.append(1) or of(*args))
    clear_hashes()
    nc = NC | {"grid": {"R": [1.0, 10.0], "eta": [0.1, 0.2, 0.5, 1.0]}}
    large = altered(config, repeats=250, selection=SelectionConfig(folds=5), algorithms={"nc": nc, "oskl": OSKL})
    cells = plan_cells(altered(large, sweep={"oskl": {"G": [1, 2, 4]}}), Path("cache"))
    assert len({cell.key for cell in cells}) == 1000
    assert len(group_folds(cells)) == 250 * 5
    assert len(parsed) < 100
    assert len(hashed) == 1 + (8 + 3 * 2) + 2 * 1000 + 5 * 1000


def test_training_rows_in_the_plane_are_kept_on_request(config):
    one = altered(config, algorithms={"oskl": algorithm("klr_bench.OSKL")}, sweep={}, trace=TraceConfig(rows=True))
    run(one)
    rows = pd.read_csv(Path(config.results_dir) / "tiny" / "rows.csv")
    (first, _) = plan_cells(one, Path(config.data.cache))
    data = fit._prepared(first.source)
    assert (rows.key == first.key).all(), "of repeat 0 alone"
    np.testing.assert_allclose(rows[["x1", "x2"]], data.X_train)
    assert rows.label.tolist() == (data.y_train > 0).astype(int).tolist()
    wide = SMALL | {"source": made({"_target_": "klr_bench.datasets.bundled.breast_cancer"})}
    with pytest.raises(KlrBenchError, match=r"trace\.rows=true: .* with two features .* small has 30"):
        run(altered(one, datasets={"small": wide}, name="wide"))


def test_labels_outlive_a_run_of_a_part_and_a_damaged_manifest(done):
    run(altered(done, algorithms={"oskl": OSKL | {"label": "Another"}}))
    labels = manifest_of(done)["labels"]["algorithms"]
    assert labels == {"nc": "klr_bench.NonConservativeKLR", "oskl": "Another"}
    path = Path(done.results_dir) / "tiny" / "manifest.yaml"
    for damaged in (5, None, {"algorithms": 5}, {"algorithms": {"a": [1]}}):
        path.write_text(yaml.safe_dump(manifest_of(done) | {"labels": damaged}))
        run(altered(done, algorithms={"oskl": OSKL}))
        assert manifest_of(done)["labels"]["algorithms"] == {"oskl": "klr_bench.OSKL"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"algorithms": {"nc": algorithm("klr_bench.MarginKLR", eta=2.0)}},
            "algorithms.nc.estimator: The 'eta' parameter",
        ),
        ({"algorithms": {"nc": algorithm("klr_bench.MarginKLR", {"eta": [0.1, 3]})}}, "'eta' parameter of .* Got 3"),
        ({"algorithms": {"nc": algorithm("klr_bench.OSKL", G=0.5)}}, "'G' parameter of OSKL must be at least G1 = 1"),
        ({"algorithms": {"nc": algorithm("klr_bench.OSKL", R="big")}}, "'R' parameter of OSKL must be"),
        (
            {"algorithms": {"nc": algorithm("sklearn.linear_model.LinearRegression")}},
            r"expected a classifier, got .*Linear",
        ),
        (
            {"selection": SelectionConfig(folds=200)},
            r"240 training rows, .* and 400 in all \(two per fold\) are needed",
        ),
    ],
    ids=str,
)
def test_invalid_experiments_are_refused_before_anything_is_written(config, changes, message):
    with pytest.raises(KlrBenchError, match=message):
        run(altered(config, **{"sweep": {}, **changes}))
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
        (row,) = records(config).itertuples()
        assert row.accuracy > 0.85
        assert row.log_loss < 0.4
        assert json.loads(row.params)["C"] == 1.0
    with pytest.raises(KlrBenchError, match=r"two: takes two classes, three has 3\. Leave it out"):
        run(altered(config, algorithms={"lr": logistic, "two": algorithm("tests.runner.learners.OfTwoClasses")}))
    few = three | {"source": made(mixtures | {"n_samples": 12}), "split": {"test_size": 0.75}}
    with pytest.raises(KlrBenchError, match="0 of the rarest class"):
        run(altered(config, repeats=20, datasets={"three": few}, selection=SelectionConfig(folds=2)))


def test_a_second_run_computes_nothing_and_force_computes_all(done, finished):
    assert run(done)[0] == runner.Outcome(0, 6, [], finished[1].score)
    outcome, _ = run(altered(done, force=True))
    assert (outcome.n_computed, outcome.n_found) == (6, 0)


def test_more_learners_score_only_themselves(config, monkeypatch):
    scored = []
    monkeypatch.setattr(
        "klr_bench.runner.execute.run_fold",
        lambda fold: scored.append(len(fold.candidates)) or [0.5] * len(fold.candidates),
    )
    run(altered(config, algorithms={"oskl": OSKL}))
    assert scored == [4] * 6  # two G x two R, three folds, two repeats
    scored.clear()
    run(config)
    assert scored == [4] * 6  # nc alone


def test_the_order_of_learners_does_not_change_results(config, finished):
    run(altered(config, algorithms={"oskl": OSKL, "nc": NC}, sweep={"oskl": {"G": [4, 1]}}))
    times = ["fit_time_s", "predict_time_s", "peak_memory_mb", "load"]
    ours, theirs = (records(one).drop(columns=times, errors="ignore") for one in (config, finished[0]))
    pd.testing.assert_frame_equal(ours, theirs)


def only_cell(config, **changes):
    changed = altered(config, algorithms={"nc": NC}, sweep={}, repeats=1)
    return plan_cells(altered(changed, **changes), Path("cache"))[0]


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": 1},
        {"selection": SelectionConfig(folds=4)},
        {"trace": TraceConfig(points=5)},
        {"kernel": KernelConfig(percentile=5.0)},
        {"datasets": {"small": SMALL | {"scale": "minmax"}}},
        {"datasets": {"small": SMALL | {"split": {"test_size": 0.3}}}},
        {"datasets": {"small": SMALL | {"source": made(MOONS | {"seed": 1})}}},
        {"datasets": {"small": SMALL | {"positive": "0"}}},
        {"datasets": {"renamed": SMALL}},
        {"algorithms": {"nc": NC | {"grid": {"R": [1.0]}}}},
        {"algorithms": {"nc": NC | {"estimator": NC["estimator"] | {"average": False}}}},
        {"algorithms": {"nc": NC | {"time_limit_s": 5.0}}},
        {"algorithms": {"nc": algorithm("klr_bench.KernelOGD", {"eta": [1.0, 0.1]})}},
    ],
    ids=str,
)
def test_keys_depend_on_what_results_depend_on(config, changes):
    assert only_cell(config).key != only_cell(config, **changes).key


def test_keys_depend_on_nothing_else(config):
    known = only_cell(config)
    for changes in (
        {
            "n_jobs": 2,
            "results_dir": "elsewhere",
            "title": "another",
            "repeats": 7,
            "data": DataConfig(mirror="/somewhere"),
        },
        {"algorithms": {"nc": NC | {"label": "Baseline"}}, "datasets": {"small": SMALL | {"label": "Other"}}},
    ):
        cell = only_cell(config, **changes)
        assert (cell.key, cell.config_hash) == (known.key, known.config_hash)


def test_one_fold_serves_all_learners_of_a_kernel(config):
    own_kernel = algorithm("klr_bench.OSKL", {"R": [1.0, 2.0]}, gamma=2.0)
    folds = group_folds(
        plan_cells(altered(config, algorithms={"nc": NC, "oskl": OSKL, "own": own_kernel}), Path("cache"))
    )
    shared = [fold for fold in folds if "percentile" in fold.kernel]
    assert len(shared) == 6
    assert {len(fold.candidates) for fold in shared} == {8}
    assert {len(fold.candidates) for fold in folds if "gamma" in fold.kernel} == {2}
    assert len({candidate.key for candidate in shared[0].candidates}) == 8


def test_a_value_left_to_selection_stands_beside_a_fixed_one(config):
    run(altered(config, algorithms={"oskl": OSKL}, sweep={"oskl": {"R": [7.0, "cv"]}}))
    rows = records(config)
    assert [json.loads(text)["R"] for text in rows.variant] == [7, 7, "cv", "cv"]
    chosen = [yaml.safe_load(text)["R"] for text in rows.params]
    assert chosen[:2] == [7.0, 7.0]
    assert set(chosen[2:]) <= {1.0, 100.0}


def test_older_configurations_are_counted_and_not_listed(done):
    first = records(done).params[0]
    changed = altered(done, kernel=altered(done.kernel, percentile=5.0), algorithms={"nc": NC}, sweep={})
    _, text = run(changed)
    assert "2 cells of older configurations are not listed: nc on small (2 of configuration" in text
    assert records(done).algorithm.tolist() == ["nc", "nc", "oskl", "oskl", "oskl", "oskl"]
    assert records(done).params[0] != first
    run(done)  # the first configuration is requested again
    assert records(done).params[0] == first


def test_a_dry_run_writes_nothing(config, finished):
    outcome, text = run(config, dry_run=True)
    assert not Path(config.results_dir).exists()
    assert (outcome.n_computed, outcome.n_failed) == (0, 0)
    assert "tiny: 6 cells, 0 of them done" in text
    assert "would run 6 folds of selection (48 fits) and 6 cells:" in text
    assert "nc on small" in text
    assert "nc on small" not in run(config, dry_run=True, quiet=True)[1]
    assert "tiny: 6 cells, 6 of them done" in run(finished[0], dry_run=True)[1]


def test_a_dry_run_says_how_long_the_reference_took(config, monkeypatch, tmp_path):
    monkeypatch.setattr(dry_run, "FOLDER", tmp_path / "reference")
    assert "reference" not in run(config, dry_run=True)[1]
    path = tmp_path / "reference" / "tiny" / "records.csv"
    path.parent.mkdir(parents=True)
    path.write_text("key,fit_time_s,predict_time_s\na,100.5,1\nb,18.5,\nc,,\n")
    sentence = "reference: 3 cells, whose fits and predictions took 2 min in all"
    assert sentence in run(config, dry_run=True)[1]
    own_file = altered(config, data=altered(config.data, path="mine.csv"))
    assert "reference" not in run(own_file, dry_run=True)[1], "it was made from another file"
    path.write_text("key,fit_time_s\na,long\n")
    assert "reference" not in run(config, dry_run=True)[1]


def test_traces_and_time_limits(config):
    limited = algorithm("klr_bench.NonConservativeKLR", time_limit_s=1e-9)
    run(altered(config, algorithms={"nc": limited}, sweep={}, trace=TraceConfig(points=9, spacing="log")))
    rows = records(config)
    assert rows[["status", "message"]].to_numpy().tolist() == [["timeout", "stopped after 1e-09 s"]] * 2
    assert (rows.accuracy > 0.5).all()
    traces = pd.read_csv(Path(config.results_dir) / "tiny" / "traces.csv")
    assert set(traces.metric) == {"accuracy", "n_support", "cumulative_loss"}
    assert set(traces.key) == set(rows.key)
    assert traces[traces.metric == "n_support"].value.tolist() == [240, 240]


def test_classifiers_of_other_libraries_are_algorithms_too(config):
    algorithms = {
        "svc": algorithm("sklearn.svm.SVC", {"C": [0.1, 10.0]}),
        "sgd": algorithm("sklearn.linear_model.SGDClassifier", loss="log_loss"),
    }
    run(altered(config, algorithms=algorithms, sweep={}, repeats=1))
    rows = records(config).set_index("algorithm")
    assert (rows.status == "ok").all()
    assert yaml.safe_load(rows.params["svc"])["gamma"] > 0
    assert 0 < float(rows.sparsity["svc"]) < 1
    assert float(rows.nonzero_fraction["sgd"]) == 1


def test_no_candidate_that_can_be_fitted_is_an_error_row(config):
    unbounded = algorithm("klr_bench.OSKL", {"R": [10.0, 100.0]}, loss="exponential", eta=1.0)
    outcome, text = run(altered(config, algorithms={"oskl": unbounded}, sweep={}, repeats=1))
    assert outcome.n_failed == 1
    assert "none of the 2 candidates of the grid could be fitted in every fold" in text
    assert records(config).status.tolist() == ["error"]


def own_module(folder, on_import=""):
    """Write a module with a class and a function that leave a file when they are called; return that file's path."""
    (folder / "own_module.py").write_text(
        "from pathlib import Path\n"
        f"mark = Path({str(folder / 'mark')!r})\n{on_import}\n"
        "def make():\n    mark.touch()\n"
        "class Learner:\n"
        "    def __init__(self, rate=1.0):\n        mark.touch()\n        raise KeyError('rate')\n"
        "    def fit(self, X, y):\n        mark.touch()\n"
        "    def predict(self, X):\n        mark.touch()\n"
    )
    return folder / "mark"


@pytest.fixture
def own_modules(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("own_module", None)


@pytest.mark.parametrize(
    "change", [{"source": made({"_target_": "own_module.make"})}, {"derive": {"_target_": "own_module.make"}}]
)
def test_a_dry_run_does_not_import_generators(config, own_modules, change):
    mark = own_module(own_modules, on_import="mark.touch()")
    _, text = run(altered(config, datasets={"small": SMALL | change}), dry_run=True)
    assert "6 cells, 0 of them done" in text
    assert not mark.exists()


def test_a_dry_run_calls_no_estimator_and_a_run_names_the_one_that_raises(config, own_modules):
    mark = own_module(own_modules)
    config = altered(config, algorithms={"mine": algorithm("own_module.Learner", {"rate": [1.0, 2.0]})}, sweep={})
    run(config, dry_run=True)
    assert not mark.exists()
    with pytest.raises(
        KlrBenchError, match=r"algorithms\.mine\.estimator: own_module\.Learner raised KeyError: 'rate'"
    ):
        run(config)
    assert not Path(config.results_dir).exists()


@pytest.mark.parametrize("base", ["", "BaseEstimator"], ids=["plain class", "BaseEstimator"])
def test_a_classifier_needs_only_fit_and_predict(config, own_modules, base):
    (own_modules / "own_module.py").write_text(
        "import numpy as np\nfrom sklearn.base import BaseEstimator\n"
        f"class Constant({base}):\n"
        "    def __init__(self, value=1):\n        self.value = value\n"
        "    def fit(self, X, y):\n        return self\n"
        "    def predict(self, X):\n        return np.full(len(X), self.value)\n"
    )
    mine = algorithm("own_module.Constant", {"value": [-1, 1]})
    outcome, text = run(altered(config, algorithms={"mine": mine}, sweep={}))
    assert outcome.n_computed == 2, text
    assert records(config).accuracy.min() > 0.3


def test_the_manifest_keeps_the_words_that_a_result_depends_on():
    words = [
        "experiment=oskl_magic",
        "seed=3",
        "results_dir=/tmp/x",
        "parallel.address=tcp://a:1",
        "+algorithms.nc.estimator.R=1",
    ]
    assert [word for word in words if not _is_place(word)] == [words[0], words[1], words[4]]


def test_the_manifest_names_the_changed_files_of_the_package(tmp_path):
    def git(*arguments):
        identity = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", "-C", str(tmp_path), *identity, *arguments], check=True, capture_output=True)

    for name in ("package/solver.py", "package/other.py", "configs/experiment/tiny.yaml", "notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    assert git_state(tmp_path / "package") == (None, [])
    git("init")
    git("add", "-A")
    git("commit", "-m", "all")
    for name in ("package/solver.py", "package/a new one.py", "notes.txt"):
        (tmp_path / name).write_text("2")
    (tmp_path / "configs/experiment/tiny.yaml").unlink()
    commit, changed = git_state(tmp_path / "package")
    assert len(commit) == 40
    assert changed == ["configs/experiment/tiny.yaml", "package/a new one.py", "package/solver.py"]


@pytest.mark.parametrize("score", ["1" + "0" * 400, "Infinity", "true", '"1"', "[1]", "NaN", "7", "-5", "{}"])
def test_impossible_scores_are_ignored(tmp_path, score):
    fold = SimpleNamespace(key="fold", selection=SelectionConfig(score="accuracy"))
    (tmp_path / "selections" / "fold").mkdir(parents=True)
    scores = json.loads(f'{{"bad": {score}, "good": 0.5, "none": null}}')
    write_checked_json(tmp_path / "selections" / "fold" / "a.json", scores)
    assert ScoreStore(tmp_path, fresh=False)._scores(fold) == {"good": 0.5, "none": None}


def test_damaged_scores_are_ignored(tmp_path):
    fold = SimpleNamespace(key="fold", selection=SelectionConfig(score="accuracy"))
    scores = {"a": 0.75, "none": None}
    path = tmp_path / "selections" / "fold" / "a.json"
    write_checked_json(path, scores)
    content = path.read_bytes()
    for bit in range(8 * len(content)):
        path.write_bytes(content[: bit // 8] + bytes([content[bit // 8] ^ 1 << bit % 8]) + content[bit // 8 + 1 :])
        assert ScoreStore(tmp_path, fresh=False)._scores(fold) in ({}, scores)


@pytest.mark.parametrize(("spare", "threads"), [(False, "1 thread"), (True, "2 threads")])
def test_the_last_cells_may_use_the_cores_that_are_left(config, spare, threads) -> None:
    alone = altered(config, algorithms={"nc": algorithm("klr_bench.NonConservativeKLR")}, sweep={}, repeats=1, n_jobs=2)
    run(altered(alone, parallel=ParallelConfig(backend="joblib", spare_threads=spare)))
    record = pd.read_csv(Path(config.results_dir) / "tiny" / "records.csv").iloc[0]
    assert record["cpu"].endswith(threads)
    manifest = yaml.safe_load((Path(config.results_dir) / "tiny" / "manifest.yaml").read_text())
    assert manifest["machine"]["threads_per_worker"] == ("1, and more for the last cells" if spare else 1)
