"""Commands ``klr-bench list`` and ``klr-bench show``, which describe what a user can run."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

from klr_bench.config import locations as config_files
from klr_bench.errors import fail, nearest
from klr_bench.instantiate import TARGET

SHOWN = (*config_files.KINDS, "paper")
"""Kinds of files that `klr-bench show` prints."""
LISTED = (*SHOWN, "metric", "figure")
DIRECTIONS = {"higher": "; higher is better", "lower": "; lower is better", "": ""}
INDENT = "  "
LEAST_WIDTH = 40


def listing(words: Sequence[str]) -> str:
    """Return the names of all kinds, or the names and descriptions of the kinds in `words`."""
    kinds = [_kind(word, LISTED, "s") for word in words]
    return "".join(map(_described, kinds)) or _overview()


def file_text(words: Sequence[str]) -> str:
    """Return the path and content of the YAML file with the kind and name in `words`.

    They may be one word, as in experiment=oskl_magic.
    """
    words = [part for word in words for part in word.split("=", 1)]
    if len(words) != 2:
        got = " ".join(words) or "none"
        fail(f"show: expected a kind and a name, as in klr-bench show algorithm oskl, got {got}.")
    path = config_files.find(_kind(words[0], SHOWN), words[1], config_files.folders())
    return f"# {path}\n{path.read_text(encoding='utf-8', errors='backslashreplace')}"


def _kind(word: str, kinds: Sequence[str], plural: str = "") -> str:
    kind = word.removesuffix("s")
    if kind not in kinds:
        plural = plural or word.removeprefix(kind)
        fail(f"unknown kind {word!r}.{nearest(word, [f'{option}{plural}' for option in kinds])}{_command_for(word)}")
    return kind


def _command_for(name: str) -> str:
    """Return a hint at the command that prints the file with this name, or ""."""
    kinds = [kind for kind in SHOWN if name in config_files.names(kind, config_files.folders())]
    return f" To print it: klr-bench show {kinds[0]} {name}" if kinds else ""


def _overview() -> str:
    texts = []
    for kind in (*SHOWN, "metric"):
        names = _metrics() if kind == "metric" else config_files.names(kind, config_files.folders())
        texts += [f"{kind}s ({len(names)})", *_wrapped(", ".join(names), INDENT, INDENT), ""]
    kinds = [f"{kind}s" for kind in LISTED]
    end = f"klr-bench list KIND also prints descriptions; KIND is {', '.join(kinds[:-1])} or {kinds[-1]}."
    return "\n".join([*texts, *_wrapped(end, "", "")]) + "\n"


def _described(kind: str) -> str:
    entries = list(_entries(kind))
    width = max(len(name) for name, _ in entries) + 2
    lines = [f"{kind}s"]
    for name, sentences in entries:
        first, *rest = sentences or [""]
        lines += _wrapped(first, f"{INDENT}{name:{width}}", INDENT + width * " ") or [f"{INDENT}{name}"]
        for sentence in rest:
            lines += _wrapped(sentence, INDENT + width * " ", INDENT + (width + 4) * " ")
    return "\n".join(lines) + "\n"


def _wrapped(text: str, first: str, other: str) -> list[str]:
    width = max(LEAST_WIDTH, shutil.get_terminal_size().columns)
    return wrap(
        text, width, initial_indent=first, subsequent_indent=other, break_on_hyphens=False, break_long_words=False
    )


def _metrics() -> dict[str, Any]:
    """Return a dict from names to metrics, with None for metrics that the user defines."""
    from klr_bench.metrics.labels import METRICS, metric_files

    return dict.fromkeys(metric_files(config_files.folders())) | METRICS


def _entries(kind: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each name of a kind with a list of paragraphs that describe it."""
    searched = config_files.folders()
    if kind == "metric":
        from klr_bench.report.labels import title_of

        for name, metric in _metrics().items():
            yield name, [title_of(metric) + DIRECTIONS[metric.better] if metric else "your own file"]
    elif kind == "figure":
        from klr_bench.report.figures import titles

        yield from ((name, [title or "your own file"]) for name, title in titles().items())
    else:
        for name in config_files.names(kind, searched):
            yield name, _paragraphs(kind, name, config_files.read(config_files.find(kind, name, searched)))


def _paragraphs(kind: str, name: str, content: Mapping[str, Any]) -> list[str]:
    if kind == "paper":
        return [f"{content.get('reference', '')}: {content.get('title', '')}", *_needs(name)]
    label = content.get("label")
    text = ": ".join(str(part) for part in (label, content.get("title") or content.get("reference")) if part)
    return [*filter(None, [text]), *([_call(name, content)] if kind == "algorithm" else [])]


def _needs(paper: str) -> list[str]:
    """Return sentences on the time and the data that the experiments of a paper need."""
    from klr_bench.config.needs import megabytes, needs_of, reference_times
    from klr_bench.report.papers.reading import paper_files, read_paper

    searched = config_files.folders()
    content, measured = read_paper(paper_files(searched)[paper], searched), reference_times()
    experiments, estimated = [*content.named()], content.estimated_hours
    times = [measured[name].seconds / 3600 for name in experiments if name in measured]
    hours = [f"{sum(times):.2g} h measured on 2 cores"] if times else []
    hours += [f"{sum(estimated.values()):.2g} h estimated ({', '.join(estimated)})"] if estimated else []
    needs = needs_of(experiments, searched)
    sentence = f"Data: {needs.size()}; about {megabytes(needs.disk)} of disk."
    return [f"{len(experiments)} experiments: {', '.join(hours) or 'time not measured'}.", sentence]


def _call(name: str, content: Mapping[str, Any]) -> str:
    """Describe an algorithm as a call of its class, such as "OSKL(G=1)"."""
    from klr_bench.config.models import AlgorithmEntry
    from klr_bench.config.presentation import without_presentation
    from klr_bench.parsing import parse

    where = f"algorithms.{name}."
    entry = parse(AlgorithmEntry, without_presentation(content, where), where)
    estimator = entry.estimator or {}
    settings = ", ".join(f"{key}={value!r}" for key, value in estimator.items() if key != TARGET)
    selected = ", ".join(entry.grid or ())
    module, _, called = str(estimator.get(TARGET)).rpartition(".")
    origin = "" if module.startswith("klr_bench") else f" of {module}"
    return f"{called}({settings}){origin}" + (f"; cross-validation chooses {selected}" if selected else "")
