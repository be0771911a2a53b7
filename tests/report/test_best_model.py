"""The end of a report on the user's own file: its command and its Python code fit the same model."""

import re
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from klr_bench import load_model
from klr_bench.cli import main
from klr_bench.cli.model import parsed
from klr_bench.datasets import class_labels
from klr_bench.report import best_model
from klr_bench.report.best_model import _hydra
from klr_bench.report.load import read_results
from klr_bench.report.table import results_table
from klr_bench.results.variants import Variant
from tests.report.folders import REFERENCE

RANDOM = np.random.RandomState(0)
X = RANDOM.standard_normal((120, 2))


@pytest.mark.parametrize(
    ("algorithm", "settings", "expected"),
    [
        ("auxiliary_default", [], "data.path=mine.csv algorithm=auxiliary_default"),
        (
            "oskl_default",
            [
                "data.label=1",
                "data.scale=minmax",
                "data.positive=good",
                "data.columns={b: text}",
                "selection.score=auc",
            ],
            "data.path=mine.csv data.label=1 'data.columns={b: text}' data.scale=minmax data.positive=good",
        ),
        ("klr", ["data.group=c"], "data.path=mine.csv data.group=c algorithm=klr output"),
        ("oskl_default", ["data.group=c"], "data.path=mine.csv data.group=c algorithm=oskl_default"),
        ("oskl_default", ["data.label=1", "data.group=-1"], "data.path=mine.csv data.label=1 data.group=-1 algorithm="),
        ("svc", ["data.label=1", "data.time=3"], "data.path=mine.csv data.label=1 data.time=3 algorithm=svc"),
        (
            "oskl_default",
            ["data.label=1", "data.group=2", "data.columns={3: text}"],
            "data.path=mine.csv data.label=1 'data.columns={3: text}' data.group=2 algorithm=oskl_default",
        ),
        ("klr", ["data.time=b"], "data.path=mine.csv data.time=b algorithm=klr output"),
        ("lr_linear", [], "data.path=mine.csv algorithm=lr_linear algorithms.lr_linear.estimator.solver=lbfgs"),
    ],
)
def test_the_command_and_the_code_fit_the_same_model(
    algorithm: str, settings: list[str], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    labels = np.array(["bad", "good"])[(X[:, 0] + X[:, 1] > 0).astype(int)]
    columns = {"a": X[:, 0].round(4), "b": RANDOM.randint(3, size=120), "c": [f"{x:.2f} kg" for x in X[:, 1]]}
    table = pd.DataFrame({"state": labels, **columns} if "data.label=1" in settings else {**columns, "state": labels})
    table.to_csv("mine.csv", index=False, sep=";")
    run = ["run", "--quiet", "experiment=own_file", "data.path=mine.csv", f"algorithm=[{algorithm},majority]"]
    assert main([*run, *settings, "repeats=2", "parallel=serial", "data.cache=cache"]) == 0
    assert main(["report", "experiment=own_file", "format=md"]) == 0
    command, code = re.findall(r"```\w+\n(.*?)\n```", Path("results/own_file/report/table.md").read_text(), re.DOTALL)
    assert command.startswith(f"klr-bench fit {expected}")
    assert main(shlex.split(command)[1:]) == 0
    scope: dict[str, object] = {}
    exec(code, scope)
    features = table.drop(columns="state")
    stored, model = load_model("model.skops"), scope["model"]
    if any("data.time" in setting for setting in settings):
        assert model.classes_.tolist() == stored.classes_.tolist() == ["bad", "good"]
        return
    np.testing.assert_allclose(
        stored.decision_function(features),
        model.decision_function(features),
        rtol=1e-5,
        atol=1e-5,  # type: ignore[attr-defined]
    )


def test_the_code_leaves_out_the_labels_that_the_command_leaves_out() -> None:
    assert {*best_model.NO_LABEL} == class_labels.NO_LABEL


def test_the_best_method_is_named_only_for_a_file_of_the_user() -> None:
    command, code = results_table(read_results(REFERENCE / "own_file")).best
    means = pd.read_csv(REFERENCE / "own_file" / "records.csv").groupby("algorithm")["log_loss"].mean()
    assert command.sentence.endswith(" has the best log loss. This command fits it to all rows:")
    assert f"algorithm={means.idxmin()} output" in command.text
    assert "classifier = " in code.text
    assert results_table(read_results(REFERENCE / "oskl_magic")).best == []


@pytest.mark.parametrize(
    ("algorithms", "column", "value", "expected"),
    [
        ("majority", "log_loss", 0.01, "KLR has the best log loss. "),
        ("klr", "status", "timeout", "AuxiliaryKLR() has the best log loss, by which settings are selected; "),
        ("klr", "status", "error", "; the best accuracy is that of OSKL(). This command fits AuxiliaryKLR() to all"),
        ("klr|svc", "accuracy", 0.8, "KLR has the best log loss. "),
        ("svc", "accuracy", 0.8, "; the best accuracy is that of SVC. "),
        (".*", "log_loss", np.nan, "KLR has the best accuracy. "),
    ],
)
def test_the_best_method_is_marked_in_the_table_or_the_sentence_says_why(
    algorithms: str, column: str, value: object, expected: str
) -> None:
    results = read_results(REFERENCE / "own_file")
    records = results.records.copy()
    records.loc[records["algorithm"].str.fullmatch(algorithms), column] = value
    built = results_table(replace(results, records=records))
    command, _ = built.best
    assert expected in command.sentence
    (name,) = re.findall(r"algorithm=(\w+)", command.text)
    marks = [of_metric.lines.get((name, Variant())) for of_metric in built.blocks[0].marks.values()]
    assert "best" in [mark.place for mark in marks if mark]


@pytest.mark.parametrize(
    "value",
    [
        *(True, False, None, 1, 0, 1.0, 0.0, 1e-300, "text", [1, True], {"a": 0.0}, "0.3 scale", "R/sqrt(T)"),
        *("null", "True", "1", "-1.5e3", "nan", "S (small)", "it's", "a,b", "back\\", " ", "", "groß", "1 é"),
        *({"Pressure, systolic": "number"}, {"size (cm)": ["S (small)", "null"]}, {"a: b=c [d]": "text"}),
    ],
)
def test_values_are_those_that_hydra_reads(value: object) -> None:
    assert repr(parsed("data.columns", _hydra(value))) == repr(value)


@pytest.mark.parametrize("key", ["size", "Größe", "patient's id", "a, b", "x#"])
def test_a_command_is_shown_if_hydra_can_read_the_names_of_its_columns(key: str) -> None:
    results = read_results(REFERENCE / "own_file")
    data = results.manifest.config.data.model_copy(update={"columns": {key: "text"}})
    config = results.manifest.config.model_copy(update={"data": data})
    codes = results_table(replace(results, manifest=results.manifest.model_copy(update={"config": config}))).best
    assert [code.language for code in codes] == ["sh", "python"] if key in ("size", "a, b") else ["python"]
    if len(codes) == 1:
        assert codes[0].sentence.endswith("This code fits it to all rows:")
        return
    (word,) = [word for word in shlex.split(codes[0].text) if word.startswith("data.columns=")]
    assert parsed("data.columns", word.partition("=")[2]) == {key: "text"}


def test_failed_repeats_do_not_count_as_choices_of_parameters() -> None:
    results = read_results(REFERENCE / "own_file")
    records = results.records[results.records["algorithm"] == "oskl_default"].copy()
    failed = records["repeat"] > 1
    records.loc[failed, "status"] = "error"
    records.loc[failed, "params"] = pd.Series([{}] * failed.sum(), records.index[failed])
    command = results_table(replace(results, records=records)).best[0].text
    assert "algorithms.oskl_default.estimator.gamma=0.3 scale" in command
