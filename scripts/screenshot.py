"""Take the pictures of a report: its table in a terminal, and its page with a tooltip.

    python scripts/screenshot.py

Writes docs/_static/terminal.svg and docs/_static/page.png.  The second needs Chromium and playwright, which is in the
extra `test`.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from klr_bench.report.page.html import write_page

ROOT = Path(__file__).resolve().parents[1]
STATIC = ROOT / "docs" / "_static"
COMMAND = "klr-bench report experiment=oskl_magic columns=accuracy,n_support"
WIDTH = 80
POINT = """panel => {
    const of = panel.data.find(one => one.name.startsWith("OSKL") && one.error_y), box = panel.getBoundingClientRect();
    const {xaxis, yaxis} = panel._fullLayout;
    return [box.left + xaxis._offset + xaxis.d2p(of.x[1]), box.top + yaxis._offset + yaxis.d2p(of.y[1])];
}"""
"""JavaScript function that returns the window coordinates of the second mean of OSKL."""


def terminal() -> str:
    """Return the output of COMMAND for the reference results as an SVG picture."""
    with TemporaryDirectory() as folder:
        words = [*COMMAND.split()[1:], f"results_dir={ROOT / 'results' / 'reference'}", f"output={folder}"]
        done = subprocess.run(
            [sys.executable, "-m", "klr_bench", *words],
            env={**os.environ, "COLUMNS": str(WIDTH), "FORCE_COLOR": "1"},
            capture_output=True,
            text=True,
            check=True,
        )
    title, table, _ = done.stdout.split("\n\n", 2)  # without the notes below the table
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    console.print(Text.from_ansi(f"$ {COMMAND}\n{title}\n\n{table}\n..."))
    without_fonts = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)  # they need a network
    return console.export_svg(title="klr-bench", code_format=without_fonts, unique_id="terminal")


def page() -> bytes:
    """Return a screenshot of the page of the experiment oskl_magic."""
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = write_page(Path(folder) / "page.html", [ROOT / "results" / "reference" / "oskl_magic"])
        path = os.environ.get("CHROMIUM") or shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1100, "height": 560}, color_scheme="light")
        page.goto(file.as_uri())
        page.locator("figure.plot").first.evaluate("plot => window.scrollBy(0, plot.getBoundingClientRect().top - 10)")
        x, y = page.locator(".panel").first.evaluate(POINT)
        page.mouse.move(x, y)
        page.wait_for_timeout(500)
        picture = page.screenshot()
        browser.close()
        return picture


if __name__ == "__main__":
    (STATIC / "terminal.svg").write_text(terminal(), encoding="utf-8")
    (STATIC / "page.png").write_bytes(page())
