"""The runner in this process: what a run writes, what its keys depend on, what it refuses."""

from __future__ import annotations

import ast
import io
import json
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


@pytest.fixture
def config(tmp_path) -> RunConfig:
    return RunConfig(
        name="tiny",
        repeats=2,
        results_dir=str(tmp_path / "results"),
        data=DataConfig(cache=str(tmp_path / "cache")),
        parallel=ParallelConfig(backend="serial"),
        selection=SelectionConfig(folds=3),
        datasets={"small": SMALL},
        algorithms={"nc": NC, "oskl": OSKL},
        sweep={"oskl": {"G": [1, 4]}},
    )


def run(config, **options) -> tuple[runner.Outcome, str]:
    console = Console(record=True, width=300, file=open("/dev/null", "w"))  # noqa: SIM115
    return runner.run(config, console=console, **options), console.export_text()


def records(config) -> pd.DataFrame:
    return pd.read_csv(Path(config.results_dir) / "tiny" / "records.csv", keep_default_na=False)


def test_a_run_writes_rows_and_a_manifest(config):
    outcome, text = run(config)
    assert (outcome.n_computed, outcome.n_found, outcome.n_failed) == (6, 0, 0)
    assert "small: 300 rows, 2 features; '0' is -1, '1' is +1" in text
    rows = records(config)
    assert rows[["algorithm", "variant", "repeat"]].to_numpy().tolist() == [
        ["nc", "{}", 0], ["nc", "{}", 1],
        *[["oskl", variant, repeat] for variant in ('{"G": 1}', '{"G": 4}') for repeat in (0, 1)],
    ]  # fmt: skip
    assert (rows.status == "ok").all()
    assert outcome.score == pytest.approx(rows.accuracy.mean())
    assert rows.n_train.tolist() == [240] * 6
    assert (rows.accuracy + rows.error_rate == 1).all()
    assert (rows.log_loss > 0).all()
    bins = pd.read_csv(Path(config.results_dir) / "tiny" / "reliability.csv")
    error = (bins.n * (bins.predicted - bins.positive).abs()).groupby(bins.key).sum() / 60
    assert rows.set_index("key").ece.to_dict() == pytest.approx(error.to_dict())
    assert rows.sparsity[0] == 0
    parameters = yaml.safe_load(rows.params[2])
    assert parameters["G"] == 1
    assert parameters["R"] in (1.0, 100.0)
    assert parameters["gamma"] > 0
    manifest = yaml.safe_load((Path(config.results_dir) / "tiny" / "manifest.yaml").read_text())
    assert manifest["config"]["sweep"] == {"oskl": {"G": [1, 4]}}
    assert manifest["machine"]["threads_per_worker"] == 1
    assert manifest["schema_version"] == 2


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


def test_a_cell_is_what_its_parts_make(config):
    config = altered(config, datasets={"small": SMALL | {"scale": "minmax"}})
    run(config)
    rows = records(config)
    folder = Path(config.results_dir) / "tiny" / "selections"
    scores = [read_checked_json(path) for path in folder.glob("*/*.json")]
    assert [len(found) for found in scores] == [8] * 6
    for cell in plan_cells(config, Path(config.data.cache)):
        row = rows.set_index("key").loc[cell.key]
        data, seed = fit._prepared(cell.source), fit.learner_seed(cell.source)
        gamma = 1 / (2 * distance_percentile(data.X_train, 20.0, seed) ** 2)
        means = []
        for candidate in cell.candidates:
            learner = build(candidate.estimator, gamma=gamma, random_state=seed)
            folds = [fold_rows(len(data.y_train), 3, fold) for fold in range(3)]
            means.append(
                np.mean(
                    [
                        learner.fit(data.X_train[rows], data.y_train[rows]).score(data.X_train[out], data.y_train[out])
                        for rows, out in folds
                    ]
                )
            )
        best = cell.candidates[int(np.argmax(np.round(means, 12)))].estimator
        learner = build(best, gamma=gamma, random_state=seed).fit(data.X_train, data.y_train)
        assert row.accuracy == learner.score(data.X_test, data.y_test)
        assert row.n_support == learner.n_support_
        assert yaml.safe_load(row.params)["gamma"] == pytest.approx(gamma)
        assert yaml.safe_load(row.params)["R"] == best["R"]
        assert row.fit_time_s > 0


