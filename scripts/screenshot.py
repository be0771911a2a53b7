"""Take the screenshot in docs/reports/pages.md, which shows the tooltip of a point.

    python scripts/screenshot.py

Needs Chromium and playwright, which is in the extra `test`.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

from klr_bench.report.page.html import write_page

ROOT = Path(__file__).resolve().parents[1]
POINT = """panel => {
    const of = panel.data.find(one => one.name.startsWith("OSKL") && one.error_y), box = panel.getBoundingClientRect();
    const {xaxis, yaxis} = panel._fullLayout;
    return [box.left + xaxis._offset + xaxis.d2p(of.x[1]), box.top + yaxis._offset + yaxis.d2p(of.y[1])];
}"""
"""JavaScript function that returns the window coordinates of the second mean of OSKL."""


def main() -> None:
    """Write docs/_static/page.png from the page of experiment oskl_magic."""
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = write_page(Path(folder) / "page.html", [ROOT / "results" / "reference" / "oskl_magic"])
        path = os.environ.get("CHROMIUM") or shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1100, "height": 700}, color_scheme="light")
        page.goto(file.as_uri())
        page.locator("figure.plot").first.scroll_into_view_if_needed()
        page.evaluate("window.scrollBy(0, 90)")
        x, y = page.locator(".panel").first.evaluate(POINT)
        page.mouse.move(x, y)
        page.wait_for_timeout(500)
        page.screenshot(path=ROOT / "docs" / "_static" / "page.png")
        browser.close()


if __name__ == "__main__":
    main()
