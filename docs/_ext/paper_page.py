"""The page of a paper: what became of it, its tables, figures and claims, how it was run, and what that took."""

from __future__ import annotations

from html import escape
from pathlib import Path

from paper_claims import claims_section
from paper_overview import bar, claims_sentence, numbers_sentence, terms
from paper_runs import cost_section, protocol_section
from paper_tables import table_section
from paper_words import PAGES, experiment_link, first_upper, html, html_table, plain

from klr_bench.report import figures
from klr_bench.report import paper_pages as pages
from klr_bench.report.load import was_run
from klr_bench.report.manifest import Manifest, read_manifest
from klr_bench.report.paper_pages import draw_figures
from klr_bench.report.papers.reading import experiments_of
from klr_bench.report.papers.reproduction import WholePaper

LEGEND = """\
<p class="marks"><span class="within">12.3</span> within the published spread &emsp;
<span class="compatible">12.3~</span> statistically compatible &emsp;
<span class="explained">12.3 [1]</span> off, for the cause of this number below the table &emsp;
<span class="off">12.3*</span> off, without a cause &emsp;
<span class="apart">12.3</span> not judged: a time, or of other data &emsp;
- no number</p>"""


class Figures:
    """The pictures of experiments: those of their reports, else drawn; `files` are those that pages show."""

    def __init__(self, results_dir: Path) -> None:
        self._results_dir = results_dir
        self._drawn: dict[str, dict[str, bytes]] = {}
        self.files: dict[str, bytes] = {}

    def of(self, whole: WholePaper, experiment: str) -> dict[str, str]:
        """Return the files of the figures of an experiment that was run, by the name of the figure."""
        report = self._results_dir / experiment / "report"
        found = {path.stem: path.read_bytes() for path in sorted(report.glob("*.png"))}
        if not report.is_dir():
            found = self._of_drawn(whole, experiment)
        names = {stem: f"{experiment}-{stem}.png" for stem in found}
        self.files |= {names[stem]: content for stem, content in found.items()}
        return names

    def run(self, experiment: str) -> bool:
        """Say whether an experiment was run."""
        return was_run(self._results_dir / experiment)

    def manifest(self, experiment: str) -> Manifest:
        """Return the manifest of an experiment that was run."""
        return read_manifest(self._results_dir / experiment)

    def _of_drawn(self, whole: WholePaper, experiment: str) -> dict[str, bytes]:
        if whole.name not in self._drawn:
            self._drawn[whole.name] = draw_figures(whole).files
        start = f"{experiment}_"
        return {
            name[len(start) :].removesuffix(".png"): content
            for name, content in self._drawn[whole.name].items()
            if name.startswith(start) and name.endswith(".png")
        }


def paper_page(whole: WholePaper, drawn: Figures, results_dir: Path) -> str:
    """Return the page of a paper in Markdown."""
    paper = whole.paper
    printed = f"{first_upper(paper.authors)}. {first_upper(paper.venue)}, {paper.year}."
    sections = [
        f"# {plain(first_upper(paper.reference))}",
        f"**{plain(paper.title)}**\\\n{plain(printed)}",
        plain(paper.about) if paper.about else "",
        html(bar(whole)) if whole.lines else "",
        "\n".join(f"- {sentence}" for sentence in (numbers_sentence(whole), claims_sentence(whole)) if sentence),
        _commands(whole),
        _numbers(whole),
        _tables(whole),
        _figures(whole, drawn),
        claims_section(whole, results_dir),
        protocol_section(whole, results_dir),
        cost_section(experiments_of(whole.name), results_dir),
    ]
    return "\n\n".join(filter(None, sections)) + "\n"


def _commands(whole: WholePaper) -> str:
    said = ""
    if whole.results:
        said = (
            f'The <a href="{PAGES}/papers/{escape(whole.name)}.html">page to look into</a> has the same numbers, with '
            "figures to zoom and all records to filter and take away as CSV."
        )
    return (
        "## Run it again\n\n"
        f"```sh\nklr-bench run paper={whole.name}\nklr-bench report paper={whole.name}\n```\n\n"
        "The first command fetches the data and goes on where it was stopped; `--dry-run` says what it would run. The "
        f"second runs nothing. {said}"
    )


def _numbers(whole: WholePaper) -> str:
    if not whole.lines:
        return ""
    grid = pages.scoreboard_page(whole).grids[0]
    rows = [[_table_link(row[0]), *map(escape, row[1:])] for row in grid.rows]
    table = html_table(["", *map(escape, grid.header[1:])], rows, "Reproduction results", numbers=True)
    return f"## Reproduction results\n\n{html(table + terms(grid.header[1:]))}"


def _table_link(name: str) -> str:
    """Return the name of a table, as a link to it."""
    return f'<a href="#{_anchor(name)}">{escape(name)}</a>' if name.startswith("table ") else escape(name)


def _anchor(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name.lower())


def _tables(whole: WholePaper) -> str:
    if not whole.lines:
        return ""
    said = (
        "Ours, with as many digits as the paper prints, stand above the paper's numbers. Point at one for its verdict."
    )
    parts = [f"## Tables\n\n{said}\n\n{html(LEGEND)}"]
    for number in whole.judged:
        place = html(f'<span id="{_anchor(f"table {number}")}"></span>')
        parts.append(f"{place}\n\n{table_section(whole, number)}")
    return "\n\n".join(parts)


def _figures(whole: WholePaper, drawn: Figures) -> str:
    """Return the figures of the paper, then those that are drawn from its other runs."""
    paper, shown = whole.paper, set[str]()
    parts = []
    for number, figure in paper.figures.items():
        name = f"Figure {number}" if number[0].isdigit() else first_upper(number)
        parts.append(f"### {plain(f'{name}: {figure.title}')}")
        missing = [one for one in figure.experiments if one not in whole.results]
        if missing:
            parts.append(f"Not run here: {', '.join(f'`{one}`' for one in missing)}.")
        parts += [_pictures(whole, one, drawn) for one in figure.experiments if one in whole.results]
        shown |= {*figure.experiments}
    rest = [one for one in experiments_of(whole.name) if one not in shown and drawn.run(one)]
    pictures = [text for one in rest if (text := _pictures(whole, one, drawn))]
    if pictures:
        parts += ["### Drawn from the runs of its tables, claims and causes", *pictures]
    return "\n\n".join(["## Figures", *parts]) if parts else ""


def _pictures(whole: WholePaper, experiment: str, drawn: Figures) -> str:
    config = drawn.manifest(experiment).config
    title = config.title
    blocks = []
    for stem, file in drawn.of(whole, experiment).items():
        what = said_of(stem, config.figures or [])
        link = experiment_link(experiment, run=True)
        alt = plain(f"{first_upper(stem.replace('_', ' '))}. {what} {title}")
        blocks.append(
            f"```{{figure}} {file}\n:alt: {alt}\n:class: picture\n\n{plain(what)} {plain(title)}: {link}.\n```"
        )
    return "\n\n".join(blocks)


def said_of(stem: str, asked: list[str]) -> str:
    """Return what a picture shows, as the figure of its name says it, or else the first of those asked for."""
    known = figures.names()
    name = stem if stem in known else next((one for one in asked if one in known and stem != one), "")
    if not name:
        return ""
    title = figures.find(name).title
    return f"{title.partition(': ')[0]}." if title else ""