def test_what_a_rehearsal_returns_is_fitted_and_the_rehearsal_is_not_timed(config, tmp_path, monkeypatch):
    monkeypatch.setenv("FITS_LOG", str(tmp_path / "fits"))
    fitted = []
    monkeypatch.setattr(fit, "measure", lambda estimator, *rest: fitted.append(estimator.choice) or ({}, 0.0, []))
    learner = algorithm("tests.runner.learners.Rehearsed")
    cell = only_cell(config, algorithms={"mine": learner})
    row = fit.run_cell(cell, cell.estimator).record
    assert row.status == "ok"
    assert fitted == [7]
    assert 0 < row.metrics["fit_time_s"] < 3


def test_repeats_differ_in_split_and_seed(config):
    first, second = (cell.source for cell in plan_cells(config, Path("cache")) if cell.variant == {"G": 1})
    assert fit.learner_seed(first) != fit.learner_seed(second)
    assert fit._prepared(first).X_train.tolist() != fit._prepared(second).X_train.tolist()


def test_the_choice_is_by_the_mean_over_folds(config, tmp_path):
    cell = only_cell(config)
    store = ScoreStore(tmp_path, fresh=False)
    for fold, scores in zip(
        cell.folds, [[0.9, 0.8, 0.8, 0.1], [0.1, 0.8, 0.8, 0.9], [0.5, 0.5, 0.6, 0.9]], strict=True
    ):
        store.write(fold, scores)
    for reader in (store, ScoreStore(tmp_path, fresh=False)):
        assert reader.choice(cell) == cell.candidates[2].estimator
        assert reader.missing(cell.folds[0]) is None
    assert ScoreStore(tmp_path, fresh=True).missing(cell.folds[0]) is not None


def in_folds(config, **selection):
    datasets = {"small": SMALL | {"split": {"folds": 3}}}
    return altered(config, datasets=datasets, selection=SelectionConfig(nested=False, **selection), repeats=4)


def test_without_nesting_the_repeats_of_a_partition_share_the_choice_that_is_best_on_their_test_rows(config):
    config = altered(in_folds(config), algorithms={"nc": NC}, sweep={})
    run(config)
    rows = records(config)
    chosen = [(params["R"], params["eta"]) for params in map(json.loads, rows.params)]
    cells = plan_cells(config, Path(config.data.cache))
    assert [[fold.source.repeat for fold in cell.folds] for cell in cells] == [[0, 1, 2]] * 3 + [[3, 4, 5]]
    means = []
    for candidate in cells[0].candidates:
        accuracies = []
        for cell in cells[:3]:
            data, seed = fit._prepared(cell.source), fit.learner_seed(cell.source)
            gamma = 1 / (2 * distance_percentile(data.X_train, 20.0, seed) ** 2)
            learner = build(candidate.estimator, gamma=gamma, random_state=seed).fit(data.X_train, data.y_train)
            accuracies.append(learner.score(data.X_test, data.y_test))
        means.append(np.mean(accuracies))
    best = cells[0].candidates[int(np.argmax(np.round(means, 12)))].chosen
    assert chosen[:3] == [(best["R"], best["eta"])] * 3
    assert rows.accuracy[:3].mean() == pytest.approx(max(means))


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
    datasets = {"small": SMALL, "other": SMALL | {"label": "Other"}}
    config = altered(config, datasets=datasets, left_out={"other": {"oskl": {"G": [4]}}}, repeats=1)
    planned = {(cell.source.stem, cell.algorithm, str(dict(cell.variant))) for cell in plan_cells(config, Path("c"))}
    everything = {(stem, *column) for stem in datasets for column in columns_of(config)}
    assert everything - planned == {("other", "oskl", "{'G': 4}")}
    everywhere = altered(config, left_out={"other": {"oskl": {}}})
    assert [cell.algorithm for cell in plan_cells(everywhere, Path("c")) if cell.source.stem == "other"] == ["nc"]


def columns_of(config):
    cells = plan_cells(altered(config, left_out={}), Path("c"))
    return {(cell.algorithm, str(dict(cell.variant))) for cell in cells}


