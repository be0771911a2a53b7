"""How the experiments of a paper were run: what is fixed, what is chosen and by what, and what the fits took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd
from paper_words import counted, duration, experiment_link, html, html_table

from klr_bench.config.locations import find, folders
from klr_bench.report.load import read_results, was_run
from klr_bench.report.papers.reading import experiments_of
from klr_bench.report.papers.reproduction import WholePaper, source_of
from klr_bench.results.variants import value_text
from klr_bench.yaml_file import read_yaml


def protocol_section(whole: WholePaper, results_dir: Path) -> str:
    """Return which experiment makes what, and for each of them what is fixed and what is chosen."""
    made = makes(whole)
    rows, details = [], []
    for name in experiments_of(whole.name):
        run = was_run(results_dir / name)
        asked = _asked(results_dir / name) if run else {}
        rows.append(
            [
                experiment_link(name, run=run),
                escape(", ".join(made[name])),
                escape(", ".join(_labels(asked, "datasets"))) if run else "not run",
                escape(", ".join(_labels(asked, "algorithms"))),
                str(asked.get("repeats", "")),
            ]
        )
        details.append(_details(name, asked))
    header = ["experiment", "makes", "data", "learners", "repeats"]
    table = html_table(header, rows, "Which experiment makes what")
    said = (
        "Each experiment is a small YAML file, `configs/experiment/<name>.yaml`; its notes, which say where it departs "
        "from the paper or where the paper leaves something open, are quoted here as they stand there. Below them are "
        "the parameters that are fixed, those that cross-validation on the training rows of each split chooses among "
        "the listed values, and those whose values are columns of the table."
    )
    return f"## Protocol\n\n{html(table)}\n\n{said}\n\n{html(chr(10).join(filter(None, details)))}"


def makes(whole: WholePaper) -> dict[str, list[str]]:
    """Return what each experiment of a paper makes: tables, figures, claims, causes."""
    return {name: _shortened(list(dict.fromkeys(said))) for name, said in whole.paper.named().items()}


def _shortened(said: list[str]) -> list[str]:
    """Join the numbers of claims: claims 1, 2, 3."""
    claims = [one.removeprefix("claim ") for one in said if one.startswith("claim ")]
    rest = [one for one in said if not one.startswith("claim ")]
    return rest + ([f"claim{'s' if len(claims) > 1 else ''} {', '.join(claims)}"] if claims else [])


def notes_of(name: str) -> list[str]:
    """Return the notes of an experiment: the comments that stand on lines of their own, a paragraph each."""
    paragraphs: list[list[str]] = [[]]
    for line in find("experiment", name, folders()).read_text(encoding="utf-8").splitlines():
        text = line.strip()
        if text.startswith("#") and not text.startswith("# @package"):
            paragraphs[-1].append(text.lstrip("# "))
        elif paragraphs[-1]:
            paragraphs.append([])
    return [" ".join(lines) for lines in paragraphs if lines]


def _asked(folder: Path) -> Mapping[str, Any]:
    """Return the configuration that an experiment was run with."""
    config = read_yaml(folder / "manifest.yaml").get("config")
    return config if isinstance(config, Mapping) else {}


def _labels(asked: Mapping[str, Any], group: str) -> list[str]:
    return [str((one or {}).get("label") or name) for name, one in (asked.get(group) or {}).items()]


def _details(name: str, asked: Mapping[str, Any]) -> str:
    """Return notes, kernel, splits and parameters of an experiment, behind a line that opens."""
    parts = [f"<p>{escape(note)}</p>" for note in notes_of(name)]
    if asked:
        parts.append(f"<p>{escape(' '.join([*_splits(asked), _kernel(asked), _selection(asked)]).strip())}</p>")
        rows = [
            [
                escape(str(one.get("label") or stem)),
                _values(_fixed(one, (asked.get("sweep") or {}).get(stem) or {})),
                _values(one.get("grid") or {}) if _chosen(one) else "",
                _values((asked.get("sweep") or {}).get(stem) or {}),
            ]
            for stem, one in (asked.get("algorithms") or {}).items()
        ]
        header = ["learner", "fixed", "chosen by cross-validation", "columns"]
        parts.append(html_table(header, rows, f"Parameters of {name}"))
    title = asked.get("title") or "not run here"
    summary = f"<summary><code>{escape(name)}</code>: {escape(str(title))}</summary>"
    return f"<details>{summary}\n{chr(10).join(parts)}</details>" if parts else ""


def _fixed(one: Mapping[str, Any], sweep: Mapping[str, Any]) -> dict[str, Any]:
    varied = {*(one.get("grid") or {}), *sweep, "_target_"}
    return {name: value for name, value in (one.get("estimator") or {}).items() if name not in varied}


def _chosen(one: Mapping[str, Any]) -> bool:
    return any(isinstance(values, list) and len(values) > 1 for values in (one.get("grid") or {}).values())


def _values(values: Mapping[str, Any]) -> str:
    """Return parameters and their values as HTML."""

    def text(value: Any) -> str:
        return ", ".join(map(value_text, value)) if isinstance(value, list) else value_text(value)

    return "<br>".join(f"<code>{escape(str(name))}</code> {escape(text(value))}" for name, value in values.items())


def _splits(asked: Mapping[str, Any]) -> list[str]:
    said = []
    for name, one in (asked.get("datasets") or {}).items():
        split = {key: value for key, value in ((one or {}).get("split") or {}).items() if value not in (None, False)}
        words = ", ".join(f"{key}={value_text(value)}" for key, value in split.items())
        said.append(f"{(one or {}).get('label') or name} is split by {words}." if words else "")
    return [sentence for sentence in said if sentence]


def _kernel(asked: Mapping[str, Any]) -> str:
    kernel = asked.get("kernel") or {}
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


def _selection(asked: Mapping[str, Any]) -> str:
    selection = asked.get("selection") or {}
    if not any(_chosen(one) for one in (asked.get("algorithms") or {}).values()):
        return "Nothing is chosen by cross-validation."
    most = selection.get("max_examples")
    rows = f" on at most {most:,} of them" if most else ""
    return f"Cross-validation has {counted(int(selection.get('folds') or 0), 'fold')} of the training rows{rows}."


def cost_section(names: Sequence[str], results_dir: Path) -> str:
    """Return what the fits behind a page took, on what machine, from what source."""
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
    said = (
        f"All fits together took **{duration(total)}** of training time: the sum of `fit_time_s` of the records. "
        "Cross-validation, prediction and loading are not in it."
    )
    header = ["experiment", "fits", "training time", "processor", "commit", "last run"]
    return f"## What it took\n\n{said}\n\n{html(html_table(header, rows, 'Measured cost'))}"


def _processors(records: pd.DataFrame, content: Mapping[str, Any]) -> str:
    """Return the processors that the records name, else the one of the manifest."""
    named = [str(cpu).partition(",")[0] for cpu in records["cpu"].dropna().unique() if cpu] if "cpu" in records else []
    machine = content.get("machine") or {}
    cores = f", {machine['cores']} cores" if machine.get("cores") else ""
    return (", ".join(dict.fromkeys(named)) or str(machine.get("cpu") or "unknown")) + cores
