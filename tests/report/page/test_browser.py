"""Pages in a real browser: no requests, no console messages, and the values of the records."""

import csv
import io
import re
import threading
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page

from klr_bench.report.load import read_texts
from klr_bench.report.page.html import write_page
from klr_bench.report.page.site import write_site
from klr_bench.report.watch import Server
from klr_bench.results.record import Record
from tests.report.folders import REFERENCE, record, write
from tests.report.page.conftest import Open

pytestmark = pytest.mark.exhaustive
PAGES = {"magic": ["oskl_magic", "budget_magic"], "figure5": ["klr_figure5"], "plane": ["prototypes_2d"]}
HOSTILE = "</script><img src=x onerror=alert(1)><b>&amp;"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    return {
        name: write_page(folder / f"{name}.html", [REFERENCE / experiment for experiment in experiments])
        for name, experiments in PAGES.items()
    }


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site of some of the references."""
    results, target = tmp_path_factory.mktemp("results"), tmp_path_factory.mktemp("site")
    for name in ("oskl_magic", "budget_magic", "klr_figure5", "prototypes_2d"):
        (results / name).symlink_to(REFERENCE / name)
    write_site(target, results)
    return target


def table_of(page: Page, name: str) -> Locator:
    table = page.locator(f'[data-table="{name}-records"]')
    table.evaluate("table => { table.closest('details').open = true }")
    return table


def column(table: Locator, title: str) -> list[str]:
    """Return the texts of a column that are shown."""
    heads = table.locator("thead th").all_inner_texts()
    place = [head.strip() for head in heads].index(title)
    return table.locator(f"tbody td:nth-child({place + 1})").all_inner_texts()


def saved(page: Page, press: Locator) -> str:
    """Return the text of the file that a button gives."""
    with page.expect_download() as waiting:
        press.click()
    return Path(waiting.value.path()).read_bytes().decode()


def rows_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


def serious_faults(page: Page) -> dict[str, str]:
    """Return the serious findings of an accessibility checker."""
    faults = Axe().run(page).response["violations"]
    return {fault["id"]: fault["nodes"][0]["html"] for fault in faults if fault["impact"] in ("serious", "critical")}


CUT = """[...document.querySelectorAll('button, h1, h2, h3, summary, .legend li')].filter(element => {
    const box = element.getBoundingClientRect();
    return box.width && !element.closest('.scroll, .off-screen') && (box.left < 0 || box.right > innerWidth + 1);
}).map(element => element.textContent)"""
"""JavaScript expression for the texts that the window cuts off."""


@pytest.mark.parametrize("name", [*PAGES, "index.html", "papers/zhang2013icml.html", "experiments/klr_figure5.html"])
@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1600, "light")])
def test_a_page_is_quiet_fits_and_is_accessible(
    open_page: Open, pages: dict[str, Path], site: Path, name: str, width: int, scheme: Literal["dark", "light"]
) -> None:
    path = pages.get(name, site / name)
    opened = open_page(path, width=width, scheme=scheme)
    opened.see_all()
    if name in pages:
        assert opened.requests == [path.as_uri()]
    folders = {Path(url.removeprefix("file://")).parent for url in opened.requests}
    assert folders <= {path.parent, site / "assets"}
    assert opened.messages == []
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    assert opened.page.evaluate(CUT) == []
    assert serious_faults(opened.page) == {}


def test_the_links_of_a_site_lead_somewhere(open_page: Open, site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) >= 7
    for path in pages:
        addresses = open_page(path).page.evaluate("[...document.links].map(link => link.href)")
        assert addresses
        for address in addresses:
            assert Path(address.removeprefix("file://").partition("#")[0]).is_file(), (path, address)


def test_a_table_sorts_and_filters_as_the_records_do(open_page: Open, pages: dict[str, Path]) -> None:
    page = open_page(pages["magic"]).page
    header, rows = read_texts(REFERENCE / "oskl_magic" / "records.csv")
    accuracies = sorted(float(row[header.index("accuracy")]) for row in rows)
    table = table_of(page, "oskl_magic")
    later, seen = table.get_by_role("button", name="Later"), set[tuple[str, ...]]()
    for _ in range(7):
        seen |= set(zip(*(column(table, title) for title in ("algorithm", "variant", "repeat")), strict=True))
        if later.is_enabled():
            later.click()
    assert len(seen) == len(rows) == 330
    for expected in (accuracies, accuracies[::-1]):
        table.get_by_role("button", name="Accuracy").click()
        assert [float(text) for text in column(table, "Accuracy")] == pytest.approx(expected[:50], rel=1e-5)
    assert sorted(rows_of(saved(page, table.get_by_role("button", name="CSV")))) == sorted([header, *rows])
    table.get_by_role("searchbox").fill("algorithm=oskl accuracy>0.858 G=1")
    of_oskl = [row for row in rows if {"oskl", '{"G": 1}'} <= {*row}]
    fitting = [row for row in of_oskl if float(row[header.index("accuracy")]) > 0.858]
    assert 0 < len(fitting) < 30
    assert f"of {len(fitting)} rows" in table.locator(".count").inner_text()
    assert sorted(rows_of(saved(page, table.get_by_role("button", name="CSV")))[1:]) == sorted(fitting)
    table.get_by_role("searchbox").fill("nothing-has-this")
    assert table.locator("tbody tr").count() == 0
    assert "no rows" in table.locator(".count").inner_text()


def test_numbers_in_texts_are_sorted_by_their_values(open_page: Open, pages: dict[str, Path]) -> None:
    page = open_page(pages["magic"]).page
    texts = ["OSKL G=0.5", "OSKL G=0.125", "OSKL G=1e-05", "NC", "OSKL G=10", "2011-05-06", "2011-05-10", "OSKL G=-1"]
    found = page.evaluate("(texts) => texts.sort(klr.compareTexts)", texts)
    expected = ["2011-05-06", "2011-05-10", "NC"]
    assert found == expected + [f"OSKL G={value}" for value in ("-1", "1e-05", "0.125", "0.5", "10")]


def test_a_printed_table_sorts_by_keyboard_with_the_published_values_below_each_method(
    open_page: Open, pages: dict[str, Path]
) -> None:
    page = open_page(pages["magic"]).page
    table = page.locator("table.sortable").first
    before = table.locator("tbody tr").all_inner_texts()
    head = table.get_by_role("button", name="Support vectors")
    orders = []
    for sort in ("ascending", "descending", "none"):
        head.press("Enter")
        assert head.locator("..").get_attribute("aria-sort") == sort
        orders.append(table.locator("tbody tr").all_inner_texts())
    place = table.locator("thead th").all_inner_texts().index("Support vectors")
    for order, sign in zip(orders, (1, -1), strict=False):
        counts = [int(row.split("\t")[place].split(" ")[0].replace(",", "")) for row in order if "paper" not in row]
        assert [sign * count for count in counts] == sorted(sign * count for count in counts)
        assert {*zip(order[::2], order[1::2], strict=True)} == {*zip(before[::2], before[1::2], strict=True)}
    assert orders[0] != before == orders[2]


def test_the_mode_is_that_of_the_system_until_it_is_switched(open_page: Open, site: Path) -> None:
    page = open_page(site / "index.html", scheme="dark").page
    background = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(background)
    page.get_by_role("button", name="Light mode").click()
    assert page.evaluate(background) == "rgb(255, 255, 255)" != dark
    page.reload()
    assert page.evaluate(background) == "rgb(255, 255, 255)"
    page.get_by_role("button", name="Dark mode").click()
    assert page.evaluate(background) == dark


def drawn(page: Page) -> Locator:
    """Scroll to the first figure, which is then drawn, and return it."""
    figure = page.locator("figure.plot").first
    figure.scroll_into_view_if_needed()
    figure.locator(".main-svg").first.wait_for()
    return figure


def test_the_address_brings_back_what_was_seen(open_page: Open, pages: dict[str, Path]) -> None:
    first = open_page(pages["magic"]).page
    table, figure = table_of(first, "oskl_magic"), drawn(first)
    table.get_by_role("button", name="Accuracy").click()
    table.get_by_role("searchbox").fill("oskl")
    figure.get_by_role("button", name="x: log").click()
    figure.locator(".legend button", has_text="Margin").click()
    figure.get_by_role("button", name="show repeats").click()
    second = open_page(pages["magic"], hash="#" + first.url.partition("#")[2]).page
    again, figure = table_of(second, "oskl_magic"), drawn(second)
    assert again.get_by_role("searchbox").input_value() == "oskl"
    assert again.locator('th[aria-sort="ascending"]').inner_text().strip() == "Accuracy"
    assert column(again, "Accuracy") == column(table, "Accuracy")
    assert figure.get_by_role("button", name="x: linear").is_visible()
    assert figure.get_by_role("button", name="hide repeats").is_visible()
    assert figure.locator('.legend button[aria-pressed="false"]').inner_text().strip() == "Margin"
    names = second.evaluate("document.querySelector('.js-plotly-plot').data.map(trace => trace.name)")
    assert ("OSKL" in names, "Margin" in names) == (True, False)
    second.go_back()
    assert second.url == "about:blank"  # what is chosen fills no history


def hover(page: Page, facet: int, wanted: Callable[[dict[str, Any]], bool]) -> str:
    """Move the mouse to a point of a facet; return the text that is shown."""
    drawn(page)
    place = page.locator(".panel").nth(facet)
    place.scroll_into_view_if_needed()
    points = place.evaluate("""panel => panel.data.flatMap(trace => trace.x.map((x, at) => ({
        x, y: trace.y[at], name: trace.name,
        left: panel._fullLayout.xaxis.d2p(x) + panel._fullLayout.xaxis._offset,
        top: panel._fullLayout.yaxis.d2p(trace.y[at]) + panel._fullLayout.yaxis._offset })))""")
    point = next(point for point in points if wanted(point))
    box = place.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + point["left"] + 3, box["y"] + point["top"] + 3)
    page.mouse.move(box["x"] + point["left"], box["y"] + point["top"], steps=3)
    page.locator(".tip").wait_for()
    page.wait_for_timeout(200)  # the first move may have shown another point
    return page.locator(".tip").inner_text()


@pytest.mark.parametrize(
    ("name", "experiment", "facet", "dataset", "algorithm"),
    [("figure5", "klr_figure5", 2, "ijcnn1", "dcd"), ("magic", "oskl_magic", 0, "magic", "margin")],
)
def test_a_hover_shows_the_numbers_of_the_records(
    open_page: Open, pages: dict[str, Path], name: str, experiment: str, facet: int, dataset: str, algorithm: str
) -> None:
    """Of the mean of all repeats, or of the repeat that is most accurate."""
    page, is_mean = open_page(pages[name]).page, name == "figure5"
    header, rows = read_texts(REFERENCE / experiment / "records.csv")
    records = [dict(zip(header, row, strict=True)) for row in rows]
    records = [row for row in records if (row["dataset"], row["algorithm"]) == (dataset, algorithm)]
    if not is_mean:
        records = [max(records, key=lambda row: float(row["accuracy"]))]
        drawn(page).get_by_role("button", name="show repeats").click()
    labels = {"accuracy": ("Test accuracy (%)", 100.0), **({} if is_mean else {"n_support": ("Support vectors", 1.0)})}
    means = {metric: sum(float(row[metric]) for row in records) / len(records) for metric in labels}

    def is_wanted(point: dict[str, Any]) -> bool:
        is_near = abs(point["y"] - 100 * means["accuracy"]) < 1e-3 and point["x"] == means.get("n_support")
        return point["name"] == "DCD" and point["y"] > 97 if is_mean else is_near

    text = hover(page, facet, is_wanted)
    assert ("mean of 5 repeats" if is_mean else "repeat ") in text
    assert 4 <= len(text.splitlines()) <= 5
    for metric, (label, factor) in labels.items():
        match = re.search(rf"^{re.escape(label)}: (\S+)", text, re.MULTILINE)
        assert match, (metric, text)
        assert float(match[1].replace(",", "")) == pytest.approx(factor * means[metric], rel=1e-3), metric


def test_figures_zoom_and_the_address_remembers(open_page: Open, pages: dict[str, Path]) -> None:
    page = open_page(pages["figure5"]).page
    panel = drawn(page).locator(".panel").first
    box = panel.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 150, box["y"] + 80)
    page.mouse.down()
    page.mouse.move(box["x"] + 300, box["y"] + 200, steps=5)
    page.mouse.up()
    page.wait_for_function("location.hash.includes('zoom')")
    again = open_page(pages["figure5"], hash="#" + page.url.partition("#")[2]).page
    panels = (drawn(again).locator(".panel").first, panel)
    ranges = [panel.evaluate("panel => panel._fullLayout.xaxis.range") for panel in panels]
    assert ranges[0] == pytest.approx(ranges[1], rel=1e-4)
    again.get_by_role("button", name="whole range").first.click()
    assert "zoom" not in again.url
    panel.dblclick(position={"x": 200, "y": 120})
    page.wait_for_function("!location.hash.includes('zoom')")


def test_a_figure_is_given_as_svg_and_csv(open_page: Open, pages: dict[str, Path]) -> None:
    page = open_page(pages["magic"]).page
    figure = drawn(page)
    drawing = ElementTree.fromstring(saved(page, figure.get_by_role("button", name="SVG")))
    assert drawing.tag == "{http://www.w3.org/2000/svg}svg"
    assert "Baseline" in "".join(drawing.itertext())
    rows = list(csv.DictReader(io.StringIO(saved(page, figure.get_by_role("button", name="CSV")))))
    means = [row for row in rows if row["kind"] == "mean" and row["series"] == "Baseline"]
    assert [float(row["value"]) for row in means] == [pytest.approx(86.0384, rel=1e-4)]


def test_a_dark_page_is_printed_on_white(open_page: Open, pages: dict[str, Path]) -> None:
    page = open_page(pages["figure5"], scheme="dark").page
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.locator(".panel .main-svg").nth(2).wait_for()
    colors = "document.querySelector('.panel').data.map(trace => trace.line.color)"
    assert "#000000" in page.evaluate(colors)
    assert page.evaluate("document.querySelector('.panel').layout.font.color") == "#000000"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    wider = "[...document.querySelectorAll('.panel')].filter(panel => panel.scrollWidth > panel.clientWidth).length"
    assert page.evaluate(wider) == 0
    assert page.evaluate("document.querySelector('.panel .main-svg').clientWidth") < 700, "the width of paper"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert "#000000" not in page.evaluate(colors)


USUAL: dict[str, Any] = {"dataset": "magic", "fit_time_s": 0.1}


def fits(*repeats: int, values: Iterable[int] = (1, 2, 3), name: str = "oskl", **more: Any) -> list[Record]:
    """Return a record of each value of G and repeat; the accuracy grows with G and is 0.5 to 0.9."""
    return [
        record(name, f"G={value}", repeat, accuracy=0.5 + 0.04 * value, n_support=10.0 * value, **USUAL | more)
        for value in values
        for repeat in repeats
    ]


def test_hostile_names_stay_text(open_page: Open, tmp_path: Path) -> None:
    rows = fits(0, 1, 2, params={"loss": HOSTILE}, message=HOSTILE)
    rows.append(record("oskl", "G=4", 0, dataset="magic", status="error", message=HOSTILE))
    labeled = {"label": HOSTILE, "estimator": {}}
    config = {"title": HOSTILE, "datasets": {"magic": {"label": HOSTILE}}, "algorithms": {"oskl": labeled}}
    page = write_page(tmp_path / "page.html", [write(tmp_path / "demo", rows, config)])
    opened = open_page(page)
    opened.page.on("dialog", lambda dialog: opened.messages.append("dialog"))
    opened.see_all()
    hover(opened.page, 0, lambda point: True)
    assert (opened.messages, opened.requests) == ([], [page.as_uri()])
    assert opened.page.locator("img, main b").count() == 0
    for place in (opened.page.locator("h2").first, table_of(opened.page, "demo"), opened.page.locator(".legend")):
        assert HOSTILE in place.inner_text()


def test_a_page_that_watches_a_run_fills_and_keeps_what_was_chosen(open_page: Open, tmp_path: Path) -> None:
    config = {"repeats": 60, "datasets": {"magic": {}}, "algorithms": {"oskl": {}}, "sweep": {"oskl": {"G": [1, 2, 3]}}}
    folder = write(tmp_path / "demo", fits(0), config)
    with Server(folder) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        opened = open_page(server.url)
        page, table = opened.page, table_of(opened.page, "demo")
        opened.see_all()
        page.wait_for_function("document.querySelector('#klr-watch').dataset.standing === 'none'")
        table.get_by_role("searchbox").fill("G=1")
        table.get_by_role("button", name="Accuracy").click()
        page.locator("figure.plot").get_by_role("button", name="x: log").click()
        assert "of 1 rows" in table.locator(".count").inner_text()
        write(folder, fits(*range(1, 30)), config)
        table.locator(".count", has_text="of 30 rows").wait_for()
        assert table.get_by_role("searchbox").input_value() == "G=1"
        assert table.locator('th[aria-sort="ascending"]').inner_text().strip() == "Accuracy"
        assert page.locator("figure.plot").get_by_role("button", name="x: linear").is_visible()
        assert "30/60" in page.locator("table.printed").inner_text()
        assert page.locator("figure.plot .main-svg").count() > 0
        assert (serious_faults(page), opened.messages) == ({}, [])
        asked = {url.split("?")[0].rpartition("/")[0] for url in opened.requests}
        assert asked <= {server.url.rstrip("/"), f"{server.url}assets", ""}
        server.shutdown()