def test_keys_hold_the_code_of_the_solver(config, monkeypatch):
    before = only_cell(config)
    key, fold_key = before.key, before.folds[0].key
    monkeypatch.setattr("klr_bench.runner.plan.source_hash", lambda target: "another version")
    after = only_cell(config)
    assert after.key != key
    assert after.candidates[0].key != before.candidates[0].key
    assert after.folds[0].key == fold_key


CODE = {
    "splits": "klr_bench.datasets.splits",
    "selection": "klr_bench.runner.selection",
    "metrics": "klr_bench.metrics.compute",
    "predictions": "klr_bench.metrics.predictions",
    "protocols": "klr_bench.protocols",
    "work": "klr_bench.runner.fit",
}


@pytest.mark.parametrize("module", CODE.values(), ids=CODE)
def test_keys_hold_the_code_that_splits_selects_and_measures(config, monkeypatch, module):
    def keys():
        cell = only_cell(config)
        return cell.key, cell.folds[0].key

    known = keys()
    monkeypatch.setattr(
        "klr_bench.runner.plan.module_hash",
        lambda *names: "mended" if module in names else module_hash(*names),
    )
    assert not set(keys()) & set(known)


METRICS_FOLDER = Path(klr_bench.__file__).parent / "metrics"
F1 = '    Metric("f1", "F1", "percent", "higher"'


@pytest.mark.parametrize(
    ("path", "old", "new", "same"),
    [
        (METRICS_FOLDER / "labels.py", F1, F1.replace("F1", "F-measure"), True),
        (METRICS_FOLDER / "labels.py", F1, F1.replace("percent", ""), True),
        (METRICS_FOLDER / "metric.py", "1.2e-05", "1.2 10^-5", True),
        (METRICS_FOLDER / "compute.py", "return 2 tp", "return two tp", True),
        (METRICS_FOLDER / "compute.py", "2 * both / either", "3 * both / either", False),
    ],
    ids=["title", "unit", "format", "docstring", "function"],
)
def test_only_the_function_of_a_metric_is_part_of_a_key(config, monkeypatch, path, old, new, same):
    """Results computed before a change of its title, unit or format are found again; after one of its code, none."""
    run(config)

    def edited(read, *most):
        if Path(read) != path:
            return regular(read, *most)
        content = path.read_text()
        assert old.lower() in content.lower()
        return io.BytesIO(content.replace(old, new).encode())

    monkeypatch.setattr(keys, "regular", edited)
    for cached in (keys.source_hash, keys.module_hash, keys._module):
        cached.cache_clear()
    try:
        outcome, text = run(config, dry_run=True)
    finally:
        for cached in (keys.source_hash, keys.module_hash, keys._module):
            cached.cache_clear()
    n_cells = len(plan_cells(config, Path(config.data.cache)))
    assert outcome.n_found == (n_cells if same else 0)
    assert ("would run 0 folds of selection (0 fits) and 0 cells" in text) == same


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
def test_keys_hold_the_code_of_a_metric_in_a_file_and_not_its_labels(config, monkeypatch, tmp_path, old, new, same):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "configs" / "metric" / "mine.py"
    path.parent.mkdir(parents=True)
    text = 'METRIC = Metric("mine", "Mine", unit="percent", better="higher", of=lambda _: 0.5)  # rate'
    path.write_text(text)
    asked = altered(config, metrics=["accuracy", "mine"])
    first = only_cell(asked).key
    assert first != only_cell(config).key
    path.write_text(text.replace(old, new))
    file_hash.cache_clear()
    assert (only_cell(asked).key == first) == same
    file_hash.cache_clear()


def test_a_large_plan_hashes_a_module_and_a_candidate_once(config, monkeypatch):
    """1,000 cells of 5 folds and 8 candidates: what grows with their number is one hash a cell and one a fold."""
    parsed, hashed = [], []
    monkeypatch.setattr(ast, "parse", lambda *args, parse=ast.parse: parsed.append(args) or parse(*args))
    monkeypatch.setattr(plan, "content_hash", lambda content: hashed.append(1) or content_hash(content))
    monkeypatch.setattr(plan, "dataset_hash", lambda *args, of=plan.dataset_hash: hashed.append(1) or of(*args))
    for cached in (keys.source_hash, keys.module_hash, keys._module):
        cached.cache_clear()
    nc = NC | {"grid": {"R": [1.0, 10.0], "eta": [0.1, 0.2, 0.5, 1.0]}}
    large = altered(config, repeats=250, selection=SelectionConfig(folds=5), algorithms={"nc": nc, "oskl": OSKL})
    large = altered(large, sweep={"oskl": {"G": [1, 2, 4]}})
    cells = plan_cells(large, Path("cache"))
    assert len({cell.key for cell in cells}) == 1000
    assert len(group_folds(cells)) == 250 * 5
    assert len(parsed) < 100
    assert len(hashed) == 1 + (8 + 3 * 2) + 2 * 1000 + 5 * 1000


