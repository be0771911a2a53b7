"""`klr-bench fit` and `predict`: on irregular files, the predictions are those of the pipeline in Python."""

import io
import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import klr_bench
from klr_bench import KLR, OSKL, TablePreparer, load_model, save_model
from klr_bench.cli import main
from klr_bench.errors import KlrBenchError
from klr_bench.model_file import ABOUT, dump, load
from klr_bench.model_trust import check_nodes

RANDOM = np.random.RandomState(0)
X = RANDOM.standard_normal((160, 2))
CLASS = (X[:, 0] * X[:, 1] > 0).astype(int)
FAST = ["algorithms.klr.estimator.max_rounds=0", "algorithms.klr.estimator.cv=2"]
KLR_FAST = KLR(max_rounds=0, cv=2, random_state=0)


def semicolons_and_units() -> tuple[pd.DataFrame, str, dict[str, Any]]:
    """Text labels in the first column, semicolons, units and thousands."""
    weights, prices = [f"{20 + 5 * x:.1f} kg" for x in X[:, 0]], [f"{1000 * (5 + x):,.2f}" for x in X[:, 1]]
    return (
        pd.DataFrame({"state": np.array(["bad", "good"])[CLASS], "weight": weights, "price": prices}),
        "state",
        {"sep": ";"},
    )


def missing_values() -> tuple[pd.DataFrame, str, dict[str, Any]]:
    """Integer labels, and missing numbers and texts, spelled in several ways."""
    a = [["", "?", "NA"][i % 3] if i % 7 == 3 else f"{x:.3f}" for i, x in enumerate(X[:, 0])]
    text = [["red", "", "blue", "green"][i % 4] for i in range(160)]
    return pd.DataFrame({"a": a, "color": text, "b": X[:, 1].round(3), "class": 3 + 4 * CLASS}), "class", {}


def dates_and_identifiers() -> tuple[pd.DataFrame, str, dict[str, Any]]:
    """Columns that are left out, and three classes, 2, 10 and 11."""
    dates = pd.date_range("2020-01-01", periods=160).strftime("%d.%m.%Y")
    classes = np.array([2, 10, 11])[CLASS + (X[:, 0] > 1)]
    table = {"customer_id": RANDOM.permutation(160) + 7000, "since": dates, "x": X[:, 0], "y": X[:, 1], "kind": classes}
    return pd.DataFrame(table), "kind", {}


def categories() -> tuple[pd.DataFrame, str, dict[str, Any]]:
    """Categories only, tabs, and labels true and false."""
    table = {f"c{j}": np.array(["low", "middle", "high"])[np.digitize(X[:, j], [-0.5, 0.5])] for j in (0, 1)}
    return pd.DataFrame(table | {"two": np.where(X[:, 0] > 0, "yes", "no"), "ok": CLASS > 0}), "ok", {"sep": "\t"}


def without_header() -> tuple[pd.DataFrame, str, dict[str, Any]]:
    """Numbers without a header, one column with a long tail, and the label in between."""
    table = {"column 1": np.exp(3 * X[:, 0]), "column 2": np.array(["n", "p"])[CLASS], "column 3": X[:, 1]}
    return pd.DataFrame(table), "column 2", {"header": False}


FILES = [semicolons_and_units, missing_values, dates_and_identifiers, categories, without_header]
ALGORITHMS = {
    "klr": (KLR_FAST, FAST),
    "oskl_default": (OSKL(random_state=0), []),
    "lr_linear": (LogisticRegression(solver="lbfgs", C=2.5, max_iter=1000, random_state=0), []),
}
ALGORITHMS["lr_linear"][1].extend(f"algorithms.lr_linear.estimator.{setting}" for setting in ("C=2.5", "solver=lbfgs"))


def new_rows(table: pd.DataFrame, label: str, *, header: bool) -> pd.DataFrame:
    """Return unlabeled rows with another column order, a new category, and further columns."""
    new = table.drop(columns=label).iloc[::-2]
    if not header:
        return new
    for name in new.columns:
        if name in ("color", "c1"):
            new[name] = "new"
    return new.iloc[:, ::-1].assign(comment="none")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.__name__)
