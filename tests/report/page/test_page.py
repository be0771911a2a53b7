"""The content of a page without a browser: its policy, its data, its size, and the commands that write it."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klr_bench.cli import main
from klr_bench.report.labels import NONE
from klr_bench.report.load import read_results, read_texts
from klr_bench.report.page.content import _shareable, data_table, word
from klr_bench.report.page.html import SCRIPTS, script_json, write_page
from klr_bench.report.page.site import write_site
from klr_bench.report.ranking import ranking_document
from klr_bench.report.table import results_table
from tests.report.folders import REFERENCE, record, write

MB = 10**6


def text_of(target: Path, *folders: Path, **options: Any) -> str:
    return write_page(target / "page.html", folders, **options).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    return text_of(tmp_path_factory.mktemp("page"), REFERENCE / "oskl_magic", REFERENCE / "budget_magic")


def data_of(page: str) -> dict[str, Any]:
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert match
    return dict(json.loads(match[1]))


def test_a_page_loads_nothing_and_runs_its_own_scripts_alone(page: str) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy
    allowed = set(re.findall(r"sha256-[A-Za-z0-9+/=]+", policy[1].replace("&#43;", "+").replace("&#39;", "'")))
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert len(scripts) == len(SCRIPTS) + 1 == 6
    assert {
        f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}" for script in scripts
    } == allowed
    assert "default-src &#39;none&#39;" in policy[1]
    assert "unsafe-eval" not in policy[1]
    assert "http" not in policy[1]
    markup = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert not re.findall(r"""(?:src|href|srcset|action|data)=["']?(?!data:|#)[^"' >]+""", markup)
    assert "@import" not in markup
    assert "url(" not in markup
    assert len(page) - len(json.dumps(data_of(page))) < 2 * MB


def test_hostile_names_stay_text_beside_the_command_of_the_run(tmp_path: Path) -> None:
    hostile = "</script><img src=x onerror=alert(1)><b>&amp;"
    rows = [record("oskl", "G=1", 0, dataset="magic", accuracy=0.8, params={"loss": hostile}, message=hostile)]
    labels = {"magic": {"label": hostile}}, {"oskl": {"label": hostile}}
    config = {"title": hostile, "datasets": labels[0], "algorithms": labels[1], "experiment": "oskl_magic"}
    command = ["experiment=oskl_magic", "seed=3"]
    manifest = {"git_commit": hostile, "changed": [hostile], "command": command, "versions": {hostile: hostile}}
    manifest |= {"machine": {"cpu": hostile, "cores": hostile}, "started": hostile}
    text = text_of(tmp_path, write(tmp_path / "demo", rows, config, **manifest))
    assert text.count("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;&lt;b&gt;&amp;amp;") > 10
    assert "klr-bench run experiment=oskl_magic seed=3 name=demo</code>" in text
    assert not re.search("<(img|b)[ >]", re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL))


@pytest.mark.exhaustive
def test_a_page_with_twelve_pictures_is_under_three_megabytes(tmp_path: Path) -> None:
    text = text_of(tmp_path, REFERENCE / "prototypes_2d")
    assert len(text) < 3 * MB
    assert text.count('<img src="data:image/png') == 12


def test_points_refer_to_the_records_that_they_are_the_means_of(page: str) -> None:
    data = data_of(page)
    for name in ("oskl_magic", "budget_magic"):
        columns, rows = read_texts(REFERENCE / name / "records.csv")
        table = data["tables"][f"{name}-records"]
        assert (table["rows"], [column["name"] for column in table["columns"]]) == (rows, columns)
    columns, rows = read_texts(REFERENCE / "oskl_magic" / "records.csv")
    n_points = 0
    for series in data["plots"]["oskl_magic-accuracy_support"]["facets"][0]["series"]:
        if series["kind"] == "published":
            continue
        for y, fits in zip(series["y"], series["fits"], strict=True):
            accuracies = [float(rows[place][columns.index("accuracy")]) for place in fits]
            assert y == pytest.approx(100 * sum(accuracies) / len(accuracies), rel=1e-5)
            n_points += 1
    assert n_points == 11 + 330


@given(st.recursive(st.text() | st.floats(allow_nan=False, allow_infinity=False), st.lists, max_leaves=5))
def test_no_text_ends_the_script_that_holds_it(content: object) -> None:
    text = script_json(content)
    assert not set("<>&") & set(text)
    assert json.loads(text) == content


def test_a_column_is_numeric_if_all_of_its_texts_are() -> None:
    rows = [["1", "a", ""], ["", "2", ""], ["-3e-5", "", "inf"]]
    table = data_table("t", "T", ["x", "y", "z"], rows, ["y"], {})
    assert [column["numeric"] for column in table["columns"]] == [True, False, True]
    assert table["shown"] == [1]


