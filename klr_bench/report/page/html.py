"""From parts to HTML: texts are escaped, whoever wrote them; scripts and styles are ours and stand as they are."""

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
SHARED = (*SCRIPTS, STYLE, LICENCE)
"""What the pages of a site share."""
MARKS = {"*": "off", "~": "compatible", "]": "explained", "‡": "best", "†": "alike"}
"""The class of a table entry, by its last character."""


def fragment(parts: Sequence[Part], title: str) -> str:
    """Return the content of a page of this title: its parts, and the data that its script shows."""
    from klr_bench.report.page.data import script_json

    tables = {table.name: table.plain() for part in parts for table in part.tables}
    plots = {plot["name"]: plot for part in parts for plot in part.plots}
    data = script_json({"tables": tables, "plots": plots})
    return _environment().get_template("fragment.html").render(parts=parts, title=title, data=data)


def layout(content: str, title: str, *, shared: str = "", home: str = "", watched: bool = False) -> str:
    """Return a page.

    Parameters
    ----------
    content : HTML that `fragment` has made
    title : its title
    shared : the address of the folder of the script and the style, "" for a page that holds them
    home : the address of the first page of a site
    watched : whether the page shows a run and fetches its content
    """
    return (
        _environment()
        .get_template("layout.html")
        .render(
            content=content,
            title=title,
            shared=shared,
            home=home,
            watched=watched,
            policy=policy(shared=bool(shared), watched=watched),
            made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        )
    )


@cache
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

    environment = Environment(
        loader=PackageLoader("klr_bench.report.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        asset=asset, marks=MARKS, version=klr_bench.__version__, SCRIPTS=SCRIPTS, STYLE=STYLE, LICENCE=LICENCE
    )
    return environment


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
