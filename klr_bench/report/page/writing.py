"""Pages as files: one that holds everything, or a site whose pages share the script and the style."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import klr_bench
from klr_bench.experiment.config.files import folders
from klr_bench.files import write_atomic
from klr_bench.report.page.content import Part, against_part, experiment_part, paper_part
from klr_bench.report.page.data import script_json
from klr_bench.report.paper import paper_files
from klr_bench.report.whole import ALL, experiments_of
from klr_bench.report.whole.join import WholePaper

if TYPE_CHECKING:
    from jinja2 import Environment

PLOTS, SCRIPT, STYLE, LICENCE = "plotly-basic.min.js", "page.js", "page.css", "plotly-LICENSE.txt"


def html_page(
    experiments: Sequence[Path], papers: Sequence[str] = (), results_dir: Path = Path("results"), **how: Any
) -> str:
    """Return one page that holds everything: papers, then experiments.

    Parameters
    ----------
    experiments : results folders
    papers : names of papers, or "all"; with all of their experiments that are in results_dir
    results_dir : where the experiments of the papers are
    how : arguments of `experiment_part`

    KlrBenchError where a folder has no results that can be read, and for a paper that there is not.
    """
    found = paper_files(folders())
    names = list(dict.fromkeys(one for name in papers for one in (found if name == ALL else [name])))
    for name in names:
        experiments_of(name)  # or it is refused
    whole = [WholePaper(name, found[name], results_dir) for name in names]
    behind = [results_dir / name for paper in whole for name in paper.results]
    experiments = list(dict.fromkeys([*experiments, *behind]))
    parts = [paper_part(paper) for paper in whole]
    parts += [experiment_part(folder, **how) for folder in experiments]
    parts += _numbers_beside(experiments, set(names))
    return spelled(parts, ", ".join([paper.paper.reference for paper in whole] or [path.name for path in experiments]))


def write_page(target: Path, experiments: Sequence[Path], **how: Any) -> Path:
    """Write the page of `html_page` to a file and return its path."""
    write_atomic(target, html_page(experiments, **how).encode())
    return target


def page_against(target: Path, pairs: Sequence[tuple[Path, Path]], columns: Sequence[str] | None = None) -> Path:
    """Write a page of runs side by side, each pair of results folders with what differs; return its path.

    Raises KlrBenchError for what `klr_bench.report.against.two_runs.compare` refuses.
    """
    parts = [against_part(first, second, columns) for first, second in pairs]
    write_atomic(target, spelled(parts, ", ".join(part.name for part in parts)).encode())
    return target


def _numbers_beside(experiments: Sequence[Path], without: Collection[str]) -> list[Part]:
    """Return, for each paper whose tables name some of these experiments, its numbers beside theirs."""
    found = []
    for name, folder in paper_files(folders()).items():
        named = set(experiments_of(name)) & {path.name for path in experiments}
        if named and name not in without:
            part = paper_part(WholePaper(name, folder, experiments[0].parent, only=named), numbers=sorted(named))
            found += [part] if part.tables else []
    return found


def spelled(parts: Sequence[Part], title: str, *, shared: str = "", home: str = "") -> str:
    """Return a page as HTML.

    `shared` is the address of the folder of the script and the style, "" for a page that holds them; `home` that of
    the first page of a site.
    """
    tables = {table.name: table.plain() for part in parts for table in part.tables}
    plots = {plot["name"]: plot for part in parts for plot in part.plots}
    return (
        _environment()
        .get_template("layout.html")
        .render(
            title=title,
            parts=parts,
            shared=shared,
            home=home,
            policy=_policy(shared=bool(shared)),
            made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            data=_trusted(script_json({"tables": tables, "plots": plots})),
        )
    )


def asset(name: str) -> str:
    """Return the text of a script or a style."""
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    found = Environment(
        loader=PackageLoader("klr_bench.report.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.globals.update(
        asset=lambda name: _trusted(asset(name)),
        marked=_marked,
        version=klr_bench.__version__,
        **{"PLOTS": PLOTS, "SCRIPT": SCRIPT, "STYLE": STYLE, "LICENCE": LICENCE},
    )
    return found


def _trusted(text: str) -> str:
    """Return a text that is ours, or escaped already, as it is."""
    from markupsafe import Markup

    return Markup(text)


def _marked(text: str) -> str:
    """Return the class of a number by its mark: off, off with a cause, or compatible."""
    marks = {"*": "off", "~": "compatible", "]": "explained"}
    found = marks.get(text.strip()[-1:])
    return _trusted(f' class="{found}"') if found else ""


@cache
def _policy(*, shared: bool) -> str:
    """Return what a page may load: nothing but its own script, by its hash; of a site, files of the site.

    Styles are free, since plotly.js sets some on its elements.
    """
    scripts = "'self'" if shared else " ".join(_hash(asset(name)) for name in (PLOTS, SCRIPT))
    styles = "'self' 'unsafe-inline'" if shared else "'unsafe-inline'"
    nothing = "default-src 'none'; base-uri 'none'; form-action 'none'"
    return f"{nothing}; script-src {scripts}; style-src {styles}; img-src data: blob:"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
