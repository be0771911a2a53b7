"""The tables of docs/methods/estimators.md: the classes and functions of klr_bench, and what each can do."""

from __future__ import annotations

import inspect
from pathlib import Path

import yaml
from tabulate import tabulate

import klr_bench

TEXTS = yaml.safe_load(Path(__file__).with_name("tables.yaml").read_text("utf-8"))


def estimators(reference: Path) -> dict[str, str]:
    """Return the tables of the classes by name, and that of the functions; nothing of the references is read."""
    del reference
    keys = _keys()
    made = {
        name: _table(["class", "key", "method", "`partial_fit`", "`predict_proba`", "`sample_weight`"], _rows(of, keys))
        for name, of in TEXTS["classes"].items()
    }
    rows = [[f"{{func}}`~klr_bench.{name}`", text] for name, text in TEXTS["functions"].items()]
    return made | {"functions": _table(["function", "what it does"], rows)}


def _rows(of: dict[str, str], keys: dict[str, list[str]]) -> list[list[str]]:
    rows = []
    for name, method in of.items():
        one = getattr(klr_bench, name)
        parameters = inspect.signature(one).parameters
        weights = "sample_weight" in inspect.signature(one.fit).parameters
        probabilities = _yes(hasattr(one(), "predict_proba"))
        if probabilities == "-" and "loss" in parameters and hasattr(one(loss="logit"), "predict_proba"):
            probabilities = '`loss="logit"`'
        can = (_yes(hasattr(one, "partial_fit")), probabilities, _yes(weights))
        role, of_configs = f"{{class}}`~klr_bench.{name}`", ", ".join(f"`{key}`" for key in keys[name])
        rows.append([role, of_configs, method, *can])
    return rows


def _yes(able: bool) -> str:
    return "yes" if able else "-"


def _keys() -> dict[str, list[str]]:
    """Return the keys of configs/algorithm by the name of the class that each sets up."""
    found: dict[str, list[str]] = {}
    folder = Path(__file__).resolve().parents[1] / "configs" / "algorithm"
    for file in sorted(folder.glob("*.yaml")):
        module, _, name = yaml.safe_load(file.read_text("utf-8"))["estimator"]["_target_"].rpartition(".")
        if module == "klr_bench":
            found.setdefault(name, []).append(file.stem)
    return found


def _table(head: list[str], rows: list[list[str]]) -> str:
    """Return a pipe table of cells that are Markdown."""
    return tabulate(rows, head, tablefmt="pipe", colalign=["left"] * len(head), disable_numparse=True)
