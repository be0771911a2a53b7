"""The page: a header that says how the run stands, on top of a body that shows what it has found so far.

The header is one HTML fragment, one style and one script, and asks nothing of the body: any page can have it on top.
The body learns of new results by the event "klr-results", whose `detail` is their version.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path

ASSETS = Path(__file__).with_name("assets")


@dataclass(frozen=True)
class Page:
    """An HTML page, and the content security policy under which a browser is to open it."""

    html: str
    policy: str


@cache
def asset(name: str) -> str:
    """Return the text of a part of the page: header.html, header.css, header.js, body.css or body.js."""
    return (ASSETS / name).read_text(encoding="utf-8")


def page(title: str, table: str, version: str) -> Page:
    """Return the page of a table: `table` is HTML, of the `version` of the results."""
    styles, scripts = (asset("body.css"), asset("header.css")), (asset("header.js"), asset("body.js"))
    html = f"""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<link rel="icon" href="data:,">
{"".join(f"<style>{style}</style>" for style in styles)}
</head>
<body>
{asset("header.html")}
<main id="klr-body" data-version="{escape(version)}">
{table}</main>
{"".join(f"<script>{script}</script>" for script in scripts)}
</body>
</html>
"""
    return Page(html, policy(scripts, styles))


def policy(scripts: tuple[str, ...], styles: tuple[str, ...]) -> str:
    """Return a policy that allows these scripts and styles, by their hashes, and requests to this server alone."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {' '.join(map(_hash, scripts))}",
            f"style-src {' '.join(map(_hash, styles))}",
            "img-src data:",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
