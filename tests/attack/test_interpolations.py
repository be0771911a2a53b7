"""Interpolations that double at each step are refused before they are resolved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from klr_bench.experiment.config.interpolation import check_interpolations
from tests.attack.promise import refused, rejected

STEPS = 60


def chain(first: Any, step: Any) -> dict[str, Any]:
    """Return values each of which has the one before several times."""
    return {"v0": first} | {f"v{number}": step(f"${{v{number - 1}}}") for number in range(1, STEPS)}


BOMBS = {
    "text": chain("x", lambda before: before * 2),
    "list": chain([1], lambda before: [before, before]),
    "mapping": chain({"a": 1}, lambda before: {"a": before, "b": before}),
    "relative": {"m": {"v0": "x"} | {f"v{n}": f"${{.v{n - 1}}}${{.v{n - 1}}}" for n in range(1, STEPS)}},
    "above": {"v0": "x", **{f"v{n}": {"w": f"${{..v{n - 1}.w}}" * 2 if n > 1 else "xx"} for n in range(1, STEPS)}},
    "bracketed": {"v0": ["x"], **{f"v{n}": [f"${{v{n - 1}[0]}}" * 2] for n in range(1, STEPS)}},
    "nested": {"a": "b", "b": "x", "c": "${${a}}"},
}


@pytest.mark.parametrize("name", BOMBS)
def test_what_doubles_is_refused(name: str) -> None:
    rejected(lambda: check_interpolations(BOMBS[name]), "expected", "interpolation", "rite")


@pytest.mark.parametrize(
    "content",
    [
        {"a": 1, "b": "${a}", "c": ["${b}", "${a} and ${b}"], "d": "${oc.env:HOME,null}"},
        {"a": {"b": 1}, "c": "${a}", "d": {"e": "${..a.b}"}},
        {"a": "${b}", "b": "${a}"},  # OmegaConf refuses it
        {"a": "${nowhere.b}"},
        {"a": [1, 2], "b": "${a[1]}"},
        {"a": "x" * 1000, "b": "${a}${a}"},
    ],
)
def test_what_does_not_is_left_to_omegaconf(content: dict[str, Any]) -> None:
    check_interpolations(OmegaConf.to_container(OmegaConf.create(content)))


@pytest.mark.parametrize("name", ["text", "list"])
def test_a_bomb_in_an_experiment_of_the_user(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "configs" / "experiment" / "bomb.yaml"
    path.parent.mkdir(parents=True)
    lines = [f"{key}: {value!r}" for key, value in BOMBS[name].items()]
    path.write_text("\n".join(["# @package _global_", *lines, f'title: "${{v{STEPS - 1}}}"', ""]), encoding="utf-8")
    refused(capsys, ["run", "experiment=bomb", "dataset=[digits]", "algorithm=[nc]", "--dry-run"], "expected at most")