def test_commands_make_pages_and_a_site(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("oskl_mnist", "klr_figure4"):
        (tmp_path / name).symlink_to(REFERENCE / name)
    where, target = f"results_dir={tmp_path}", tmp_path / "made" / "report.html"
    for words, expected in (
        (
            (where, "experiment=oskl_mnist", "statistics=true"),
            ("<title>Online sparse kernel learning of the ten digits", "<li>Best on MNIST, Accuracy (%): SVC", "Holm"),
        ),
        (
            (where, "paper=zhang2012aaai"),
            ('id="paper-zhang2012aaai"', 'id="experiment-klr_figure4"', "AAAI 2012): claims"),
        ),
        (
            (f"results_dir={REFERENCE}", "experiment=budget_all", "compare=budget_magic"),
            ("equal numbers in all 24 cells",),
        ),
    ):
        assert main(["report", *words, "format=html", f"output={target}"]) == 0
        assert capsys.readouterr().out == f"{target}\n"
        assert all(part in target.read_text(encoding="utf-8") for part in expected)
    assert main(["report", "experiment=oskl_mnist", where, "format=html,md", f"output={tmp_path / 'out'}"]) == 0
    assert {"report.html", "table.md"} <= {path.name for path in (tmp_path / "out").iterdir()}
    capsys.readouterr()
    assert main(["site", f"output={tmp_path / 'site'}", where]) == 0
    index = tmp_path / "site" / "index.html"
    assert capsys.readouterr().out == f"{index}\n"
    text = index.read_text(encoding="utf-8")
    assert all(f'href="{page}.html"' in text for page in ("experiments/oskl_mnist", "papers/zhang2012aaai"))
    assert 'class="bar"' in text
    assert "leaderboard" not in text.lower(), "no experiment has six data sets"


def test_methods_are_ranked_where_all_were_run_on_six_data_sets(tmp_path: Path) -> None:
    for name in ("tables", "oskl_mnist"):
        (tmp_path / name).symlink_to(REFERENCE / name)
    index = write_site(tmp_path / "site", tmp_path)[-1].read_text(encoding="utf-8")
    (board,) = re.findall(r'<section class="part" id="site-leaderboards".*?</section>', index, re.DOTALL)
    assert board.count("<table") == 1
    rows = [re.findall(r"<t[hd][^>]*>(?:<span>)?([^<]*)", row) for row in re.findall(r"<tr>.*?</tr>", board)[1:]]
    ranks = [float(row[1]) for row in rows]
    assert ranks == sorted(ranks)
    assert rows[0][0] == "KLR"
    for rank, row in zip(ranks, rows, strict=True):
        low, high = map(float, row[2].split(" to "))
        assert 1 <= low <= rank <= high <= len(rows)
    page = (tmp_path / "site" / "experiments" / "tables.html").read_text(encoding="utf-8")
    places = [": ranks", 'data-plot="tables-rank_time"', 'data-plot="tables-score_profile"', '<details class="folded">']
    assert [*map(page.index, places)] == sorted(map(page.index, places))


def test_too_few_data_sets_are_said_to_distinguish_no_methods(tmp_path: Path) -> None:
    (tmp_path / "tables").symlink_to(REFERENCE / "tables")
    table = results_table(read_results(tmp_path / "tables"))
    for n, possible in ((29, True), (7, False)):
        found = ranking_document(replace(table, blocks=table.blocks[:n]))
        assert found is not None
        assert {row[3].strip() for row in found.grids[0].rows} == ({"yes", "no"} if possible else {NONE})
        assert any("too few to distinguish" in sentence for sentence in found.caption) != possible


def test_different_names_have_different_addresses() -> None:
    names = ["a.b", "a-b", "C-1e+3", "C-1e-3", "опыт", "тест", "plain_name-1"]
    slugs = [*map(word, names)]
    assert len({*slugs}) == len(names)
    assert slugs[-1] == names[-1]


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("experiment=own_file", "experiment=own_file"),
        ("data.path='docs/mine.csv'", "data.path=docs/mine.csv"),
        ("data.path='/home/you/mine.csv'", "data.path=mine.csv"),
        ("data.path='of mine.csv'", "data.path='of mine.csv'"),
        ("force", "force"),
    ],
)
def test_a_command_of_a_page_has_no_needless_quotes_and_no_place_of_one_machine(word: str, shown: str) -> None:
    assert _shareable(word) == shown


def test_mistakes_are_refused_in_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "oskl_mnist").symlink_to(REFERENCE / "oskl_mnist")
    for words, message in (
        ("report experiment=oskl_mnist open=true", "add html to format="),
        ("report experiment=oskl_mnist format=html,md output=a.html", "expected a folder"),
        ("report experiment=oskl_mnist format=html caption=x", "has no effect on a page"),
        ("report experiment=oskl_mnits format=html", "oskl_mnist"),
        ("site", "expected output=FOLDER"),
        ("site output=x results_dir=nowhere", "expected results folders"),
    ):
        assert main(words.split()) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
        assert [path.name for path in tmp_path.iterdir()] == ["results"]
