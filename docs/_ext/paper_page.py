"""Page of a paper: reproduction results, tables, figures, claims, protocol and cost."""

from __future__ import annotations

from html import escape
from pathlib import Path

from paper_claims import claims_section
from paper_overview import terms, verdict_counts
from paper_runs import cost_section, protocol_section
from paper_tables import table_section
from paper_words import PAGES, experiment_link, first_upper, html, html_table, plain

from klr_bench.report import figures
from klr_bench.report import paper_pages as pages
from klr_bench.report.conclusions import on_claims, on_numbers
from klr_bench.report.labels import pluralize
from klr_bench.report.manifest import Manifest, read_manifest
from klr_bench.report.paper_pages import draw_figures
from klr_bench.report.paper_picture import NAME, TITLE, paper_picture
from klr_bench.report.papers.reading import experiments_of
from klr_bench.report.papers.reproduction import Reproduction
from klr_bench.report.papers.scoreboard import not_compared_sentence
from klr_bench.report.papers.verdicts import MARKS, WEAK_MARK, Verdict
from klr_bench.results.store import was_run

EXAMPLES = [
    f'<span class="{verdict.name.lower()}">12.3{({Verdict.EXPLAINED: " [1]"} | MARKS).get(verdict, "")}</span> '
    f"{verdict.value}"
    for verdict in Verdict
] + [f'<span class="weak">12.3{WEAK_MARK}</span> agrees without power']
LEGEND = f'<p class="marks">{" &emsp; ".join(EXAMPLES)}</p>'
"""Key to the colors and marks of values; [1] is a cause below the table."""


class Figures:
    """Figures of experiments, from their reports or drawn; `files` are those used by pages."""

    def __init__(self, results_dir: Path) -> None:
        self._results_dir = results_dir
        self._drawn: dict[str, dict[str, bytes]] = {}
        self.files: dict[str, bytes] = {}

    def of(self, reproduction: Reproduction, experiment: str) -> dict[str, str]:
        """Return the file names of the figures of a completed experiment, by figure name."""
        report = self._results_dir / experiment / "report"
        images = {path.stem: path.read_bytes() for path in sorted(report.glob("*.png"))}
        if not report.is_dir():
            images = self._draw(reproduction, experiment)
        names = {stem: f"{experiment}-{stem}.png" for stem in images}
        self.files |= {names[stem]: content for stem, content in images.items()}
        return names

    def of_paper(self, reproduction: Reproduction) -> str:
        """Return the file name of the picture of all compared numbers, or "" if there is none."""
        content = paper_picture(reproduction).get(f"{NAME}.png")
        name = f"{reproduction.name}-{NAME}.png"
        self.files |= {name: content} if content else {}
        return name if content else ""

    def run(self, experiment: str) -> bool:
        """Return True if an experiment was run."""
        return was_run(self._results_dir / experiment)

    def manifest(self, experiment: str) -> Manifest:
        """Return the manifest of a completed experiment."""
        return read_manifest(self._results_dir / experiment)

    def _draw(self, reproduction: Reproduction, experiment: str) -> dict[str, bytes]:
        if reproduction.name not in self._drawn:
            self._drawn[reproduction.name] = draw_figures(reproduction).files
        start = f"{experiment}_"
        return {
            name[len(start) :].removesuffix(".png"): content
            for name, content in self._drawn[reproduction.name].items()
            if name.startswith(start) and name.endswith(".png")
        }


def paper_page(reproduction: Reproduction, drawn: Figures, results_dir: Path) -> str:
    """Return the page of a paper in Markdown."""
    paper = reproduction.paper
    printed = f"{first_upper(paper.authors)}. {first_upper(paper.venue)}, {paper.year}."
    matches = reproduction.matches
    sentences = [*on_numbers(matches)[:1], not_compared_sentence(matches), *on_claims(reproduction.claims)]
    sections = [
        f"# {plain(first_upper(paper.reference))}",
        f"**{plain(paper.title)}**\\\n{plain(printed)}",
        plain(paper.about) if paper.about else "",
        verdict_counts(reproduction),
        "\n".join(f"- {plain(sentence)}" for sentence in sentences if sentence),
        _commands(reproduction),
        _numbers(reproduction, drawn),
        _tables(reproduction),
        _figures(reproduction, drawn),
        claims_section(reproduction, results_dir),
        protocol_section(reproduction, results_dir),
        cost_section(experiments_of(reproduction.name), results_dir),
    ]
    return "\n\n".join(filter(None, sections)) + "\n"


