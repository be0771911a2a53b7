"""``klr-bench report``: which reports are asked for, and where their files go."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from klr_bench.cli.words import is_true, items, split_keys
from klr_bench.errors import KlrBenchError
from klr_bench.printing import is_file_name, printable
from klr_bench.report.writing import check_formats

if TYPE_CHECKING:
    from rich.console import Console

PLACED = ("caption", "label", "note", "orientation")
"""Keys of a report that are for LaTeX."""
OF_EXPERIMENT = ("experiment", "columns", *PLACED, "own_figures")
"""Keys of a report that a whole paper does not have."""
KEYS = ("experiment", "paper", "results_dir", "table", "format", "output", "open", *OF_EXPERIMENT[1:])
SITE_KEYS = ("output", "results_dir", "open")
PAGE = "html"
NOT_ON_A_PAGE = ("table", *PLACED)


def main(arguments: Sequence[str]) -> int:
    """Make the reports that are asked for; return the exit status."""
    words, values = split_keys(arguments, KEYS)
    formats = items("format", values.get("format", "terminal"))
    if PAGE in formats and not words and values.keys() & {"experiment", "paper"}:
        _report_page(values, formats)
        values = {key: value for key, value in values.items() if key != "open"}
        formats.remove(PAGE)
        if not formats:
            return 0
    if "open" in values:
        message = f"open={values['open']}: has no effect, because it is for a page; add html to format=."
        raise KlrBenchError(message)
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
        return _report_papers(values, formats, console)
    names = _experiments(values)
    for key in PLACED:
        if key in values and "tex" not in formats:
            message = f"{key}={values[key]}: has no effect, because it is for LaTeX; add tex to format=."
            raise KlrBenchError(message)
    placing = Placing(**{key: values[key] for key in PLACED if key in values})
    own_figures = is_true("own_figures", values.get("own_figures", "false"))
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


def _experiments(values: Mapping[str, str]) -> list[str]:
    """Return the names of experiments, each that of a folder in results_dir."""
    names = items("experiment", values["experiment"]) if "experiment" in values else []
    for name in names:
        if not is_file_name(name):
            message = f"experiment: expected the name of a folder in results_dir, got {name!r}."
            raise KlrBenchError(message)
    return names


def _report_page(values: Mapping[str, str], formats: Sequence[str]) -> None:
    """Write one page of the experiments and papers that are asked for."""
    check_formats(formats)
    for key in NOT_ON_A_PAGE:
        if key in values and formats == [PAGE]:
            message = f"{key}={values[key]}: has no effect on a page; leave it out, or add another format."
            raise KlrBenchError(message)
    results_dir, names = Path(values.get("results_dir", "results")), _experiments(values)
    opened = is_true("open", values.get("open", "false"))
    output = Path(values["output"]) if "output" in values else None
    if output is not None and output.suffix == f".{PAGE}":
        if formats != [PAGE]:
            message = f"output={output}: expected a folder, because there are files of several formats; got one file."
            raise KlrBenchError(message)
        target = output
    else:
        alone = len(names) == 1 and "paper" not in values
        target = (output or (results_dir / names[0] / "report" if alone else results_dir)) / f"report.{PAGE}"
    from klr_bench.report.page import write_page

    written = write_page(
        target,
        [results_dir / name for name in names],
        papers=items("paper", values["paper"]) if "paper" in values else [],
        results_dir=results_dir,
        columns=items("columns", values["columns"]) if "columns" in values else None,
        own_figures=is_true("own_figures", values.get("own_figures", "false")),
    )
    _tell([written], opened=opened)


def site(arguments: Sequence[str]) -> int:
    """Write a static site of all results; return the exit status."""
    words, values = split_keys(arguments, SITE_KEYS)
    if words or "output" not in values:
        message = f"site: expected output=FOLDER, got {' '.join(words) or 'none'}. Try klr-bench site output=site"
        raise KlrBenchError(message)
    opened = is_true("open", values.get("open", "false"))
    from klr_bench.report.page import write_site

    *_, first = write_site(Path(values["output"]), Path(values.get("results_dir", "results")))
    _tell([first], opened=opened)
    return 0


def _tell(paths: Sequence[Path], *, opened: bool) -> None:
    """Print paths, and open the last one in a browser if that is asked for."""
    sys.stdout.write(printable("".join(f"{path}\n" for path in paths)))
    if opened:
        import webbrowser

        webbrowser.open(paths[-1].resolve().as_uri())


def _report_papers(values: Mapping[str, str], formats: Sequence[str], console: Console) -> int:
    from klr_bench.report.whole import report_papers

    written = report_papers(
        items("paper", values["paper"]),
        Path(values.get("results_dir", "results")),
        console=console,
        table=values.get("table"),
        formats=formats,
        output=Path(values["output"]) if "output" in values else None,
    )
    sys.stdout.write(printable("".join(f"{path}\n" for path in written)))
    return 0


def _output(values: Mapping[str, str], name: str, names: Sequence[str]) -> Path | None:
    """Return the folder for the files of one report; of several reports each has a folder inside `output`."""
    if "output" not in values:
        return None
    return Path(values["output"]) / (name if len(names) > 1 else "")
