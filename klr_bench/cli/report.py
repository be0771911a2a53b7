"""``klr-bench report``: which reports are asked for, and where their files go."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from klr_bench.cli.words import is_true, items, split_keys
from klr_bench.errors import KlrBenchError
from klr_bench.printing import is_file_name, printable

if TYPE_CHECKING:
    from rich.console import Console

PLACED = ("caption", "label", "note", "orientation")
"""Keys of a report that are for LaTeX."""
OF_EXPERIMENT = ("experiment", "columns", *PLACED, "own_figures")
"""Keys of a report that a whole paper does not have."""
KEYS = ("experiment", "paper", "results_dir", "table", "format", "output", *OF_EXPERIMENT[1:])


def main(arguments: Sequence[str]) -> int:
    """Make the reports that are asked for; return the exit status."""
    words, values = split_keys(arguments, KEYS)
    if "paper" in values and values.keys() & set(OF_EXPERIMENT):
        other = next(key for key in OF_EXPERIMENT if key in values)
        message = f"report: paper= and {other}= are both given: a whole paper has no {other}. Leave one of them out."
        raise KlrBenchError(message)
    if words or not values.keys() & {"experiment", "paper"}:
        got, name = (repr(" ".join(words)), words[0]) if words else ("none", "<name>")
        message = f"report: expected experiment=<name>, got {got}. Try klr-bench report experiment={name}"
        raise KlrBenchError(message)
    from klr_bench.console import PlainConsole
    from klr_bench.report import report
    from klr_bench.report.render import Placing

    console = PlainConsole()
    if "paper" in values:
        return _report_papers(values, console)
    names = items("experiment", values["experiment"])
    formats = items("format", values.get("format", "terminal"))
    for key in PLACED:
        if key in values and "tex" not in formats:
            message = f"{key}={values[key]}: has no effect, because it is for LaTeX; add tex to format=."
            raise KlrBenchError(message)
    placing = Placing(**{key: values[key] for key in PLACED if key in values})
    own_figures = is_true("own_figures", values.get("own_figures", "false"))
    for name in names:
        if not is_file_name(name):
            message = f"experiment: expected the name of a folder in results_dir, got {name!r}."
            raise KlrBenchError(message)
    for name in names:
        written = report(
            Path(values.get("results_dir", "results")) / name,
            console=console,
            table=values.get("table"),
            formats=formats,
            columns=items("columns", values["columns"]) if "columns" in values else None,
            placing=placing,
            output=_output(values, name, names),
            own_figures=own_figures,
        )
        for path in written:
            sys.stdout.write(printable(f"{path}\n"))
    return 0


def _report_papers(values: Mapping[str, str], console: Console) -> int:
    from klr_bench.report.whole import report_papers

    written = report_papers(
        items("paper", values["paper"]),
        Path(values.get("results_dir", "results")),
        console=console,
        table=values.get("table"),
        formats=items("format", values.get("format", "terminal")),
        output=Path(values["output"]) if "output" in values else None,
    )
    sys.stdout.write(printable("".join(f"{path}\n" for path in written)))
    return 0


def _output(values: Mapping[str, str], name: str, names: Sequence[str]) -> Path | None:
    """Return the folder for the files of one report; of several reports each has a folder inside `output`."""
    if "output" not in values:
        return None
    return Path(values["output"]) / (name if len(names) > 1 else "")