def test_entries_that_are_not_zero_are_counted_in_any_layout():
    X = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0]])
    stored_zero = sp.csr_matrix(X)
    stored_zero.data[0] = 0.0
    assert fit.nonzero_per_row(X) == fit.nonzero_per_row(sp.csr_matrix(X)) == 1.0
    assert fit.nonzero_per_row(stored_zero, X) == 3 / 4


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


def test_labels_outlive_a_run_of_a_part(config):
    run(altered(config, algorithms={"nc": NC | {"label": "Baseline"}, "oskl": OSKL}))
    run(altered(config, algorithms={"oskl": OSKL}))
    manifest = yaml.safe_load((Path(config.results_dir) / "tiny" / "manifest.yaml").read_text())
    assert manifest["labels"]["algorithms"] == {"nc": "Baseline", "oskl": "klr_bench.OSKL"}


def test_refuses_what_cannot_be_learned(config):
    with pytest.raises(KlrBenchError, match=r"expected a classifier, got .*LinearRegression', a regressor"):
        run(altered(config, algorithms={"nc": algorithm("sklearn.linear_model.LinearRegression")}, sweep={}))
    with pytest.raises(KlrBenchError, match=r"has 240 training rows, .* and 400 in all \(two per fold\) are needed"):
        run(altered(config, selection=SelectionConfig(folds=200)))
    assert not Path(config.results_dir).exists()


def test_more_than_two_classes(config):
    source = {
        "_target_": f"{SYNTHETIC}.gaussian_mixtures",
        "n_classes": 3,
        "components": 1,
        "spread": 0.8,
    }
    three = SMALL | {
        "multiclass": True,
        "source": made(source | {"n_samples": 300, "seed": 3}),
    }
    logistic = algorithm("sklearn.linear_model.LogisticRegression", {"C": [1e-6, 1.0]})
    config = altered(config, datasets={"three": three}, algorithms={"lr": logistic}, sweep={})
    for score in ("accuracy", "log_loss"):
        outcome, text = run(altered(config, selection=SelectionConfig(folds=3, score=score), force=True))
        assert (outcome.n_computed, outcome.n_failed) == (2, 0)
        assert "three: 300 rows, 2 features; 3 classes: 0, 1, 2" in text
        rows = records(config)
        assert rows.accuracy.min() > 0.85
        assert rows.log_loss.max() < 0.4
        assert [json.loads(params)["C"] for params in rows.params] == [1.0, 1.0]
    with pytest.raises(KlrBenchError, match=r"two: takes two classes, three has 3\. Leave it out"):
        run(altered(config, algorithms={"lr": logistic, "two": algorithm("tests.runner.learners.OfTwoClasses")}))
    few = three | {
        "source": made(source | {"n_samples": 12, "seed": 3}),
        "split": {"test_size": 0.75},
    }
    with pytest.raises(KlrBenchError, match="0 of the rarest class"):
        run(altered(config, repeats=20, datasets={"three": few}, selection=SelectionConfig(folds=2)))


def test_a_second_run_computes_nothing_and_force_computes_all(config):
    first, _ = run(config)
    assert run(config)[0] == runner.Outcome(0, 6, [], first.score)
    outcome, _ = run(altered(config, force=True))
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


def test_the_order_of_learners_does_not_change_results(config, tmp_path):
    run(config)
    other = altered(
        config,
        results_dir=str(tmp_path / "other"),
        algorithms={"oskl": OSKL, "nc": NC},
        sweep={"oskl": {"G": [4, 1]}},
    )
    run(other)
    times = ["fit_time_s", "predict_time_s", "peak_memory_mb", "load"]
    pd.testing.assert_frame_equal(records(config).drop(columns=times), records(other).drop(columns=times))


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


