"""``klr-bench report`` and ``site``: which reports and pages are requested, and where their files go."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from klr_bench.cli.words import experiments, is_true, items, other_run, results_dirs, split_keys
from klr_bench.errors import fail
from klr_bench.printing import printable
from klr_bench.report.writing import check_formats

if TYPE_CHECKING:
    from rich.console import Console

PAGE = "html"
LATEX_KEYS = ("caption", "label", "note", "orientation")
EXPERIMENT_KEYS = ("experiment", "against", "columns", *LATEX_KEYS, "own_figures", "statistics")
"""Keys that a report of a whole paper does not have."""
SINGLE_RUN_KEYS = ("table", *LATEX_KEYS, "own_figures", "statistics")
"""Keys that a report of two runs side by side does not have."""
KEYS = ("experiment", "against", "paper", "results_dir", "table", "format", "output", "open", *EXPERIMENT_KEYS[2:])
SITE_KEYS = ("output", "results_dir", "open")


def main(arguments: Sequence[str]) -> int:
    """Make the requested reports; return the exit status."""
    named = next((argument for argument in arguments if argument.startswith("name=")), "")
    if named:
        fail(f"unknown key 'name'. What ran with {named} is shown by klr-bench report experiment={named[5:]}")
    words, values = split_keys(arguments, KEYS)
    if words or not values.keys() & {"experiment", "paper"}:
        got, name = (repr(" ".join(words)), words[0]) if words else ("none", "<name>")
        fail(f"report: expected experiment=<name>, got {got}. Try klr-bench report experiment={name}")
    formats = items("format", values.get("format", "terminal"))
    _check(values, formats)
    if PAGE in formats:
        _write_page(values, formats)
    rest = [name for name in formats if name != PAGE]
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
    tables = formats != [PAGE]
    if "open" in values and PAGE not in formats:
        fail(f"open={values['open']}: has no effect, because it is for a page; add html to format=.")
    if "paper" in values and (tables or "against" in values) and values.keys() & set(EXPERIMENT_KEYS):
        other = next(key for key in EXPERIMENT_KEYS if key in values)
        fail(f"report: paper= and {other}= are both given: a whole paper has no {other}. Leave one of them out.")
    for key in LATEX_KEYS:
        if key in values and "tex" not in formats and tables:
            fail(f"{key}={values[key]}: has no effect, because it is for LaTeX; add tex to format=.")
    if _two_runs(values):
        given = f"against={values['against']}" if "against" in values else f"results_dir={values['results_dir']}"
        unused = next((key for key in SINGLE_RUN_KEYS if key in values), "format=pdf" if "pdf" in formats else "")
        if unused:
            fail(
                f"{unused}: has no effect beside {given}, which draws no figures and has tables of its own. "
                "Leave it out."
            )
    if not tables:
        for key in ("table", *LATEX_KEYS):
            if key in values:
                fail(f"{key}={values[key]}: has no effect on a page; leave it out, or add another format.")


def _two_runs(values: Mapping[str, str]) -> bool:
    return "against" in values or len(results_dirs(values)) > 1


def _report_experiments(values: Mapping[str, str], formats: Sequence[str], console: Console) -> None:
    from klr_bench.report import report
    from klr_bench.report.render import Placing

    names = experiments(values)
    placing = Placing(**{key: values[key] for key in LATEX_KEYS if key in values})
    for name in names:
        written = report(
            results_dirs(values)[0] / name,
            console=console,
            table=values.get("table"),
            formats=formats,
            columns=_columns(values),
            placing=placing,
            output=_output(values, name, names),
            own_figures=_flag(values, "own_figures"),
            statistics=_flag(values, "statistics"),
        )
        _print_paths(written)


def _report_two(values: Mapping[str, str], formats: Sequence[str], console: Console) -> None:
    """Compare each experiment with another one, or with itself in the other results folder."""
    from klr_bench.report.compare.comparison import report_comparison

    names, folders = experiments(values), results_dirs(values)
    for name in names:
        written = report_comparison(
            folders[0] / name,
            other_run(values, folders, name),
            console=console,
            formats=formats,
            columns=_columns(values),
            output=_output(values, name, names),
        )
        _print_paths(written)


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
    _print_paths(written)


def _write_page(values: Mapping[str, str], formats: Sequence[str]) -> None:
    """Write one page of the requested experiments and papers, or of two runs side by side."""
    check_formats(formats)
    folders, names, columns = results_dirs(values), experiments(values), _columns(values)
    target, opened = _page_file(values, formats, folders[0], names), _flag(values, "open")
    from klr_bench.report.page.html import page_against, write_page

    if _two_runs(values):
        pairs = [(folders[0] / name, other_run(values, folders, name)) for name in names]
        written = page_against(target, pairs, columns)
    else:
        written = write_page(
            target,
            [folders[0] / name for name in names],
            papers=items("paper", values["paper"]) if "paper" in values else [],
            results_dir=folders[0],
            columns=columns,
            own_figures=_flag(values, "own_figures"),
            statistics=_flag(values, "statistics"),
        )
    _print_paths([written], opened=opened)


def _page_file(values: Mapping[str, str], formats: Sequence[str], results_dir: Path, names: Sequence[str]) -> Path:
    """Return the file of a page: the given one, or one in the folder of the report's other files."""
    output = Path(values["output"]) if "output" in values else None
    if output is not None and output.suffix == f".{PAGE}":
        if formats != [PAGE]:
            fail(f"output={output}: expected a folder, because there are files of several formats; got one file.")
        return output
    alone = len(names) == 1 and "paper" not in values
    return (output or (results_dir / names[0] / "report" if alone else results_dir)) / f"report.{PAGE}"


def site(arguments: Sequence[str]) -> int:
    """Write a static site of all results; return the exit status."""
    words, values = split_keys(arguments, SITE_KEYS)
    if words or "output" not in values:
        fail(f"site: expected output=FOLDER, got {' '.join(words) or 'none'}. Try klr-bench site output=site")
    opened = _flag(values, "open")
    from klr_bench.report.page.html import write_site

    *_, first = write_site(Path(values["output"]), Path(values.get("results_dir", "results")))
    _print_paths([first], opened=opened)
    return 0


def _columns(values: Mapping[str, str]) -> list[str] | None:
    return items("columns", values["columns"]) if "columns" in values else None


def _flag(values: Mapping[str, str], key: str) -> bool:
    return is_true(key, values.get(key, "false"))


def _output(values: Mapping[str, str], name: str, names: Sequence[str]) -> Path | None:
    """Return the folder for the files of one report; of several reports each has a folder inside `output`."""
    if "output" not in values:
        return None
    return Path(values["output"]) / (name if len(names) > 1 else "")


def _print_paths(paths: Sequence[Path], *, opened: bool = False) -> None:
    sys.stdout.write(printable("".join(f"{path}\n" for path in paths)))
    if opened:
        import webbrowser

        webbrowser.open(paths[0].resolve().as_uri())
