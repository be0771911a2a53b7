"""Reports that one looks into: one self-contained HTML file, or a small static site that shares its script.

`content` says what is on a page, `data` holds the tables and plots that its script shows, `spelled` makes HTML of both.
Pages ask for nothing: all data stand in them, and no text of a name, label or message becomes markup or script.
"""

from klr_bench.report.page.site import write_site
from klr_bench.report.page.writing import html_page, page_against, write_page

__all__ = ["html_page", "page_against", "write_page", "write_site"]
