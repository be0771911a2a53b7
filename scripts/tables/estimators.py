"""Tables of docs/methods/estimators.md: the classes and functions of klr_bench."""

from __future__ import annotations

import inspect
from pathlib import Path

import yaml
from markup import table

import klr_bench
from klr_bench.config.locations import config_dir

TEXTS = yaml.safe_load(Path(__file__).with_name("methods.yaml").read_text("utf-8"))


def estimators(reference: Path) -> dict[str, str]:
    """Return the tables of classes and functions, by name; the references are not used."""
    del reference
    keys = _keys()
    tables = {
        name: table(["class", "method", "supports"], [_row(one, method, keys[one]) for one, method in of.items()], 3)
        for name, of in TEXTS["classes"].items()
    }
    calls = {name: "" if inspect.isclass(getattr(klr_bench, name)) else "()" for name in TEXTS["functions"]}
    rows = [[f"`{name}{calls[name]}`", text] for name, text in TEXTS["functions"].items()]
    return tables | {"functions": table(["name", "description"], rows, 2)}


def _row(name: str, method: str, keys: list[str]) -> list[str]:
    """Return the cells of a class: name and keys, method, and features beyond fit and predict."""
    one = getattr(klr_bench, name)
    can = ["`partial_fit`"] if hasattr(one, "partial_fit") else []
    if hasattr(one(), "predict_proba"):
        can.append("probabilities")
    elif "loss" in inspect.signature(one).parameters and hasattr(one(loss="logit"), "predict_proba"):
        can.append('probabilities with `loss="logit"`')
    can += ["weights"] if "sample_weight" in inspect.signature(one.fit).parameters else []
    plural = "keys" if len(keys) > 1 else "key"
    named = f"`{name}`, {plural} {', '.join(f'`{key}`' for key in keys)}"
    return [named, method, ", ".join(can)]


def _keys() -> dict[str, list[str]]:
    """Return the keys of configs/algorithm, by class name."""
    keys: dict[str, list[str]] = {}
    for file in sorted((config_dir() / "algorithm").glob("*.yaml")):
        module, _, name = yaml.safe_load(file.read_text("utf-8"))["estimator"]["_target_"].rpartition(".")
        if module == "klr_bench":
            keys.setdefault(name, []).append(file.stem)
    return keys
