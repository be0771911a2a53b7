"""``format=html`` and ``klr-bench site``: which pages are asked for, and where they go."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from klr_bench.cli.words import experiments, is_true, items, other_run, results_dirs, split_keys
from klr_bench.errors import KlrBenchError
from klr_bench.printing import printable
from klr_bench.report.writing import check_formats

PAGE = "html"
SITE_KEYS = ("output", "results_dir", "open")
WITHOUT_EFFECT = ("table", "caption", "label", "note", "orientation")
"""Keys of a report that a page has no use for."""


def page(values: Mapping[str, str], formats: Sequence[str]) -> None:
    """Write one page of the experiments and papers that are asked for, or of two runs side by side."""
    check_formats(formats)
    for key in WITHOUT_EFFECT:
        if key in values and formats == [PAGE]:
            message = f"{key}={values[key]}: has no effect on a page; leave it out, or add another format."
            raise KlrBenchError(message)
    folders, names = results_dirs(values), experiments(values)
    opened = is_true("open", values.get("open", "false"))
    columns = items("columns", values["columns"]) if "columns" in values else None
    target = _target(values, formats, folders[0], names)
    from klr_bench.report.page.files import page_against, write_page

    if "against" in values or len(folders) > 1:
        pairs = [(folders[0] / name, other_run(values, folders, name)) for name in names]
        written = page_against(target, pairs, columns)
    else:
        written = write_page(
            target,
            [folders[0] / name for name in names],
            papers=items("paper", values["paper"]) if "paper" in values else [],
            results_dir=folders[0],
            columns=columns,
            own_figures=is_true("own_figures", values.get("own_figures", "false")),
            statistics=is_true("statistics", values.get("statistics", "false")),
        )
    _tell(written, opened=opened)


def _target(values: Mapping[str, str], formats: Sequence[str], results_dir: Path, names: Sequence[str]) -> Path:
    """Return the file of a page: the one that is named, or one in the folder of the report's other files."""
    output = Path(values["output"]) if "output" in values else None
    if output is not None and output.suffix == f".{PAGE}":
        if formats != [PAGE]:
            message = f"output={output}: expected a folder, because there are files of several formats; got one file."
            raise KlrBenchError(message)
        return output
    alone = len(names) == 1 and "paper" not in values
    return (output or (results_dir / names[0] / "report" if alone else results_dir)) / f"report.{PAGE}"


def site(arguments: Sequence[str]) -> int:
    """Write a static site of all results; return the exit status."""
    words, values = split_keys(arguments, SITE_KEYS)
    if words or "output" not in values:
        message = f"site: expected output=FOLDER, got {' '.join(words) or 'none'}. Try klr-bench site output=site"
        raise KlrBenchError(message)
    opened = is_true("open", values.get("open", "false"))
    from klr_bench.report.page.files import write_site

    *_, first = write_site(Path(values["output"]), Path(values.get("results_dir", "results")))
    _tell(first, opened=opened)
    return 0


def _tell(path: Path, *, opened: bool) -> None:
    """Print a path, and open it in a browser if that is asked for."""
    sys.stdout.write(printable(f"{path}\n"))
    if opened:
        import webbrowser

        webbrowser.open(path.resolve().as_uri())
