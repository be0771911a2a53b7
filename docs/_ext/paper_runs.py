"""Sections of a paper page on the protocol and the cost of its experiments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd
from paper_words import duration, experiment_link, html, html_table

from klr_bench.config.locations import find, folders
from klr_bench.report.labels import pluralize
from klr_bench.report.load import read_results
from klr_bench.report.papers.reading import experiments_of
from klr_bench.report.papers.reproduction import Reproduction, source_of
from klr_bench.results.store import was_run
from klr_bench.results.variants import value_text
from klr_bench.yaml_file import read_yaml


def protocol_section(reproduction: Reproduction, results_dir: Path) -> str:
    """Return the section on the experiments of a paper and their fixed and tuned parameters."""
    outputs = makes(reproduction)
    rows, details = [], []
    for name in experiments_of(reproduction.name):
        run = was_run(results_dir / name)
        config = _config(results_dir / name) if run else {}
        rows.append(
            [
                experiment_link(name, run=run),
                escape(", ".join(outputs[name])),
                escape(", ".join(_labels(config, "datasets"))) if run else "not run",
                escape(", ".join(_labels(config, "algorithms"))),
                str(config.get("repeats", "")),
            ]
        )
        details.append(_details(name, config))
    header = ["experiment", "results", "data", "algorithms", "repeats"]
    table = html_table(header, rows, "Experiments and their results")
    text = (
        "Each experiment is a small YAML file, `configs/experiment/<name>.yaml`. Its notes, quoted below, explain "
        "where it differs from the paper and which details the paper does not specify. They are followed by the "
        "parameters: fixed values, values from which cross-validation on the training rows of each split chooses, and "
        "values that are columns of the table."
    )
    return f"## Protocol\n\n{html(table)}\n\n{text}\n\n{html(chr(10).join(filter(None, details)))}"


def makes(reproduction: Reproduction) -> dict[str, list[str]]:
    """Return the tables, figures, claims and causes that use each experiment of a paper."""
    return {name: _join_claims(list(dict.fromkeys(uses))) for name, uses in reproduction.paper.named().items()}


def _join_claims(uses: list[str]) -> list[str]:
    """Join "claim 1", "claim 2" to "claims 1, 2"."""
    claims = [use.removeprefix("claim ") for use in uses if use.startswith("claim ")]
    rest = [use for use in uses if not use.startswith("claim ")]
    return rest + ([f"claim{'s' if len(claims) > 1 else ''} {', '.join(claims)}"] if claims else [])


def notes_of(name: str) -> list[str]:
    """Return the notes of an experiment, the paragraphs of comments in its YAML file."""
    paragraphs: list[list[str]] = [[]]
    for line in find("experiment", name, folders()).read_text(encoding="utf-8").splitlines():
        text = line.strip()
        if text.startswith("#") and not text.startswith("# @package"):
            paragraphs[-1].append(text.lstrip("# "))
        elif paragraphs[-1]:
            paragraphs.append([])
    return [" ".join(lines) for lines in paragraphs if lines]


def _config(folder: Path) -> Mapping[str, Any]:
    """Return the configuration with which an experiment was run."""
    config = read_yaml(folder / "manifest.yaml").get("config")
    return config if isinstance(config, Mapping) else {}


def _labels(config: Mapping[str, Any], group: str) -> list[str]:
    return [str((entry or {}).get("label") or name) for name, entry in (config.get(group) or {}).items()]


def _details(name: str, config: Mapping[str, Any]) -> str:
    """Return an expandable block with notes, kernel, splits and parameters of an experiment."""
    parts = [f"<p>{escape(note)}</p>" for note in notes_of(name)]
    if config:
        parts.append(f"<p>{escape(' '.join([*_splits(config), _kernel(config), _selection(config)]).strip())}</p>")
        rows = [
            [
                escape(str(algorithm.get("label") or stem)),
                _values(_fixed(algorithm, (config.get("sweep") or {}).get(stem) or {})),
                _values(algorithm.get("grid") or {}) if _chosen(algorithm) else "",
                _values((config.get("sweep") or {}).get(stem) or {}),
            ]
            for stem, algorithm in (config.get("algorithms") or {}).items()
        ]
        header = ["algorithm", "fixed", "chosen by cross-validation", "columns"]
        parts.append(html_table(header, rows, f"Parameters of {name}"))
    title = config.get("title") or "not run"
    summary = f"<summary><code>{escape(name)}</code>: {escape(str(title))}</summary>"
    return f"<details>{summary}\n{chr(10).join(parts)}</details>" if parts else ""


def _fixed(algorithm: Mapping[str, Any], sweep: Mapping[str, Any]) -> dict[str, Any]:
    varied = {*(algorithm.get("grid") or {}), *sweep, "_target_"}
    return {name: value for name, value in (algorithm.get("estimator") or {}).items() if name not in varied}


def _chosen(algorithm: Mapping[str, Any]) -> bool:
    return any(isinstance(values, list) and len(values) > 1 for values in (algorithm.get("grid") or {}).values())


def _values(values: Mapping[str, Any]) -> str:
    """Return parameters and their values as HTML."""

    def text(value: Any) -> str:
        return ", ".join(map(value_text, value)) if isinstance(value, list) else value_text(value)

    return "<br>".join(f"<code>{escape(str(name))}</code> {escape(text(value))}" for name, value in values.items())


def _splits(config: Mapping[str, Any]) -> list[str]:
    sentences = []
    for name, dataset in (config.get("datasets") or {}).items():
        split = {
            key: value for key, value in ((dataset or {}).get("split") or {}).items() if value not in (None, False)
        }
        words = ", ".join(f"{key}={value_text(value)}" for key, value in split.items())
        sentences.append(f"{(dataset or {}).get('label') or name} has the split {words}." if words else "")
    return [sentence for sentence in sentences if sentence]


def _kernel(config: Mapping[str, Any]) -> str:
    kernel = config.get("kernel") or {}
    name = kernel.get("kernel")
    if name == "rbf" and kernel.get("gamma") is None and kernel.get("percentile") is not None:
        times = kernel.get("multiple")
        factor = f", times {times:.4g}" if times not in (None, 1.0) else ""
        return (
            f"The kernel is rbf; its width is percentile {kernel['percentile']:g} of the distances between training "
            f"rows{factor}."
        )
    shown = {"rbf": ("gamma",), "poly": ("degree", "gamma", "coef0")}.get(str(name), ())
    values = [f"{key}={value_text(kernel[key])}" for key in shown if kernel.get(key) is not None]
    return f"The kernel is {' '.join([str(name), *values])}." if name else ""


def _selection(config: Mapping[str, Any]) -> str:
    selection = config.get("selection") or {}
    if not any(_chosen(algorithm) for algorithm in (config.get("algorithms") or {}).values()):
        return "No parameter is chosen by cross-validation."
    most = selection.get("max_examples")
    rows = f", at most {most:,}" if most else ""
    return f"Cross-validation uses {pluralize(int(selection.get('folds') or 0), 'fold')} of the training rows{rows}."


def cost_section(names: Sequence[str], results_dir: Path) -> str:
    """Return the section on training times, machines and commits of the experiments of a page."""
    rows, total = [], 0.0
    for name in names:
        folder = results_dir / name
        if not was_run(folder):
            rows.append([experiment_link(name, run=False), "not run", "", "", "", ""])
            continue
        results, content = read_results(folder), read_yaml(folder / "manifest.yaml")
        records = results.records
        seconds = float(records["fit_time_s"].sum())
        total += seconds
        failed = int((records["status"] != "ok").sum())
        fits = f"{len(records):,}" + (f", {failed:,} without a result in time" if failed else "")
        commit, changed = source_of(results.manifest)
        rows.append(
            [
                experiment_link(name, run=True),
                escape(fits),
                duration(seconds),
                escape(_processors(records, content)),
                f"<code>{escape(commit)}</code>{', with changes' if changed else ''}",
                escape(str(content.get("updated") or "")[:10]),
            ]
        )
    if not total:
        return ""
    text = (
        f"All fits together took **{duration(total)}** of training time, the sum of `fit_time_s` of the records. This "
        "excludes cross-validation, prediction and data loading."
    )
    header = ["experiment", "fits", "training time", "processor", "commit", "last run"]
    return f"## Cost\n\n{text}\n\n{html(html_table(header, rows, 'Measured cost'))}"


def _processors(records: pd.DataFrame, content: Mapping[str, Any]) -> str:
    """Return the processors in the records, or else the one in the manifest."""
    named = [str(cpu).partition(",")[0] for cpu in records["cpu"].dropna().unique() if cpu] if "cpu" in records else []
    machine = content.get("machine") or {}
    cores = f", {machine['cores']} cores" if machine.get("cores") else ""
    return (", ".join(dict.fromkeys(named)) or str(machine.get("cpu") or "unknown")) + cores
