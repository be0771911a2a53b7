"""The tables of README.md and docs/ from the references equal those of scripts/tables."""

import runpy
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier

from tests.report.folders import USUAL, record, write

ROOT = Path(__file__).resolve().parents[2]
BENCHMARK = ROOT / "results" / "reference" / "benchmark"
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "tables"))


@pytest.mark.parametrize("page", SCRIPT["PAGES"])
def test_the_tables_are_those_of_the_records(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    made = SCRIPT["made_for"](page, ROOT / "results" / "reference")
    assert made
    assert all(made.values())
    assert SCRIPT["with_tables"](text, made) == text, "make them anew: python scripts/tables"


def test_what_stands_between_the_lines_is_replaced_and_nothing_else() -> None:
    text = "before\n<!-- a -->\nold\n<!-- end of a -->\nafter\n"
    made = "before\n<!-- a -->\n\n| \\1 |\n\n<!-- end of a -->\nafter\n"
    assert SCRIPT["with_tables"](text, {"a": r"| \1 |"}) == made
    with pytest.raises(AssertionError, match="<!-- b -->"):
        SCRIPT["with_tables"](text, {"b": ""})


def test_the_figures_are_those_of_the_records() -> None:
    pages = ("../README.md", "results.md", "scale/index.md")
    shown = "".join((ROOT / "docs" / page).read_text(encoding="utf-8") for page in pages)
    for name, picture in SCRIPT["all_pictures"](BENCHMARK.parent).items():
        committed = (ROOT / "docs" / name).read_bytes()
        assert name.removeprefix("scale/") in shown
        if b"Matplotlib" not in committed or f"Matplotlib v{mpl.__version__}".encode() in committed:
            assert committed == picture, "make them anew: python scripts/tables"


@pytest.mark.parametrize(
    ("first", "last", "words"),
    [
        (0.0004, -0.0004, "the same"),
        (0.0, 0.01, "up to 1.0 points higher"),
        (0.002, 0.01, "0.2 to 1.0 points higher"),
        (-0.01, 0.0, "up to 1.0 points lower"),
        (-0.01, -0.002, "0.2 to 1.0 points lower"),
        (-0.01, 0.002, "from 1.0 points lower to 0.2 points higher"),
    ],
)
def test_the_comparison_can_say_the_opposite(tmp_path: Path, first: float, last: float, words: str) -> None:
    data = pd.read_csv(BENCHMARK / "peers.csv").assign(time_ratio=0.5)
    gains = data.groupby("method").cumcount().map(lambda place: first if place % 2 else last)
    data.assign(accuracy=data["oskl_accuracy"] + gains).to_csv(tmp_path / "peers.csv")
    sentence = f"SVC took 0.50 to 0.50 times as long as `OSKL()` on the same rows, and its accuracy is {words} on 5"
    assert f"- {sentence} data sets." in SCRIPT["compared"](tmp_path)["compared"]


def test_a_method_joins_the_comparison_once_it_is_measured(tmp_path: Path) -> None:
    data = pd.read_csv(BENCHMARK / "peers.csv").query("method != 'KLR'")
    data.to_csv(tmp_path / "peers.csv")
    without = SCRIPT["figures"](tmp_path)["magic.svg"]
    assert "- KLR took" not in SCRIPT["compared"](tmp_path)["compared"]
    klr = data[data["method"] == "OSKL"].assign(method="KLR", time_ratio=9.0, accuracy=0.89)
    pd.concat([data, klr]).to_csv(tmp_path / "peers.csv")
    assert "- KLR took 9.0 to 9.0 times as long as `OSKL()`" in SCRIPT["compared"](tmp_path)["compared"]
    assert SCRIPT["figures"](tmp_path)["magic.svg"] != without


def test_the_first_sentences_can_say_the_opposite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules["facts"]
    monkeypatch.setattr(module, "reproductions", lambda reference: [])
    for calibrated, power, shares in (
        (8, 4, ("most", "most")),
        (4, 2, ("about half", "about half")),
        (2, 1, ("some", "some")),
        (0, 0, ("none", "none")),
    ):
        counted = {"results compared": 8, "agree": 4, "agree with power": power, "calibrated": calibrated}
        monkeypatch.setattr(module, "counts", lambda matches, counted=counted: counted)
        words = module.published(tmp_path).replace("\N{NO-BREAK SPACE}", " ")
        assert (
            f"50 % of the published results that can be compared agree with ours; for {shares[1]} of these, " in words
        )
        assert f"For {shares[0]} of the results" in words
    (tmp_path / "benchmark").mkdir()
    data = pd.read_csv(BENCHMARK / "peers.csv")
    data.assign(time_ratio=0.5, load=0.0).to_csv(tmp_path / "benchmark" / "peers.csv")
    assert "With default parameters, SVC takes 0.50 times as long as `OSKL()`" in module.svc(tmp_path)
    assert "rough" not in module.svc(tmp_path)
    assert "Gradient boosting" not in module.facts(tmp_path)["facts"]


@pytest.mark.parametrize(("klr", "boosting"), [(0.3, 0.4), (0.4, 0.3)])
def test_the_sentence_on_gradient_boosting_is_that_of_the_records(klr: float, boosting: float, tmp_path: Path) -> None:
    losses = {"klr": klr, "gradient_boosting": boosting}
    rows = [
        record(
            name,
            "",
            0,
            dataset=f"d{n}",
            n_train=20,
            log_loss=loss + n / 100,
            accuracy=1 - loss,
            fit_time_s=loss,
            key=f"{name}-{n}",
        )
        for name, loss in losses.items()
        for measured in [{"n_train": 20, "accuracy": 1 - loss, "fit_time_s": loss}]
        for n in range(5)
    ]
    failed = record("klr", "", 0, dataset="failed", status="error", message="no", log_loss=None, accuracy=None)
    other = record("gradient_boosting", "", 0, dataset="failed", log_loss=0.1, accuracy=1.0, fit_time_s=0.1)
    write(tmp_path / "tables", [*rows, failed, other], USUAL)
    sentence = sys.modules["facts"].boosting(tmp_path)
    loss = np.prod([(klr + n / 100) / (boosting + n / 100) for n in range(5)]) ** 0.2
    assert "On 5 tables (of 6; on the others, a fit failed) with up to 20 training rows" in sentence
    assert f"has {loss:.2f} times the log loss of scikit-learn's gradient boosting with its default" in sentence
    assert f"trains for {klr / boosting:.2g} times as long" in sentence


@pytest.mark.parametrize("address", ["", "https://example.org/klr-bench"])
def test_the_clone_line_has_the_address_of_the_setting(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules["facts"]
    monkeypatch.setattr(module, "REPOSITORY", address)
    assert (f"git clone {address} " in module.install(ROOT)["install"]) == bool(address)
    assert ("git clone" in module.install(ROOT)["install"]) == bool(address)


def measured_rows(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write records of the parts many_rows, by fits of a constant, and leaves."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts" / "benchmark"))
    part = runpy.run_path(str(ROOT / "scripts" / "benchmark" / "many_rows.py"))
    X, y = np.zeros((60, 2)), np.arange(60) % 2
    rows = [
        row
        for name in ("covtype", "adult")
        for method, (most, _) in part["METHODS"].items()
        for row in part["series"](name, method, DummyClassifier, [20, 40][: 1 + (most > 40_000)], (X, y, X, y))
    ]
    pd.DataFrame(rows).to_csv(folder / "many_rows.csv")
    sizes = {"n": 5_000_000, "features": 100, "threads": 2, "file_mb": 2000.0, "limit_mb": 1600.0, "levels": 13}
    sizes |= {"partitions": 1, "leaves": 8192, "max_support": 30, "accuracy": 0.75, "load": 0.0}
    seconds = {"order_s": 20.0, "divide_s": 40.0, "leaves_s": 400.0, "fit_s": 470.0, "predict_s": 0.5}
    pd.DataFrame([sizes | seconds]).to_csv(folder / "leaves.csv")


def test_tables_of_many_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules["many_rows"]
    makers = module.many_rows, module.leaves, module.file_fit
    measured_rows(tmp_path, monkeypatch)
    after = {name: text for maker in makers for name, text in maker(tmp_path).items()}
    for method in module.LOOKS:
        assert after["many_rows"].count(f"\n| {method} ") == after["prediction"].count(f"\n| {method} ") * 2 == 2
    assert "| `PartitionedKLR` | " in after["when"]
    assert module.PICTURE in after["many_rows"]
    assert b"</svg>" in module.rows_figure(tmp_path)[module.PICTURE]
    assert "were fitted in 7.8 min on 2 threads" in after["file_fit"]
    # 10^9 rows are 1,638,400 such leaves, which take 1.6e5 s on one worker of one core
    assert "| fits of 1,638,400 leaves" in after["leaves"]
    assert after["leaves"].rstrip(" |").endswith("27 min")
