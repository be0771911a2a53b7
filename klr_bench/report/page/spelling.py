"""From parts to HTML.  Texts are escaped, whoever wrote them; scripts and styles are ours and stand as they are.

`inside` makes what a page holds, `layout` what is around it: so a page that is served can fetch the first anew.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import klr_bench

if TYPE_CHECKING:
    from jinja2 import Environment

    from klr_bench.report.page.content import Part

SCRIPTS = ("plotly-basic.min.js", "common.js", "tables.js", "figures.js", "page.js")
"""In the order in which a page runs them."""
STYLE, LICENCE = "page.css", "plotly-LICENSE.txt"
WATCH_SCRIPT, WATCH_STYLE, WATCH_HEADER = "watch.js", "watch.css", "watch.html"
SHARED = (*SCRIPTS, STYLE, LICENCE)
"""What the pages of a site share."""


def inside(parts: Sequence[Part], title: str) -> str:
    """Return what a page of this title holds: its parts, and the data that its script shows."""
    from klr_bench.report.page.data import script_json

    tables = {table.name: table.plain() for part in parts for table in part.tables}
    plots = {plot["name"]: plot for part in parts for plot in part.plots}
    data = _trusted(script_json({"tables": tables, "plots": plots}))
    return _environment().get_template("inside.html").render(parts=parts, title=title, data=data)


def layout(held: str, title: str, *, shared: str = "", home: str = "", watched: str | None = None) -> str:
    """Return a page that holds HTML which `inside` has made.

    Parameters
    ----------
    held : what stands on the page
    title : its title
    shared : the address of the folder of the script and the style, "" for a page that holds them
    home : the address of the first page of a site
    watched : of a page that watches a run, the version of what it holds; None for any other
    """
    return (
        _environment()
        .get_template("layout.html")
        .render(
            held=_trusted(held),
            title=title,
            shared=shared,
            home=home,
            watched=watched,
            policy=policy(shared=bool(shared), watched=watched is not None),
            made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        )
    )


def asset(name: str) -> str:
    """Return the text of a script, a style or a licence."""
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


@cache
def policy(*, shared: bool, watched: bool = False) -> str:
    """Return what a page may load: nothing but its own scripts, by their hashes; of a server or site, their own files.

    Styles are free, since plotly.js sets some on its elements.
    """
    scripts = "'self'" if shared else " ".join(_hash(asset(name)) for name in SCRIPTS)
    allowed = [
        "default-src 'none'",
        f"script-src {scripts}",
        "style-src 'self' 'unsafe-inline'" if shared else "style-src 'unsafe-inline'",
        "img-src data: blob:",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    return "; ".join([*allowed, "connect-src 'self'"] if watched else allowed)


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
        **{"SCRIPTS": SCRIPTS, "STYLE": STYLE, "LICENCE": LICENCE},
        **{"WATCH_SCRIPT": WATCH_SCRIPT, "WATCH_STYLE": WATCH_STYLE, "WATCH_HEADER": WATCH_HEADER},
    )
    return found


def _trusted(text: str) -> str:
    """Return a text that is ours, or escaped already, as it is."""
    from markupsafe import Markup

    return Markup(text)


def _marked(text: str) -> str:
    """Return the class of a number by its mark: off, off with a cause, or compatible."""
    marks = {"*": "off", "~": "compatible", "]": "explained", "‡": "best", "†": "alike"}
    found = marks.get(text.strip()[-1:])
    return _trusted(f' class="{found}"') if found else ""


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