@pytest.mark.parametrize(
    "changes",
    [
        {"n_jobs": 2},
        {"results_dir": "elsewhere"},
        {"title": "another"},
        {"repeats": 7},
        {"algorithms": {"nc": NC | {"label": "Baseline"}}},
        {"datasets": {"small": SMALL | {"label": "Other"}}},
        {"data": DataConfig(mirror="/somewhere")},
    ],
    ids=str,
)
def test_keys_depend_on_nothing_else(config, changes):
    assert only_cell(config).key == only_cell(config, **changes).key
    assert only_cell(config).config_hash == only_cell(config, **changes).config_hash


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


def test_older_configurations_are_counted_and_not_listed(config):
    run(config)
    changed = altered(config, kernel=altered(config.kernel, percentile=5.0), algorithms={"nc": NC}, sweep={})
    _, text = run(changed)
    assert "2 cells of older configurations are not listed: nc on small (2 of configuration" in text
    assert records(config).algorithm.tolist() == ["nc", "nc", "oskl", "oskl", "oskl", "oskl"]
    older = records(config).params[0]
    run(config)  # back again: the first configuration is what is asked for
    assert records(config).params[0] != older


def test_dry_run_writes_nothing(config):
    outcome, text = run(config, dry_run=True)
    assert not Path(config.results_dir).exists()
    assert (outcome.n_computed, outcome.n_failed) == (0, 0)
    assert "tiny: 6 cells, 0 of them done" in text
    assert "would run 6 folds of selection (48 fits) and 6 cells:" in text
    assert "nc on small" in text
    assert "nc on small" not in run(config, dry_run=True, quiet=True)[1]
    run(config)
    assert "tiny: 6 cells, 6 of them done" in run(config, dry_run=True)[1]


def test_a_dry_run_says_how_long_the_reference_took(config, monkeypatch, tmp_path):
    monkeypatch.setattr(dry_run, "FOLDER", tmp_path / "reference")
    assert "reference" not in run(config, dry_run=True)[1], "an installed package has none beside it"
    records = tmp_path / "reference" / "tiny" / "records.csv"
    records.parent.mkdir(parents=True)
    records.write_text("key,fit_time_s,predict_time_s\na,100.5,1\nb,18.5,\nc,,\n")
    said = "reference: 3 cells, whose fits and predictions took 2 min in all"
    assert said in run(config, dry_run=True)[1]
    of_a_file = altered(config, data=altered(config.data, path="mine.csv"))
    assert "reference" not in run(of_a_file, dry_run=True)[1], "it was made of another file"
    records.write_text("key,fit_time_s\na,long\n")
    assert "reference" not in run(config, dry_run=True)[1]


def test_traces_and_time_limits(config):
    limited = algorithm("klr_bench.NonConservativeKLR", time_limit_s=1e-9)
    run(altered(config, algorithms={"nc": limited}, sweep={}, trace=TraceConfig(points=9, spacing="log")))
    rows = records(config)
    assert rows.status.tolist() == ["timeout", "timeout"]
    assert rows.message.tolist() == ["stopped after 1e-09 s"] * 2
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


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (
            algorithm("klr_bench.MarginKLR", eta=2.0),
            "algorithms.nc.estimator: The 'eta' parameter of MarginKLR must be",
        ),
        (algorithm("klr_bench.MarginKLR", {"eta": [0.1, 3]}), "'eta' parameter of MarginKLR must be .* Got 3"),
        (algorithm("klr_bench.OSKL", G=0.5), "'G' parameter of OSKL must be at least G1 = 1"),
        (algorithm("klr_bench.OSKL", R=-1), "'R' parameter of OSKL must be"),
        (algorithm("klr_bench.OSKL", R="big"), "'R' parameter of OSKL must be"),
    ],
    ids=str,
)
def test_parameters_are_refused_before_anything_is_written(config, broken, message):
    with pytest.raises(KlrBenchError, match=message):
        run(altered(config, algorithms={"nc": broken}, sweep={}))
    assert not Path(config.results_dir).exists()