def _commands(reproduction: Reproduction) -> str:
    text = ""
    if reproduction.results:
        text = (
            f'The <a href="{PAGES}/papers/{escape(reproduction.name)}.html">interactive page</a> has the same values, '
            "zoomable figures and all records to filter and download as CSV."
        )
    return (
        "## Reproduce\n\n"
        f"```sh\nklr-bench run paper={reproduction.name}\nklr-bench report paper={reproduction.name}\n```\n\n"
        "The first command downloads the data, runs the experiments and resumes an interrupted run; `--dry-run` only "
        f"counts the work and estimates its time. The second command reports results without running anything. {text}"
    )


def _numbers(reproduction: Reproduction, drawn: Figures) -> str:
    if not reproduction.lines:
        return ""
    tables = []
    for grid, title in zip(pages.scoreboard_page(reproduction).grids, ("Results", "Counted apart"), strict=True):
        rows = [[_table_link(row[0]), *map(escape, row[1:])] for row in grid.rows]
        tables.append(html_table([title, *map(escape, grid.header[1:])], rows, title, numbers=True))
        tables.append(terms(grid.header[1:]))
    text = f"## Reproduction results\n\n{html(''.join(tables))}"
    file = drawn.of_paper(reproduction)
    caption = f'{TITLE}. All values: <a href="{PAGES}/papers/{escape(reproduction.name)}.html">interactive page</a>.'
    return f"{text}\n\n```{{figure}} {file}\n:alt: {TITLE}\n:class: picture whole\n\n{caption}\n```" if file else text


def _table_link(name: str) -> str:
    """Return the name of a table as a link."""
    return f'<a href="#{_anchor(name)}">{escape(name)}</a>' if name.startswith("table ") else escape(name)


def _anchor(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name.lower())


def _tables(reproduction: Reproduction) -> str:
    if not reproduction.lines:
        return ""
    text = (
        "Our values, rounded like the published ones, are above them. Hover over a value for its verdict; [1] is a "
        "cause below the table, and - means no value."
    )
    parts = [f"## Tables\n\n{text}\n\n{html(LEGEND)}"]
    for number in reproduction.matches_by_table:
        place = html(f'<span id="{_anchor(f"table {number}")}"></span>')
        parts.append(f"{place}\n\n{table_section(reproduction, number)}")
    return "\n\n".join(parts)


def _figures(reproduction: Reproduction, drawn: Figures) -> str:
    """Return the figures of the paper, followed by figures of its other experiments."""
    paper, used = reproduction.paper, set[str]()
    parts = []
    for number, figure in paper.figures.items():
        name = f"Figure {number}" if number[0].isdigit() else first_upper(number)
        parts.append(f"### {plain(f'{name}: {figure.title}')}")
        missing = [experiment for experiment in figure.experiments if experiment not in reproduction.results]
        if missing:
            parts.append(f"Not run here: {', '.join(f'`{experiment}`' for experiment in missing)}.")
        shown = [experiment for experiment in figure.experiments if experiment in reproduction.results]
        parts += _folded(
            [picture for experiment in shown for picture in _pictures(reproduction, experiment, drawn)], figure.title
        )
        used |= {*figure.experiments}
    rest = [name for name in experiments_of(reproduction.name) if name not in used and drawn.run(name)]
    pictures = [picture for name in rest for picture in _pictures(reproduction, name, drawn)]
    if pictures:
        parts += ["### Figures of the experiments behind tables, claims and causes", *_folded(pictures)]
    return "\n\n".join(filter(None, ["## Figures", *parts])) if parts else ""


def _folded(pictures: list[str], title: str = "") -> list[str]:
    """Return pictures; all but the first are in a part of the page that readers can open.

    The first one is the picture whose text shares most words with `title`.
    """
    words = {*title.lower().split()}
    first, *others = sorted(pictures, key=lambda text: -len(words & {*text.lower().split()})) or [""]
    more = "\n\n".join(others)
    return [first, f"````{{dropdown}} {pluralize(len(others), 'more figure')}\n{more}\n````"] if others else [first]


def _pictures(reproduction: Reproduction, experiment: str, drawn: Figures) -> list[str]:
    config = drawn.manifest(experiment).config
    title = config.title
    blocks = []
    for stem, file in drawn.of(reproduction, experiment).items():
        description = figure_title(stem, config.figures or [])
        link = experiment_link(experiment, run=True)
        alt = plain(f"{first_upper(stem.replace('_', ' '))}. {description} {title}")
        blocks.append(
            f"```{{figure}} {file}\n:alt: {alt}\n:class: picture\n\n{plain(description)} {plain(title)}: {link}.\n```"
        )
    return blocks


def figure_title(stem: str, requested: list[str]) -> str:
    """Return the title of the figure with this name, or of the first requested figure."""
    available = figures.names()
    name = next((figure for figure in (stem, *requested) if figure in available), "")
    if not name:
        return ""
    title = figures.find(name).title
    return f"{title.partition(': ')[0]}." if title else ""