def test_the_predictions_are_those_of_the_pipeline_in_python(
    file: Callable[[], tuple[pd.DataFrame, str, dict[str, Any]]], algorithm: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table, label, options = file()
    header = options.get("header", True)
    table.to_csv("train.csv", index=False, **options)
    new_rows(table, label, header=header).to_csv("new.csv", index=False, **options)
    classifier, parameters = ALGORITHMS[algorithm]
    position = label if header else str(table.columns.get_loc(label) + 1)
    words = ["data.path=train.csv", f"data.label={position}", "output=a/model.skops", f"algorithm={algorithm}"]
    assert main(["fit", *words, *parameters]) == 0
    fitted = capsys.readouterr().out
    assert main(["predict", "model=a/model.skops", "data.path=new.csv", "output=b/found.csv"]) == 0
    assert ("validation log loss and standard error: KLR 0." in fitted) == (algorithm == "klr")
    assert "Next: klr-bench predict model=a/model.skops data.path=NEW.csv output=predictions.csv" in fitted

    def frame(name: str, columns: list[str] | None = None) -> pd.DataFrame:
        named = {} if header else {"header": None, "names": columns}
        return pd.read_csv(name, sep=options.get("sep", ","), **named)

    train = frame("train.csv", [*table])
    new = frame("new.csv", [name for name in table if name != label]).drop(columns="comment", errors="ignore")
    pipeline = make_pipeline(TablePreparer(), classifier).fit(train.drop(columns=label), train[label])
    found = pd.read_csv("b/found.csv")
    expected = pipeline.predict(new)
    assert found["prediction"].tolist() == expected.tolist()
    assert len(set(expected)) > 1
    assert [*found] == ["prediction", *(f"probability_{name}" for name in pipeline.classes_)]
    np.testing.assert_allclose(found.iloc[:, 1:], pipeline.predict_proba(new), atol=1e-6)
    stored = load_model("a/model.skops")
    np.testing.assert_allclose(stored.predict_proba(new), found.iloc[:, 1:], rtol=1e-6)  # float32 has seven digits


def test_a_classifier_without_probabilities_and_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    table, _, _ = dates_and_identifiers()
    table.assign(kind=[["u", "v", ""][i % 3] for i in range(160)]).to_csv("train.csv", index=False)
    assert main(["fit", "data.path=train.csv", "output=svc.skops", "algorithm=svc", "data.columns={x:leave_out}"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [
        f"{Path.cwd()}/train.csv: 107 rows",
        "  labels: column 5 ('kind'); 2 classes: u (54), v (53)",
        "  left out: 53 rows without a label (empty)",
    ]
    assert lines[4] == "  1 column of dates or times: since (year, month, weekday)"
    assert lines[5].startswith("  left out: customer_id: identifiers, all different; x: as requested.")
    assert lines[6].startswith("SVC: fitted to 107 rows and 4 features in ")
    assert lines[7] == f"svc.skops: {os.path.getsize('svc.skops') / 1000:,.0f} kB"
    assert main(["predict", "model=svc.skops", "data.path=train.csv", "output=found.csv"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out.startswith("found.csv: 160 rows, predicted as u (")
    assert [*pd.read_csv("found.csv")] == ["prediction"]


def test_classes_with_few_rows_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    pd.DataFrame({"x": X[:, 0], "class": ["rare"] * 9 + ["a"] * 151}).to_csv("train.csv", index=False)
    assert main(["fit", "data.path=train.csv", "output=lr.skops", "algorithm=lr_linear"]) == 0
    assert capsys.readouterr().err.startswith("warning: few rows of rare (9): they may never be predicted.")


MISTAKES = {
    "fit": "fit: expected data.path=..., got none. Try klr-bench fit data.path=train.csv output=model.skops",
    "fit train.csv output=m": "fit: expected data.path=..., got 'train.csv'.",
    "fit data.path=no.csv output=m": "data.path: {}/no.csv does not exist; expected a CSV file.",
    "fit data.path=a.svm output=m": "{}/a.svm: expected a CSV file, got LIBSVM text",
    "fit data.path=train.csv output=train.csv": "output=train.csv: expected the name of a file to write, got the file",
    "fit data.path=train.csv output=.": "output=.: expected the name of a file to write, got a folder.",
    "fit data.path=train.csv output=m data.label=clas": "{}/train.csv: there is no label column 'clas' (data",
    "fit data.path=train.csv output=m data.label=b": "{}/train.csv: expected 2 to 100 classes in the training",
    "fit data.path=train.csv output=m algorithm=kl": "unknown algorithm 'kl'.",
    "fit data.path=train.csv output=m algorithms.klr.estimator.max_suport=5": "unknown key 'algorithms.klr.est",
    "fit data.path=train.csv output=m algorithms.klr.estimator.max_support=0": "algorithms.klr.estimator: The 'max_sup",
    "fit data.path=train.csv output=m algorithms.oskl.estimator.G=1": "unknown key 'algorithms.oskl.estimator.G'.",
    "fit data.path=train.csv output=m target=x": "unknown key 'target'.",
    "fit data.path=train.csv output=m seed=-1": "seed: expected from 0 to 4294967295, got -1.",
    "fit data.path=train.csv output=m data.columns={{a:txt}}": "data.columns.a: unknown value 'txt'.",
    "fit data.path=train.csv output=m data.columns=[": "data.columns: cannot read '['.",
    "fit data.path=wrong.csv output=m": "{}/wrong.csv, line 3, column 1 ('a'): 'x' is not a number, unlike 48 of",
    "predict model=m data.path=train.csv": "predict: expected output=..., got none.",
    "predict model=m data.path=train.csv output=p": "model: m does not exist; expected a model file of klr-bench fit.",
    "predict model=train.csv data.path=train.csv output=p": "train.csv: expected a model file of klr-bench fit",
}


OWN = """\
from sklearn.linear_model import LogisticRegression


class Own(LogisticRegression):
    def fit(self, X, y):
        assert len(X) < 160, "trained before it was checked"
        return super().fit(X, y)
"""


def test_rows_of_one_column_are_all_predicted() -> None:
    """A missing value is written as a pair of quotes, and a comma or blank is part of a value."""
    x = pd.Series(X[:, 0].round(3))
    for name, values in (("x", x), ("city", np.where(x > 0, "New York", "San Diego, Old Town"))):
        pd.DataFrame({name: values, "class": CLASS}).to_csv("train.csv", index=False)
        assert main(["fit", "data.path=train.csv", "output=one.skops", "algorithm=oskl_default"]) == 0
        new = pd.DataFrame({name: values}).iloc[:3]
        new.loc[1, name] = None
        new.to_csv("new.csv", index=False)
        assert main(["predict", "model=one.skops", "data.path=new.csv", "output=p.csv"]) == 0
        expected = load_model("one.skops").predict(new.astype(object).where(new.notna(), ""))
        np.testing.assert_array_equal(pd.read_csv("p.csv")["prediction"], expected)


def test_advice_names_the_column_of_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    weights = [f"{20 + int(x > 0)} {'kg' if i % 2 else 'lb'}" for i, x in enumerate(X[:, 0])]
    pd.DataFrame({"y": CLASS, "a": X[:, 1], "net weight": weights}).to_csv("train.csv", index=False)
    words = ["fit", "data.path=train.csv", "data.label=y", "output=m.skops", "algorithm=oskl_default"]
    assert main(words) == 0
    printed = capsys.readouterr()
    assert "data.columns={3: text}" in printed.out + printed.err
    assert main([*words, "data.columns={3: text}"]) == 0


def test_the_positive_class_of_several_leaves_the_notes(capsys: pytest.CaptureFixture[str]) -> None:
    labels = np.repeat(["Yes", "yes", "No", "NA"], 40)
    pd.DataFrame({"x": X[:, 0], "y": labels}).to_csv("train.csv", index=False)
    assert main(["fit", "data.path=train.csv", "data.positive=Yes", "output=m.skops", "algorithm=oskl_default"]) == 0
    printed = capsys.readouterr()
    assert "'yes'" in printed.out + printed.err
    assert "left out: 40 rows" in printed.out


@pytest.mark.parametrize(("algorithm", "refused"), [("random_forest", "sklearn.tree._tree.Tree"), ("own", "own.Own")])
def test_a_classifier_that_cannot_be_stored_is_refused_before_it_is_trained(
    algorithm: str, refused: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("own.py").write_text(OWN)
    Path("configs/algorithm").mkdir(parents=True)
    Path("configs/algorithm/own.yaml").write_text("# @package algorithms.own\nestimator: {_target_: own.Own}\n")
    monkeypatch.syspath_prepend(Path.cwd())
    missing_values()[0].to_csv("train.csv", index=False)
    assert main(["fit", "data.path=train.csv", "output=m", f"algorithm={algorithm}"]) == 2
    message = (
        f"error: algorithm={algorithm}: the model cannot be stored: load_model would refuse the type {refused}. Use"
    )
    assert capsys.readouterr().err.startswith(message)
    assert not Path("m").exists()


@pytest.mark.parametrize("words", MISTAKES)
def test_mistakes_are_refused_in_one_line(words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing_values()[0].to_csv("train.csv", index=False)
    Path("a.svm").write_text("1 1:2 2:3\n-1 1:3\n" * 10)
    Path("wrong.csv").write_text("a,b\n" + "".join(f"{'x' if i == 1 else i * i},{i % 2}\n" for i in range(49)))
    assert main(words.format().split()) == 2
    out, err = capsys.readouterr()
    assert err.startswith(f"error: {MISTAKES[words].format(tmp_path)}".replace(f"{tmp_path}/m:", "m:"))
    assert (out, err.count("\n")) == ("", 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.svm", "train.csv", "wrong.csv"]


@pytest.fixture
def stored() -> Path:
    """Return the path of a small model file of `klr-bench fit`."""
    semicolons_and_units()[0].to_csv("train.csv", index=False, sep=";")
    assert main(["fit", "data.path=train.csv", "data.label=state", "output=model.skops", "algorithm=oskl_default"]) == 0
    return Path("model.skops")


@pytest.mark.usefixtures("stored")
def test_wrong_new_rows_are_refused_in_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    capsys.readouterr()
    for content, message in {
        "weight,state\n1 kg,good\n": "{}: expected the columns 'price', which are missing; got 'weight'.",
        "weight,price\n1 lb,5\n": "{}, line 2, column 1 ('weight'): '1 lb' is not a number with the unit 'kg' between",
        "1 kg,5\n2 kg,6\n": "{}: expected the columns 'weight', 'price', which are missing; got 'column 1', ",
        "weight,price\n": "{}: no rows.",
        "weight,price,state,state\n1 kg,5,good,bad\n": "{} has several columns with the name 'state'; rename them.",
        "weight,price\n1 kg\n": "{}, line 2: expected 2 columns as in the first line, got 1",
    }.items():
        Path("new.csv").write_text(content)
        assert main(["predict", "model=model.skops", "data.path=new.csv", "output=found.csv"]) == 2
        out, err = capsys.readouterr()
        assert err.startswith(f"error: {message.format(tmp_path / 'new.csv')}")
        assert (out, err.count("\n")) == ("", 1)
    assert not Path("found.csv").exists()


def test_a_header_of_new_rows_is_refused_if_the_training_file_has_none(capsys: pytest.CaptureFixture[str]) -> None:
    rows = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": CLASS})
    rows.to_csv("train.csv", index=False, header=False)
    assert main(["fit", "data.path=train.csv", "output=model.skops", *FAST]) == 0
    for table in (rows, rows[["a", "b"]]):
        table[:20].to_csv("new.csv", index=False)
        capsys.readouterr()
        assert main(["predict", "model=model.skops", "data.path=new.csv", "output=found.csv"]) == 2
        assert "new.csv: the first line is a header, but the training file has none" in capsys.readouterr().err
    rows[:20].to_csv("new.csv", index=False, header=False)
    assert main(["predict", "model=model.skops", "data.path=new.csv", "output=found.csv"]) == 0
    assert len(pd.read_csv("found.csv")) == 20


def test_a_random_generator_is_one_of_numpy() -> None:
    check_nodes(schema := generator("PCG64"))
    assert schema["__loader__"] == "RandomGeneratorNode"
    with pytest.raises(ValueError, match="an unknown generator of random numbers"):
        check_nodes(generator("set_bit_generator"))


def generator(name: str) -> dict[str, Any]:
    """Return the description of a random generator by skops, with the name of its class."""
    save = skops.io.dumps(np.random.default_rng(0))
    with zipfile.ZipFile(io.BytesIO(save)) as archive:
        return json.loads(archive.read("schema.json").decode().replace("PCG64", name))


def changed(path: Path, **versions: str) -> Path:
    """Return a copy of a model file with other versions."""
    copy = path.with_name("changed.skops")
    with zipfile.ZipFile(path) as before, zipfile.ZipFile(copy, "w") as after:
        for name in before.namelist():
            content = before.read(name)
            if name == ABOUT:
                about = json.loads(content)
                about["versions"] |= versions
                content = json.dumps(about).encode()
            after.writestr(name, content)
    return copy


def test_another_version_is_named(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with zipfile.ZipFile(stored) as archive:
        about = json.loads(archive.read(ABOUT))
    assert about["versions"].keys() == {"klr-bench", "scikit-learn", "numpy"}
    assert about["versions"]["klr-bench"] == klr_bench.__version__
    other = changed(stored, **{"klr-bench": "9.9"})
    with pytest.warns(UserWarning, match=r"it was written with klr-bench 9\.9; this is klr-bench 0\."):
        load_model(other)
    assert main(["predict", f"model={other}", "data.path=train.csv", "output=found.csv"]) == 0
    assert "warning: changed.skops: it was written with klr-bench 9.9; this is" in capsys.readouterr().err


def test_a_version_whose_models_cannot_be_loaded_is_refused(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = changed(stored, **{"klr-bench": "9.9"})
    monkeypatch.setattr(OSKL, "_get_param_names", lambda *_: ["loss", "invented"])
    expected = (
        r"the model cannot be loaded \(.*lacks invented.*\); it was written with klr-bench 9\.9; .* Fit the model"
    )
    with pytest.raises(KlrBenchError, match=expected):
        load_model(other)


def test_no_other_type_is_stored_or_loaded() -> None:
    called = make_pipeline(FunctionTransformer(os.system), LogisticRegression())
    with pytest.raises(KlrBenchError, match=r"cannot be stored: load_model would refuse the type posix\.system"):
        save_model(called, "model.skops")
    skops.io.dump(called, "model.skops")
    with zipfile.ZipFile("model.skops", "a") as archive:
        archive.writestr(ABOUT, '{"versions": {}}')
    with pytest.raises(KlrBenchError, match=r"model\.skops: contains the type posix\.system, which klr-bench does not"):
        load_model("model.skops")
    Path("model.skops").write_bytes(pickle.dumps(OSKL()))
    with pytest.raises(KlrBenchError, match="expected a model file of klr-bench fit or save_model"):
        load_model("model.skops")


def test_damaged_files_are_refused(stored: Path) -> None:
    content = stored.read_bytes()
    for end in range(0, len(content), 997):
        Path("cut.skops").write_bytes(content[:end])
        with pytest.raises(KlrBenchError, match=r"^cut\.skops: "):
            load_model("cut.skops")
    skops.io.dump(OSKL(), "other.skops")
    with pytest.raises(KlrBenchError, match=r"other\.skops: expected a model file of klr-bench fit"):
        load_model("other.skops")


def test_a_model_of_python_predicts_only_in_python(capsys: pytest.CaptureFixture[str], stored: Path) -> None:
    save_model(load_model(stored), "python.skops")
    capsys.readouterr()
    assert main(["predict", "model=python.skops", "data.path=train.csv", "output=found.csv"]) == 2
    assert "python.skops: expected a file from klr-bench fit; load this Pipeline" in capsys.readouterr().err


def test_a_model_with_missing_parts_is_refused(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, train = load(stored)
    del model[0]._scaling
    stored.write_bytes(dump(model, train))
    capsys.readouterr()
    assert main(["predict", "model=model.skops", "data.path=train.csv", "output=found.csv"]) == 2
    assert capsys.readouterr().err.startswith("error: model.skops: the model cannot predict (AttributeError: ")


@pytest.mark.parametrize("call", ["os.fsync", "pathlib.Path.replace"])
def test_a_kill_in_the_middle_of_writing_leaves_the_old_model(stored: Path, call: str) -> None:
    content = stored.read_bytes()
    words = ["fit", "data.path=train.csv", "data.label=state", f"output={stored}", "algorithm=oskl_default"]
    code = f"""
        import os, pathlib, signal
        from klr_bench.cli import main
        {call} = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        main({words})
    """
    path = os.pathsep.join([str(Path(klr_bench.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stdout + done.stderr
    assert stored.read_bytes() == content
    assert len([*Path().glob(".model.skops.*.part")]) == 1, "the new model has been written to another file"


FLAG = np.where(np.random.RandomState(1).rand(160) < 0.05, 1 - CLASS, CLASS)
RUN = [
    *("run", "experiment=own_file", "algorithm=[oskl]", "repeats=1", "selection.folds=2", "parallel=serial", "name=r"),
    "data.cache=cache",
]


def flags(name: str, spelling: tuple[object, object]) -> Path:
    """Write a table whose column `flag` nearly determines the label."""
    table = pd.DataFrame({"x": X[:, 0], "flag": [spelling[i] for i in FLAG], "y": np.array(["no", "yes"])[CLASS]})
    table.to_csv(name, index=False)
    return Path(name)


@pytest.mark.parametrize("new", [("False", "True"), ("false", "true"), (0, 1), (False, True)])
def test_truth_values_in_new_rows_are_compared_by_value(
    new: tuple[object, object], capsys: pytest.CaptureFixture[str]
) -> None:
    flags("train.csv", ("FALSE", "TRUE"))
    flags("new.csv", new)
    assert main(["fit", "data.path=train.csv", "output=m.skops", "algorithm=oskl_default"]) == 0
    for name in ("train", "new"):
        assert main(["predict", "model=m.skops", f"data.path={name}.csv", f"output={name}_classes.csv"]) == 0
    assert Path("train_classes.csv").read_bytes() == Path("new_classes.csv").read_bytes()
    assert main([*RUN, "data.path=train.csv", "data.test_path=new.csv"]) == 0
    assert pd.read_csv("results/r/records.csv")["accuracy"].tolist() > [0.9]
    assert capsys.readouterr().err == ""


def test_unknown_values_are_named_on_standard_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    flags("train.csv", ("off", "on"))
    flags("new.csv", ("Off", "yes"))
    n, yes = [f"{int(count)}" for count in (160, FLAG.sum())]
    first, second = ["'yes'", "'Off' (but 'off' occurs)"][:: 1 if int(yes) >= 80 else -1]
    expected = (
        f"warning: {tmp_path}/new.csv has values that the training rows do not have: flag: {first}, {second} in {n} "
        "rows. A text counts as none of the values of its column, a missing or unreadable number as "
        "the median"
    )
    assert main(["fit", "data.path=train.csv", "output=m.skops", "algorithm=oskl_default"]) == 0
    capsys.readouterr()
    assert main(["predict", "model=m.skops", "data.path=new.csv", "output=p.csv"]) == 0
    assert capsys.readouterr().err == f"{expected}.\n"
    assert main([*RUN, "data.path=train.csv", "data.test_path=new.csv"]) == 0
    captured = capsys.readouterr()
    assert captured.err == f"{expected}\n"
    assert "warning" not in captured.out


def test_different_first_indices_are_named_on_standard_error(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for name, base in (("train.svm", 1), ("test.svm", 0)):
        rows = (f"{[-1, 1][c]} {base}:{a:.3f} {base + 1}:{b:.3f}\n" for c, (a, b) in zip(CLASS, X, strict=True))
        Path(name).write_text("".join(rows))
    assert main([*RUN, "data.path=train.svm", "data.test_path=test.svm"]) == 0
    expected = (
        f"warning: the feature index 0 occurs in {tmp_path}/test.svm (indices 0 to 1), but not in {tmp_path}/train"
    )
    assert capsys.readouterr().err.startswith(expected)
    words = ["experiment=stream_own", "algorithm=[fogd]", "data.path=t*.svm", "parallel=serial"]
    words.append("datasets.stream.split.chunk=50")
    assert main(["run", *words, f"data.cache={tmp_path}/c"]) == 0
    assert capsys.readouterr().err.startswith(expected)
