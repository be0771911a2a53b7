"""``klr-bench report``: which reports are asked for, and where their files go."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from klr_bench.cli import pages
from klr_bench.cli.words import experiments, is_true, items, other_run, results_dirs, split_keys
from klr_bench.errors import KlrBenchError
from klr_bench.printing import printable

if TYPE_CHECKING:
    from rich.console import Console

PLACED = ("caption", "label", "note", "orientation")
"""Keys of a report that are for LaTeX."""
OF_EXPERIMENT = ("experiment", "against", "columns", *PLACED, "own_figures", "statistics")
"""Keys of a report that a whole paper does not have."""
OF_ONE = ("table", *PLACED, "own_figures", "statistics")
"""Keys of a report that two runs side by side do not have."""
KEYS = ("experiment", "against", "paper", "results_dir", "table", "format", "output", "open", *OF_EXPERIMENT[2:])


def main(arguments: Sequence[str]) -> int:
    """Make the reports that are asked for; return the exit status."""
    named = next((argument for argument in arguments if argument.startswith("name=")), "")
    if named:
        message = f"unknown key 'name'. What ran with {named} is shown by klr-bench report experiment={named[5:]}"
        raise KlrBenchError(message)
    words, values = split_keys(arguments, KEYS)
    if words or not values.keys() & {"experiment", "paper"}:
        got, name = (repr(" ".join(words)), words[0]) if words else ("none", "<name>")
        message = f"report: expected experiment=<name>, got {got}. Try klr-bench report experiment={name}"
        raise KlrBenchError(message)
    formats = items("format", values.get("format", "terminal"))
    rest = [name for name in formats if name != pages.PAGE]
    _check(values, formats)
    if pages.PAGE in formats:
        pages.page(values, formats)
    if not rest:
        return 0
    from klr_bench.console import PlainConsole

    console = PlainConsole()
    if "paper" in values:
        _report_papers(values, rest, console)
    elif _two_runs(values):
        _report_two(values, rest, console)
    else:
        _report_experiments(values, rest, console)
    return 0


def _check(values: Mapping[str, str], formats: Sequence[str]) -> None:
    """Refuse keys that have no effect beside others."""
    tables = formats != [pages.PAGE]
    if "open" in values and pages.PAGE not in formats:
        message = f"open={values['open']}: has no effect, because it is for a page; add html to format=."
        raise KlrBenchError(message)
    if "paper" in values and (tables or "against" in values) and values.keys() & set(OF_EXPERIMENT):
        other = next(key for key in OF_EXPERIMENT if key in values)
        message = f"report: paper= and {other}= are both given: a whole paper has no {other}. Leave one of them out."
        raise KlrBenchError(message)
    for key in PLACED:
        if key in values and "tex" not in formats and tables:
            message = f"{key}={values[key]}: has no effect, because it is for LaTeX; add tex to format=."
            raise KlrBenchError(message)
    if _two_runs(values):
        given = f"against={values['against']}" if "against" in values else f"results_dir={values['results_dir']}"
        unused = next((key for key in OF_ONE if key in values), "format=pdf" if "pdf" in formats else "")
        if unused:
            message = (
                f"{unused}: has no effect beside {given}, which draws no figures and has tables of its own. "
                "Leave it out."
            )
            raise KlrBenchError(message)


def _two_runs(values: Mapping[str, str]) -> bool:
    return "against" in values or len(results_dirs(values)) > 1


def _report_experiments(values: Mapping[str, str], formats: Sequence[str], console: Console) -> None:
    from klr_bench.report import report
    from klr_bench.report.render import Placing

    names = experiments(values)
    placing = Placing(**{key: values[key] for key in PLACED if key in values})
    for name in names:
        written = report(
            results_dirs(values)[0] / name,
            console=console,
            table=values.get("table"),
            formats=formats,
            columns=items("columns", values["columns"]) if "columns" in values else None,
            placing=placing,
            output=_output(values, name, names),
            own_figures=is_true("own_figures", values.get("own_figures", "false")),
            statistics=is_true("statistics", values.get("statistics", "false")),
        )
        _tell(written)


def _report_two(values: Mapping[str, str], formats: Sequence[str], console: Console) -> None:
    """Show each experiment beside another one, or beside itself in the other results folder."""
    from klr_bench.report.compare.comparison import report_comparison

    names, folders = experiments(values), results_dirs(values)
    for name in names:
        written = report_comparison(
            folders[0] / name,
            other_run(values, folders, name),
            console=console,
            formats=formats,
            columns=items("columns", values["columns"]) if "columns" in values else None,
            output=_output(values, name, names),
        )
        _tell(written)


def _report_papers(values: Mapping[str, str], formats: Sequence[str], console: Console) -> None:
    from klr_bench.report.paper_pages import report_papers

    written = report_papers(
        items("paper", values["paper"]),
        Path(values.get("results_dir", "results")),
        console=console,
        table=values.get("table"),
        formats=formats,
        output=Path(values["output"]) if "output" in values else None,
    )
    _tell(written)


def _tell(paths: Sequence[Path]) -> None:
    sys.stdout.write(printable("".join(f"{path}\n" for path in paths)))


def _output(values: Mapping[str, str], name: str, names: Sequence[str]) -> Path | None:
    """Return the folder for the files of one report; of several reports each has a folder inside `output`."""
    if "output" not in values:
        return None
    return Path(values["output"]) / (name if len(names) > 1 else "")