def test_a_results_folder_that_cannot_be_written_is_refused(config, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(KlrBenchError, match="file: expected a folder, got a file"):
        run(altered(config, results_dir=str(tmp_path / "file" / "results")))


def hostile(folder, kind):
    """A module that leaves a file when it is imported, and a class and a function that do when they are called."""
    (folder / "hostile.py").write_text(
        "from pathlib import Path\n"
        f"mark = Path({str(folder / 'mark')!r})\n"
        f"{'mark.touch()' if kind == 'on import' else ''}\n"
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
    sys.modules.pop("hostile", None)


@pytest.mark.parametrize(
    "change", [{"source": made({"_target_": "hostile.make"})}, {"derive": {"_target_": "hostile.make"}}]
)
def test_a_dry_run_does_not_import_what_makes_data(config, own_modules, change):
    mark = hostile(own_modules, "on import")
    _, text = run(altered(config, datasets={"small": SMALL | change}), dry_run=True)
    assert "6 cells, 0 of them done" in text
    assert not mark.exists()
    assert "hostile" not in sys.modules


def test_a_dry_run_calls_no_estimator_and_a_run_names_the_one_that_raises(config, own_modules):
    mark = hostile(own_modules, "on call")
    config = altered(config, algorithms={"mine": algorithm("hostile.Learner", {"rate": [1.0, 2.0]})}, sweep={})
    run(config, dry_run=True)
    assert not mark.exists()
    with pytest.raises(KlrBenchError, match=r"algorithms\.mine\.estimator: hostile\.Learner raised KeyError: 'rate'"):
        run(config)
    assert not Path(config.results_dir).exists()


@pytest.mark.parametrize("base", ["", "BaseEstimator"], ids=["plain class", "BaseEstimator"])
def test_a_classifier_needs_no_more_than_fit_and_predict(config, own_modules, base):
    (own_modules / "hostile.py").write_text(
        "import numpy as np\nfrom sklearn.base import BaseEstimator\n"
        f"class Constant({base}):\n"
        "    def __init__(self, value=1):\n        self.value = value\n"
        "    def fit(self, X, y):\n        return self\n"
        "    def predict(self, X):\n        return np.full(len(X), self.value)\n"
    )
    mine = algorithm("hostile.Constant", {"value": [-1, 1]})
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
    (tmp_path / "notes.txt").write_text("2")
    commit, changed = git_state(tmp_path / "package")
    assert (len(commit), changed) == (40, [])
    (tmp_path / "package/solver.py").write_text("2")
    (tmp_path / "package/a new one.py").write_text("2")
    (tmp_path / "configs/experiment/tiny.yaml").unlink()
    expected = ["configs/experiment/tiny.yaml", "package/a new one.py", "package/solver.py"]
    assert git_state(tmp_path / "package") == (commit, expected)


@pytest.mark.parametrize("labels", [5, None, {"algorithms": 5}, {"algorithms": {"a": [1]}}])
def test_a_damaged_manifest_does_not_stop_a_run(config, labels):
    config = altered(config, algorithms={"nc": algorithm("klr_bench.NonConservativeKLR")}, sweep={})
    run(config)
    path = Path(config.results_dir) / config.name / "manifest.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | {"labels": labels}))
    run(config)
    assert yaml.safe_load(path.read_text())["labels"]["algorithms"] == {"nc": "klr_bench.NonConservativeKLR"}


@pytest.mark.parametrize("score", ["1" + "0" * 400, "Infinity", "true", '"1"', "[1]", "NaN", "7", "-5", "{}"])
def test_scores_that_cannot_be_are_not_believed(tmp_path, score):
    fold = SimpleNamespace(key="fold", selection=SelectionConfig(score="accuracy"))
    (tmp_path / "selections" / "fold").mkdir(parents=True)
    scores = json.loads(f'{{"bad": {score}, "good": 0.5, "none": null}}')
    write_checked_json(tmp_path / "selections" / "fold" / "a.json", scores)
    assert ScoreStore(tmp_path, fresh=False)._scores(fold) == {"good": 0.5, "none": None}


def test_no_flipped_bit_in_the_scores_changes_one(tmp_path):
    fold = SimpleNamespace(key="fold", selection=SelectionConfig(score="accuracy"))
    scores = {"a": 0.75, "b": 0.5, "none": None}
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
