"""Commands ``klr-bench report`` and ``klr-bench site``, which write tables and pages."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from klr_bench.cli.arguments import is_true, items, split_keys
from klr_bench.cli.outputs import check_folder
from klr_bench.config.locations import is_reference
from klr_bench.errors import fail
from klr_bench.files import expanded
from klr_bench.printing import is_file_name, printable
from klr_bench.report.writing import check_formats
from klr_bench.results.archive import ENDING, extracted

PAGE = "html"
LATEX_KEYS = ("caption", "label", "note", "orientation")
EXPERIMENT_KEYS = ("experiment", "compare", "columns", "over", *LATEX_KEYS, "own_figures", "statistics")
"""Keys that do not apply to the report of a whole paper."""
SINGLE_RUN_KEYS = ("paper", "table", "over", *LATEX_KEYS, "own_figures", "statistics")
"""Keys that do not apply to the report of two runs."""
KEYS = ("experiment", "compare", "paper", "results_dir", "table", "format", "output", "open", *EXPERIMENT_KEYS[2:])
REPORTS = "reports of an archive"
"""Key of the folder beside an archive; it is not a key of the command line."""
SITE_KEYS = ("output", "results_dir", "open")
REFERENCE_REPORTS = Path("results", "reference_reports")
"""Default folder for reports on the reference results of any checkout, to which their own folder belongs."""
Values = Mapping[str, str]


def report(arguments: Sequence[str]) -> int:
    """Write the reports that the arguments request and return the exit status."""
    if named := next((argument for argument in arguments if argument.startswith("name=")), ""):
        fail(f"unknown key 'name'. To show results of a run with {named}: klr-bench report experiment={named[5:]}")
    words, values = split_keys(arguments, KEYS)
    if words or not values.keys() & {"experiment", "paper"}:
        got, name = (repr(" ".join(words)), words[0]) if words else ("none", "<name>")
        fail(f"report: expected experiment=<name>, got {got}. Try klr-bench report experiment={name}")
    formats = items("format", values.get("format", "terminal"))
    _check(values, formats)
    if "output" in values and (PAGE not in formats or Path(values["output"]).suffix != f".{PAGE}"):
        check_folder("output", Path(values["output"]))
    with ExitStack() as stack:
        opened = _with_archives(values, stack)
        if PAGE in formats:
            _write_page(opened, formats)
        rest = [name for name in formats if name != PAGE]
        if rest:
            _write_tables(opened, rest)
    return 0


def _with_archives(values: Values, stack: ExitStack) -> Values:
    """Return the arguments with a temporary folder in place of each archive.

    `stack` removes the folders.
    """
    folders = _results_dirs(values)
    archives = [folder for folder in folders if folder.suffix.lower() == ENDING and not folder.is_dir()]
    if not archives:
        return values
    opened = [stack.enter_context(extracted(folder)) if folder in archives else folder for folder in folders]
    beside = {REPORTS: str(folders[0].with_suffix(""))} if folders[0] in archives else {}
    return {**values, "results_dir": ",".join(map(str, opened)), **beside}


def _check(values: Values, formats: Sequence[str]) -> None:
    tables, two_runs = formats != [PAGE], _two_runs(values)
    if "paper" in values and (tables or "compare" in values) and values.keys() & set(EXPERIMENT_KEYS):
        other = next(key for key in EXPERIMENT_KEYS if key in values)
        fail(f"report: paper= and {other}= are both given, but a whole paper has no {other}. Leave one of them out.")
    other_run = "compare" if "compare" in values else "results_dir"
    rules: list[tuple[Sequence[str], bool, str]] = [
        (("open",), PAGE not in formats, "because it is for a page; add html to format="),
        (LATEX_KEYS, "tex" not in formats and tables, "because it is for LaTeX; add tex to format="),
        (SINGLE_RUN_KEYS, two_runs, f"with {other_run}={values.get(other_run)}; leave it out"),
        (("table", "over", *LATEX_KEYS), not tables, "on a page; leave it out, or add another format"),
        (("table", "own_figures"), "over" in values, f"with over={values.get('over')}; leave it out"),
    ]
    for keys, is_unused, reason in rules:
        for key in keys:
            if is_unused and key in values:
                fail(f"{key}={values[key]}: has no effect {reason}.")
    if two_runs and "pdf" in formats:
        fail(f"format=pdf has no effect with {other_run}={values[other_run]}, which has no figures; leave out pdf.")


def _experiments(values: Values) -> list[str]:
    names = items("experiment", values["experiment"]) if "experiment" in values else []
    if wrong := [name for name in names if not is_file_name(name)]:
        fail(f"experiment: expected the name of a folder in results_dir, got {wrong[0]!r}.")
    return names


def _results_dirs(values: Values) -> list[Path]:
    """Return the results folders: one, or two for ``results_dir=X,Y``.

    If a folder or an archive with the name ``X,Y`` exists, it is meant.
    """
    value = values.get("results_dir", "results")
    if "," not in value or os.path.exists(value):
        return [Path(value)]
    folders = [expanded(part) for part in items("results_dir", value)]
    if len(folders) != 2:
        fail(f"results_dir={value}: expected one folder, or two as in results_dir=X,Y, got {len(folders)}.")
    return folders


def _two_runs(values: Values) -> bool:
    return "compare" in values or len(_results_dirs(values)) > 1


def _other_run(values: Values, name: str) -> Path:
    folders, other = _results_dirs(values), values.get("compare")
    if other is None:
        return folders[1] / name
    if len(folders) > 1:
        fail(f"compare={other} and results_dir={values['results_dir']} both name the other run. Leave one out.")
    return folders[0] / other if is_file_name(other) else Path(other)


def _reports_dir(values: Values) -> Path:
    """Return the folder in which reports are written if ``output=`` is not given."""
    folder = Path(values.get(REPORTS, _results_dirs(values)[0]))
    return REFERENCE_REPORTS if is_reference(folder) else folder


def _columns(values: Values) -> list[str] | None:
    return items("columns", values["columns"]) if "columns" in values else None


def _write_tables(values: Values, formats: Sequence[str]) -> None:
    from klr_bench.console import PlainConsole
    from klr_bench.report import report
    from klr_bench.report.compare.pages import report_comparison
    from klr_bench.report.paper_pages import report_papers
    from klr_bench.report.render import Placing
    from klr_bench.report.sweeps import swept_settings

    console, folder, reports = PlainConsole(), _results_dirs(values)[0], _reports_dir(values)
    output = Path(values["output"]) if "output" in values else None
    table, columns = values.get("table"), _columns(values)
    if "paper" in values:
        written = report_papers(
            items("paper", values["paper"]),
            folder,
            console=console,
            table=table,
            formats=formats,
            output=output,
            reports_dir=reports,
        )
        _print_paths(written)
    names = _experiments(values)
    for name in names:
        over = items("over", values["over"]) if "over" in values else swept_settings(folder / name)
        for key in ("table", "own_figures") if over else ():
            if key in values:
                fail(f"{key}={values[key]}: has no effect with a sweep over {', '.join(over)}; leave it out.")
        place = reports / name / ("sweep" if over else "report")
        if output:
            place = output / name if len(names) > 1 else output
        if _two_runs(values):
            other = _other_run(values, name)
            written = report_comparison(
                folder / name, other, console=console, formats=formats, columns=columns, output=place
            )
        else:
            written = report(
                folder / name,
                console=console,
                table=table,
                formats=formats,
                columns=columns,
                placing=Placing(**{key: values[key] for key in LATEX_KEYS if key in values}),
                output=place,
                own_figures=is_true("own_figures", values),
                statistics=is_true("statistics", values),
                over=over,
            )
        _print_paths(written)


def _write_page(values: Values, formats: Sequence[str]) -> None:
    check_formats(formats)
    folder, names, columns = _results_dirs(values)[0], _experiments(values), _columns(values)
    target, in_browser = _page_file(values, formats, names), is_true("open", values)
    from klr_bench.report.page.html import page_against, write_page

    if _two_runs(values):
        page = page_against(target, [(folder / name, _other_run(values, name)) for name in names], columns)
    else:
        page = write_page(
            target,
            [folder / name for name in names],
            papers=items("paper", values["paper"]) if "paper" in values else [],
            results_dir=folder,
            columns=columns,
            own_figures=is_true("own_figures", values),
            statistics=is_true("statistics", values),
        )
    _print_paths([page], in_browser=in_browser)


def _page_file(values: Values, formats: Sequence[str], names: Sequence[str]) -> Path:
    reports, output = _reports_dir(values), Path(values["output"]) if "output" in values else None
    if output is not None and output.suffix == f".{PAGE}":
        if formats != [PAGE]:
            fail(f"output={output}: expected a folder, because several formats are written; got a file.")
        return output
    alone = len(names) == 1 and "paper" not in values
    return (output or (reports / names[0] / "report" if alone else reports)) / f"report.{PAGE}"


def site(arguments: Sequence[str]) -> int:
    """Write a static web site with all results and return the exit status."""
    words, values = split_keys(arguments, SITE_KEYS)
    if words or "output" not in values:
        fail(f"site: expected output=FOLDER, got {' '.join(words) or 'none'}. Try klr-bench site output=site")
    in_browser = is_true("open", values)
    check_folder("output", Path(values["output"]))
    from klr_bench.report.page.site import write_site

    *_, first = write_site(Path(values["output"]), Path(values.get("results_dir", "results")))
    _print_paths([first], in_browser=in_browser)
    return 0


def _print_paths(paths: Sequence[Path], *, in_browser: bool = False) -> None:
    sys.stdout.write(printable("".join(f"{path}\n" for path in paths)))
    if in_browser:
        import webbrowser

        webbrowser.open(paths[0].resolve().as_uri())
