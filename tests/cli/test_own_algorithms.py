"""Mistakes in the YAML file or the class of a user's algorithm are messages of every command."""

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from klr_bench.cli import main
from tests.cover import cover

VALUES = [None, 5, True, "x", "klr_bench.KLR", [1], {1: [2]}, {"a": {"b": 1}}, {"_target_": 5}]
KEYS = ("label", "reference", "estimator", "grid", "selected_as", "kernel_parameters", "time_limit_s", "labels", "look")
COMMANDS = (
    "list algorithms",
    "check own",
    "fit data.path=table.csv output=m algorithm=own",
    "run algorithm=own --dry-run",
)
LEARNER = """\
class Own:
    def __init__(self{parameter}):
        {constructed}
    def fit(self, X, y):
        {fitted}
    def predict(self, X):
        return X[:, 0]
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    Path("configs/algorithm").mkdir(parents=True)
    Path("table.csv").write_text("a,b,label\n" + "1,2,yes\n3,4,no\n" * 20)


def write_algorithm(content: dict[str, Any]) -> None:
    Path("configs/algorithm/own.yaml").write_text(f"# @package algorithms.own\n{yaml.safe_dump(content)}")


@pytest.mark.parametrize("key", KEYS)
def test_no_value_in_the_file_causes_a_traceback(key: str, capsys: pytest.CaptureFixture[str]) -> None:
    for value in VALUES:
        write_algorithm({"estimator": {"_target_": "sklearn.dummy.DummyClassifier"}, key: value})
        for command in COMMANDS[:1] + COMMANDS[2:]:
            status = main(command.split())
            assert status in (0, 1, 2), (value, command)
            assert status != 2 or capsys.readouterr().err.startswith("error: ")


def test_a_file_without_a_class_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    contents: list[dict[str, Any]] = [{}, {"label": "Own"}, {"estimator": {}}, {"estimator": {"rate": 1}}]
    for content in contents:
        write_algorithm(content)
        reason = "expected _target_: the dotted name of a function, and its parameters, got"
        if "estimator" in content:
            given = in_run = f"estimator: {reason} {content['estimator']}."
        else:
            given, in_run = "estimator: expected keys and values, got None.", "expected the key 'estimator', got none."
        for command in COMMANDS[1:]:
            assert main(command.split()) == 2, (content, command)
            expected = f"own.yaml: {in_run}\n" if command.startswith("run") else f"error: algorithms.own.{given}\n"
            assert expected in capsys.readouterr().err


ERRORS = (
    "TypeError",
    "KeyError",
    "AttributeError",
    "ZeroDivisionError",
    "AssertionError",
    "RuntimeError",
    "SystemExit",
)


@pytest.mark.parametrize("error", ["", *ERRORS])
@pytest.mark.parametrize("part", ["constructed", "fitted"])
def test_an_error_of_the_class_is_a_message_of_fit(
    error: str, part: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"own_{part}_{error}"
    parts = {"parameter": "" if error else ", rate", "constructed": "pass", "fitted": "return self"}
    Path(f"{name}.py").write_text(LEARNER.format(**(parts | ({part: f'raise {error}("a mistake")'} if error else {}))))
    write_algorithm({"estimator": {"_target_": f"{name}.Own"}})
    monkeypatch.setattr("klr_bench.model_file.check_storable", lambda model: None)
    assert main(COMMANDS[2].split()) == 2
    message = capsys.readouterr().err
    assert ("a mistake" if error else "'rate'") in message


@cover(
    2,
    4,
    stem=["svc", "own"],
    key=["algorithms.{}.estimator.kernel={}", "algorithms.{}.grid.kernel=[{}]", "sweep.{}.kernel=[{}]"],
    value=["[rbf]", "[rbf,linear]", "[]", "5", "true", "1.5"],
    settings=["", "kernel.percentile=30", "kernel.percentile=null kernel.gamma=1"],
)
def test_a_kernel_is_a_name(stem: str, key: str, value: str, settings: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("own_kernel.py").write_text(
        LEARNER.format(parameter=", kernel=None", constructed="pass", fitted="return self")
    )
    write_algorithm({"estimator": {"_target_": "own_kernel.Own"}})
    words = ["run", "dataset=moons", f"algorithm={stem}", key.format(stem, value), *settings.split(), "--dry-run"]
    assert main(words) == 2
    name = key.partition("=")[0].format(stem) + ("" if ".estimator." in key else "[0]")
    assert f"error: {name}: expected the name of a kernel, got " in capsys.readouterr().err
