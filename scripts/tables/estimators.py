"""Tables of docs/methods/estimators.md: the public names, from docstrings and YAML files."""

from __future__ import annotations

import inspect
from pathlib import Path
from pydoc import locate
from typing import Any

import yaml
from markup import table
from sklearn.base import is_classifier

import klr_bench
from klr_bench.config.locations import config_dir

TABLES = {
    "online": "kernel_online",
    "budget": "kernel_budget",
    "features": "kernel_budget",
    "batch": "kernel_batch",
    "l1": "kernel_batch",
    "prototype": "kernel_batch",
    "linear": "linear",
}
"""Tables of classifiers, by folder of klr_bench/estimators."""
FIRST = ("KLR", "PartitionedKLR")
"""Classes at the beginning of their table."""
SELECTING = {"n_features_to_select", "l1"}
"""Linear classifiers with one of these parameters are in the table linear_selection."""


def estimators(reference: Path) -> dict[str, str]:
    """Return the tables of classes and functions, by name; the references are not used."""
    configs = _configs()
    rows: dict[str, list[list[str]]] = {}
    for name in sorted(klr_bench.__all__, key=lambda name: (FIRST.index(name) if name in FIRST else len(FIRST), name)):
        thing = getattr(klr_bench, name)
        if inspect.isclass(thing) and is_classifier(thing()):
            rows.setdefault(_table(thing), []).append(_row(name, thing, configs[f"klr_bench.{name}"]))
        elif name != "__version__":
            call = "" if inspect.isclass(thing) else "()"
            rows.setdefault("functions", []).append([f"`{name}{call}`", _summary(thing)])
    for target, files in configs.items():
        if target.startswith("klr_bench.estimators.peers."):
            rows.setdefault("peers", []).append([_keys(files), _summary(locate(target))])
    heads = {"functions": ["name", "description"], "peers": ["keys", "method"]}
    return {name: table(heads.get(name, ["class (keys)", "method", "supports"]), of, 3) for name, of in rows.items()}


def _table(cls: Any) -> str:
    folder, parameters = cls.__module__.split(".")[2], inspect.signature(cls).parameters.keys()
    if folder == "budget" and "budget" not in parameters:
        folder = "online"
    return "linear_selection" if folder == "linear" and SELECTING & parameters else TABLES[folder]


def _row(name: str, cls: Any, configs: dict[str, str]) -> list[str]:
    """Return the cells of a class: name and keys, method, and further methods."""
    can = ["`partial_fit`"] if hasattr(cls, "partial_fit") else []
    if hasattr(cls(), "predict_proba"):
        can.append("probabilities")
    elif "loss" in inspect.signature(cls).parameters and hasattr(cls(loss="logit"), "predict_proba"):
        can.append('probabilities with `loss="logit"`')
    can += ["weights"] if "sample_weight" in inspect.signature(cls.fit).parameters else []
    return [f"`{name}` ({_keys(configs)})", _summary(cls), ", ".join(can)]


def _keys(configs: dict[str, str]) -> str:
    return ", ".join(f"`{key}`" for key in configs)


def _summary(thing: Any) -> str:
    """Return the first line of a docstring."""
    return inspect.getdoc(thing).split("\n")[0].replace("``", "`")


def _configs() -> dict[str, dict[str, str]]:
    """Return the references of the files in configs/algorithm, by target and file name."""
    configs: dict[str, dict[str, str]] = {}
    for file in sorted((config_dir() / "algorithm").glob("*.yaml")):
        content = yaml.safe_load(file.read_text("utf-8"))
        configs.setdefault(content["estimator"]["_target_"], {})[file.stem] = content["reference"]
    return configs
