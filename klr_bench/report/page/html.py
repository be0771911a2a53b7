"""Write HTML pages, as self-contained files or with shared scripts and styles.

Jinja2 escapes all texts; only our own scripts and styles, and HTML that `fragment` made, are inserted as they are.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from klr_bench.config.locations import folders
from klr_bench.files import write_atomic
from klr_bench.report.compare.comparison import compare
from klr_bench.report.compare.pages import documents
from klr_bench.report.figures import MOST_PANELS
from klr_bench.report.page.content import THUMBNAIL, Part, experiment_part, paper_part
from klr_bench.report.papers.claims import COLORED_AS
from klr_bench.report.papers.reading import experiments_of, find_papers, paper_files
from klr_bench.report.papers.reproduction import Reproduction
from klr_bench.report.papers.verdicts import BY_SIGN, WEAK_MARK, Verdict
from klr_bench.report.render.document import ALIKE, BEST
from klr_bench.version import __version__

THEME = "theme.js"
"""Script that runs before the page is shown."""
SCRIPTS = ("plotly-basic.min.js", "common.js", "tables.js", "figures.js", "page.js")
"""Scripts after the content, in execution order."""
STYLES, LICENSE = ("verdicts.css", "page.css"), "plotly-LICENSE.txt"
SHARED = (THEME, *SCRIPTS, *STYLES, LICENSE)
"""Files shared by the pages of a site."""
VERDICTS = {verdict.value: verdict.name.lower() for verdict in Verdict} | {
    word: verdict.name.lower() for word, verdict in COLORED_AS.items()
}
"""CSS class of each verdict on a number or claim; `verdicts.css` has their colors, for the documentation, too."""
MARKS = {BEST: "best", ALIKE: "alike", WEAK_MARK: "weak"} | {
    sign: verdict.name.lower() for sign, verdict in BY_SIGN.items()
}
"""CSS class of a table entry, by its last character."""

ENVIRONMENT = Environment(
    loader=PackageLoader("klr_bench.report.page"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def fragment(parts: Sequence[Part], title: str) -> str:
    """Return the sections of a page as HTML, with the data for its scripts."""
    tables = {table["name"]: table for part in parts for table in part.tables}
    plots = {plot["name"]: plot for part in parts for plot in part.plots}
    data = script_json({"tables": tables, "plots": plots, "verdicts": VERDICTS})
    return ENVIRONMENT.get_template("fragment.html").render(parts=parts, title=title, data=data)


def script_json(content: Any) -> str:
    """Return JSON for a script element, escaped so that no text in it closes the element."""
    text = json.dumps(content, allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def layout(content: str, title: str, *, shared: str = "", home: str = "", watched: bool = False) -> str:
    """Return a complete page around the content from `fragment`.

    `shared` is the address of the folder of scripts and style (none: the page holds them), and `home` that of the first
    page of a site.  A `watched` page fetches its content from the server of a live view.
    """
    template = ENVIRONMENT.get_template("layout.html")
    return template.render(
        content=content,
        title=title,
        shared=shared,
        home=home,
        watched=watched,
        policy=policy(shared=bool(shared), watched=watched),
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )


@cache
def asset(name: str) -> str:
    """Return the text of a script, style sheet or license."""
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


@cache
def policy(*, shared: bool, watched: bool = False) -> str:
    """Return the content security policy of a page.

    A page may run only its own scripts and load nothing else.

    Styles are free, because plotly.js sets some on its elements.
    """
    digests = (hashlib.sha256(asset(name).encode()).digest() for name in (THEME, *SCRIPTS))
    hashes = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    scripts, styles = ("'self'", "'self' 'unsafe-inline'") if shared else (hashes, "'unsafe-inline'")
    allowed = [
        "default-src 'none'",
        f"script-src {scripts}",
        f"style-src {styles}",
        "img-src data: blob:",
        "base-uri 'none'",
        "form-action 'none'",
        *(["connect-src 'self'"] if watched else []),
    ]
    return "; ".join(allowed)


ENVIRONMENT.globals.update(asset=asset, version=__version__, marks=MARKS, classes=VERDICTS, Verdict=Verdict)
ENVIRONMENT.globals.update(
    MOST_PANELS=MOST_PANELS, THUMBNAIL=THUMBNAIL, THEME=THEME, SCRIPTS=SCRIPTS, STYLES=STYLES, LICENSE=LICENSE
)


def write_page(
    target: Path,
    experiments: Sequence[Path],
    papers: Sequence[str] = (),
    results_dir: Path = Path("results"),
    **options: Any,
) -> Path:
    """Write a self-contained page on the given papers and results folders; return its path.

    `papers` are names, or "all"; their experiments in `results_dir` are on the page, too.  `options` are arguments of
    `experiment_part`.  Raises KlrBenchError for a folder without valid results, and for an unknown paper.
    """
    chosen = {name: folder for words in papers for name, folder in find_papers(words).items()}
    reproduction = [Reproduction(name, folder, results_dir) for name, folder in chosen.items()]
    of_papers = [results_dir / name for of_paper in reproduction for name in of_paper.results]
    experiments = list(dict.fromkeys([*experiments, *of_papers]))
    parts = [paper_part(paper) for paper in reproduction]
    parts += [experiment_part(folder, **options) for folder in experiments]
    for name, folder in paper_files(folders()).items():
        compared = set(experiments_of(name)) & {path.name for path in experiments}
        if compared and name not in chosen:
            paper = Reproduction(name, folder, experiments[0].parent, only=compared)
            part = paper_part(paper, sorted(compared))
            parts += [part] if part.tables else []
    title = ", ".join([paper.paper.reference for paper in reproduction] or [path.name for path in experiments])
    title = parts[0].title if len(experiments) == 1 and not reproduction else title
    return _write(target, parts, title)


def page_against(target: Path, pairs: Sequence[tuple[Path, Path]], columns: Sequence[str] | None = None) -> Path:
    """Write a page that compares pairs of results folders; return its path.

    Raises the same errors as `compare`.
    """
    parts = []
    for first, second in pairs:
        name = f"{first.name} against {second.name if second.name != first.name else second.parent.name}"
        compared = documents(compare(first, second, columns))
        parts.append(Part("against", name, compared[0].title, compared))
    return _write(target, parts, ", ".join(part.name for part in parts))


def _write(target: Path, parts: Sequence[Part], title: str) -> Path:
    write_atomic(target, layout(fragment(parts, title), title).encode())
    return target
