"""scripts/links.py reports broken links and external resources of built pages."""

import runpy
from pathlib import Path

BROKEN = runpy.run_path(str(Path(__file__).resolve().parents[2] / "scripts" / "links.py"))["broken"]


def test_broken_links_and_external_resources_are_reported(tmp_path: Path) -> None:
    (tmp_path / "other page.html").write_text('<h1 id="top">Top</h1>')
    (tmp_path / "first.html").write_text(
        '<p id="here"><a href="#here"></a><a href="other%20page.html#top"></a><a href="https://example.org"></a>'
        '<a href="mailto:a@example.org"></a><img src="data:image/png;base64,AA==">'
        '<a href="#gone"></a><a href="other%20page.html#gone"></a><a href="gone.html"></a><img src="gone.png">'
        '<script src="https://example.org/a.js"></script><link href="//example.org/a.css">'
    )
    messages = [line.split(": ", 1)[1] for line in BROKEN(tmp_path / "first.html")]
    assert messages == [
        "#gone: no such id in first.html.",
        "other%20page.html#gone: no such id in other page.html.",
        "gone.html: no such file.",
        "gone.png: no such file.",
        "loads https://example.org/a.js, which needs a network.",
        "loads //example.org/a.css, which needs a network.",
    ]
