"""Draw the pictures of these pages: `python docs/how_it_works/drawings.py` writes the SVG files beside it.

A drawing is at most 400 units wide, so that its text can be read on a phone, and brings its own light ground.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

HERE = Path(__file__).parent
INK, SOFT, LINE = "#1b1b1b", "#555555", "#8a8a8a"
BLUE, GREEN, SAND, ROSE, GREY = "#dbe9f6", "#dff0d8", "#fbeecb", "#f6dede", "#eeeeee"
HEAD = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 400 {height}" width="440" height="{shown:.0f}" role="img" '
    'font-family="Helvetica, Arial, sans-serif" font-size="13">\n<title>{title}</title>\n'
    '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
    'orient="auto-start-reverse"><path d="M0 0L10 5L0 10z" fill="#444444"/></marker></defs>\n'
    '<rect x="0.5" y="0.5" width="399" height="{inner}" rx="8" fill="#ffffff" stroke="#cccccc"/>\n'
)


def text(x: float, y: float, words: str, *, size: int = 13, anchor: str = "middle", fill: str = INK) -> str:
    """Return one line of text."""
    return f'<text x="{x}" y="{y}" font-size="{size}" text-anchor="{anchor}" fill="{fill}">{escape(words)}</text>\n'


def box(x: float, y: float, width: float, height: float, fill: str, *lines: str) -> str:
    """Return a box with lines of text, the first of them larger."""
    shape = f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="4" fill="{fill}" stroke="{LINE}"/>\n'
    top = y + height / 2 - 8 * (len(lines) - 1) + 4.5
    words = [
        text(x + width / 2, top + 16 * i, line, size=12 if i else 13, fill=SOFT if i else INK)
        for i, line in enumerate(lines)
    ]
    return shape + "".join(words)


def arrow(*points: tuple[float, float], dashes: str = "") -> str:
    """Return a line along points with a tip at its end."""
    path = " ".join(f"{x},{y}" for x, y in points)
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<polyline points="{path}" fill="none" stroke="#444444"{dashed} marker-end="url(#tip)"/>\n'


def drawing(name: str, title: str, height: int, *parts: str) -> None:
    """Write a drawing."""
    content = (
        HEAD.format(height=height, shown=1.1 * height, inner=height - 1, title=escape(title))
        + "".join(parts)
        + "</svg>\n"
    )
    (HERE / f"{name}.svg").write_text(content, encoding="utf-8")


def wings() -> None:
    """Draw which part of the package imports which."""
    drawing(
        "wings",
        "The command line imports reports, the runner and estimators; none of them imports it",
        412,
        box(20, 16, 360, 50, GREY, "cli", "the command line"),
        box(20, 98, 360, 50, SAND, "report", "from rows to tables, figures and pages"),
        box(20, 180, 360, 50, BLUE, "runner", "selects, fits and measures"),
        box(20, 262, 360, 50, BLUE, "datasets, config, results, metrics", "from YAML and files to rows"),
        box(20, 344, 360, 50, GREEN, "estimators", "the solvers, for scikit-learn code"),
        arrow((200, 66), (200, 98)),
        arrow((200, 230), (200, 262)),
        arrow((200, 312), (200, 344)),
        text(212, 87, "imports", size=12, anchor="start", fill=SOFT),
        text(200, 169, "a report reads results, and imports no runner", size=12, fill=SOFT),
        text(212, 251, "imports", size=12, anchor="start", fill=SOFT),
        text(212, 333, "imports", size=12, anchor="start", fill=SOFT),
    )


def life() -> None:
    """Draw the way of a cell from YAML to a table."""
    drawing(
        "life",
        "The life of a cell, from YAML files to a table",
        560,
        box(20, 14, 360, 48, GREY, "configs/*.yaml and the command line", "composed, checked, one mapping"),
        arrow((200, 62), (200, 84)),
        box(20, 84, 360, 48, BLUE, "plan", "cells: data set, algorithm, variant, repeat; keys"),
        arrow((110, 132), (110, 160)),
        arrow((300, 132), (300, 262)),
        box(20, 160, 200, 64, BLUE, "selection", "folds of the training rows,", "all candidates in one pass"),
        arrow((110, 224), (110, 262)),
        text(118, 248, "chosen parameters", size=12, anchor="start", fill=SOFT),
        text(308, 200, "split", size=12, anchor="start", fill=SOFT),
        box(20, 262, 360, 48, GREEN, "worker process", "fit, timed; then the metrics of the test rows"),
        arrow((200, 310), (200, 336)),
        box(20, 336, 360, 48, GREY, "results/NAME/cells/KEY.json", "written at once, or not at all"),
        arrow((200, 384), (200, 410)),
        box(20, 410, 360, 48, GREY, "records.csv, traces.csv, manifest.yaml", "made anew from the cells"),
        arrow((200, 458), (200, 484)),
        box(20, 484, 360, 60, SAND, "report", "tables beside configs/paper/*/tables.csv,", "figures, pages"),
    )


def block() -> None:
    """Draw a block of the online engine."""
    x, y, w = 30, 60, 190
    triangle = f'<polygon points="{x},{y + 150} {x + w},{y + 150} {x + w},{y + 150 + w}" fill="{SAND}"/>\n'
    frame = f'<rect x="{x}" y="{y + 150}" width="{w}" height="{w}" fill="none" stroke="{LINE}"/>\n'
    tiles = "".join(box(x, y + 44 * i, w, 44, BLUE) for i in range(3))
    drawing(
        "block",
        "A block: kernel values of 256 new examples with all support vectors and with each other",
        430,
        text(x + w / 2, 34, "the next 256 examples"),
        arrow((x + 20, 48), (x + w - 20, 48)),
        tiles,
        text(x + w / 2, y + 25, "tile of kernel values"),
        text(x + w / 2, y + 70, "one product, one exp,"),
        text(x + w / 2, y + 113, "summed with the a_i"),
        text(235, 82, "n support vectors,", anchor="start"),
        text(235, 99, "at most 1,024 a tile", anchor="start"),
        text(235, 130, "gives the sums g_j", size=12, anchor="start", fill=SOFT),
        text(235, 147, "for the whole block,", size=12, anchor="start", fill=SOFT),
        text(235, 164, "before its first step", size=12, anchor="start", fill=SOFT),
        arrow((x + w / 2, 192), (x + w / 2, 209)),
        triangle,
        frame,
        f'<line x1="{x + 76}" y1="{y + 226}" x2="{x + w}" y2="{y + 226}" stroke="#b03030" stroke-width="4"/>\n',
        f'<circle cx="{x + 76}" cy="{y + 226}" r="5" fill="#b03030"/>\n',
        text(235, 232, "256 x 256 matrix", anchor="start"),
        text(235, 249, "of the block itself", anchor="start"),
        text(235, 282, "step i inserts x_i:", size=12, anchor="start", fill="#b03030"),
        text(235, 299, "its row, times a_i, is", size=12, anchor="start", fill="#b03030"),
        text(235, 316, "added to the sums of", size=12, anchor="start", fill="#b03030"),
        text(235, 333, "the later examples", size=12, anchor="start", fill="#b03030"),
        text(x + 8, y + 320, "never needed", size=12, anchor="start", fill=SOFT),
        text(200, 420, "Then the inserted examples join the n.", size=12, fill=SOFT),
    )


def budget() -> None:
    """Draw the kernel values that a block of the budget engine needs."""
    drawing(
        "budget",
        "A block of the engine with a budget: one row of kernel values for each example",
        330,
        text(110, 30, "B slots"),
        text(285, 30, "128 new examples"),
        box(20, 42, 180, 130, BLUE, "values of the examples", "with the support vectors"),
        box(200, 42, 170, 130, SAND, "with each other"),
        box(20, 172, 180, 60, ROSE, "of the oldest ones,", "if f is needed there"),
        box(200, 172, 170, 60, ROSE),
        text(20, 258, "coefficients:", anchor="start", size=12, fill=SOFT),
        *(box(20 + 18 * i, 266, 18, 18, BLUE if i not in (2, 6) else "#ffffff") for i in range(10)),
        *(box(200 + 17 * i, 266, 17, 18, SAND if i in (1, 4) else "#ffffff") for i in range(10)),
        text(200, 304, "f(x) = scale x (row . coefficients); a white one is 0: removed,", size=12, fill=SOFT),
        text(200, 320, "or not inserted.  Then the inserted ones move into the slots.", size=12, fill=SOFT),
    )


def many() -> None:
    """Draw learners that differ only in R and share their state."""
    drawing(
        "many",
        "Learners that differ only in R share one row of coefficients until a projection separates them",
        300,
        text(20, 26, "norm of f", anchor="start", size=12, fill=SOFT),
        arrow((40, 250), (40, 36)),
        arrow((40, 250), (385, 250)),
        text(383, 270, "examples", anchor="end", size=12, fill=SOFT),
        *(f'<line x1="40" y1="{y}" x2="380" y2="{y}" stroke="{LINE}" stroke-dasharray="4 4"/>\n' for y in (190, 120)),
        text(376, 206, "R = 1", anchor="end"),
        text(376, 136, "R = 10", anchor="end"),
        text(376, 60, "R = 100", anchor="end"),
        '<path d="M40 250 C70 215 90 200 110 190 C150 160 190 135 215 120 C270 95 320 85 375 78" '
        'fill="none" stroke="#1f5fa8" stroke-width="3"/>\n',
        '<path d="M110 190 L375 190" fill="none" stroke="#b03030" stroke-width="3"/>\n',
        '<path d="M215 120 L375 120" fill="none" stroke="#2f7d32" stroke-width="3"/>\n',
        '<circle cx="110" cy="190" r="5" fill="#b03030"/><circle cx="215" cy="120" r="5" fill="#2f7d32"/>\n',
        text(86, 236, "3 learners in 1 row", anchor="start", size=12),
        text(180, 172, "2 rows", anchor="start", size=12, fill="#b03030"),
        text(262, 112, "3 rows", anchor="start", size=12, fill="#2f7d32"),
        text(200, 290, "A dot: the smallest R is exceeded; that learner goes on alone.", size=12, fill=SOFT),
    )


def bits() -> None:
    """Draw how a kernel value comes from two words."""
    x, z = "1011001010011100", "1001101010110100"
    rows = {"x": x, "z": z, "xor": "".join(str(int(a != b)) for a, b in zip(x, z, strict=True))}
    cells = ""
    for r, (name, word) in enumerate(rows.items()):
        cells += text(52, 58 + 40 * r, name, anchor="end")
        for i, bit in enumerate(word):
            fill = "#ffffff" if bit == "0" else (ROSE if name == "xor" else BLUE)
            cells += box(64 + 19 * i, 42 + 40 * r, 19, 24, fill, bit)
    count = rows["xor"].count("1")
    drawing(
        "bits",
        "Two rows of bits, the bits in which they differ, their count, and the kernel value",
        280,
        text(200, 28, "16 features of two values in 16 bits"),
        cells,
        arrow((216, 148), (216, 176)),
        box(116, 176, 200, 30, SAND, f"count of ones: c = {count}"),
        arrow((216, 206), (216, 232)),
        box(106, 232, 220, 34, GREEN, "k(x, z) = exp(-gamma v² c)"),
    )


if __name__ == "__main__":
    for draw in (wings, life, block, budget, many, bits):
        draw()
