"""Reports that one looks into: one self-contained HTML file, or a small static site that shares its script.

`content` says what is on a page, `data` holds the tables and plots that its script shows, `spelling` makes HTML of
both, `writing` and `site` write files.  Pages ask for nothing: all data stand in them, and no text of a name, label or
message becomes markup or script.

The names are imported when they are first used, so that the server of a page starts at once.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from klr_bench.report.page.site import write_site
    from klr_bench.report.page.writing import html_page, page_against, write_page

__all__ = ["html_page", "page_against", "write_page", "write_site"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    module = "site" if name == "write_site" else "writing"
    return getattr(importlib.import_module(f"{__name__}.{module}"), name)
