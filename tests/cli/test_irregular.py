"""Irregular tables from the file to predictions and a comparison: each column is named, and groups stay together."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from klr_bench import load_model
from klr_bench.cli import main
from tests.cover import usually

FAST = ["algorithms.klr.estimator.max_rounds=0"]
SWAPPED = str.maketrans(",.", ".,")
RUN = ["repeats=1", "selection.folds=2", "algorithm=[klr,lr_linear,oskl_default]", "n_jobs=1", *FAST]
LOSS = re.compile(r"KLR (\S+) ± (\S+), logistic regression (\S+) ± \S+, the constant (\S+) ± ")


def visits(path: Path) -> list[str]:
    """Several visits of each patient, whose outcome depends on the patient rather than on what was measured."""
    random = np.random.RandomState(0)
    patient = np.repeat(np.arange(60), 5)
    table = pd.DataFrame(
        {
            "Unnamed: 0": random.permutation(300),
            "patient_id": [f"P{7 * i % 60:03}" for i in patient],
            "visit": pd.Timestamp("2021-03-01") + pd.to_timedelta(random.randint(0, 700, 300), "D"),
            "pressure": [["n.a.", "--", "#N/A"][i % 3] if i % 20 == 4 else f"{i % 9 + 110}" for i in range(300)],
            "height": (160 + 30 * random.rand(60)).round(1)[patient],
            "weight": (50 + 60 * random.rand(60))[patient].round(1) + random.randint(0, 2, 300),
            "pulse": (60 + 60 * random.rand(60))[patient].round(1),
            "outcome": np.array(["ill", "well"])[(random.rand(60) < 0.5).astype(int)][patient],
        }
    )
    table.to_csv(path, index=False)
    return ["data.group=patient_id"]


def accounts(path: Path) -> list[str]:
    """A spreadsheet of Central Europe: titles, semicolons, decimal commas, brackets for losses, and cp1252."""
    random = np.random.RandomState(1)
    gain = random.randn(200) * 2000
    money = [f"({abs(x):,.2f})" if x < 0 else f"{x:,.2f}" for x in gain]
    rows = [
        f"{20000 + 37 * i % 200};{text.translate(SWAPPED)};{1 + i % 28}.{1 + i % 12}.2020;{i % 7},5 €;"
        f"{['Köln', 'Bonn', 'Ulm'][i % 3]};{'ja' if x > 0 else 'nein'}"
        for i, (text, x) in enumerate(zip(money, gain, strict=True))
    ]
    lines = ["Übersicht der Konten", "", "Kundennummer;Ergebnis;Eröffnet;Gebühr;Stadt;Aktiv", *rows]
    path.write_text("\n".join(lines), encoding="cp1252")
    return ["data.decimal=comma", "data.encoding=cp1252"]


def sensors(path: Path) -> list[str]:
    """Measurements in the order of time, with clock times of a second kind, whose classes drift."""
    random = np.random.RandomState(2)
    at = pd.date_range("2022-01-01", periods=400, freq="97min")
    table = pd.DataFrame(
        {
            "at": at.strftime("%m/%d/%Y %I:%M %p"),
            "shift_begins": random.choice(["6:00", "14:00", "22:00"], 400),
            "temperature": 20 + 5 * np.sin(2 * np.pi * at.hour / 24) + random.randn(400),
            "alarm": np.where(random.rand(400) < np.linspace(0.2, 0.6, 400), "yes", "no"),
        }
    )
    table.sample(frac=1, random_state=0).to_csv(path, index=False)
    return ["data.time=at"]


def parcels(path: Path) -> list[str]:
    """Single cells of another kind, sizes in an order, and numbers of customers."""
    random = np.random.RandomState(3)
    size = random.randint(0, 4, 300)
    table = pd.DataFrame(
        {
            "CustomerNo": random.permutation(300) + 40_000,
            "zip": [str(10_000 + 11 * i) for i in random.randint(0, 4000, 300)],
            "size": np.array(["S", "M", "L", "XL"])[size],
            "weight": [f"{w:.2f} kg" for w in random.rand(300) * 20],
            "late": np.where(size + random.randn(300) > 1.5, 1, 0),
        }
    )
    table.loc[17, "zip"], table.loc[40, "weight"], table.loc[50, "weight"] = "98109-2547", "unknown", "."
    table.to_csv(path, sep="\t", index=False)
    return ["data.coerce=true", "data.columns={size: [S, M, L, XL]}"]


def stored(path: Path) -> list[str]:
    """A Parquet file with typed columns."""
    random = np.random.RandomState(4)
    x = random.randn(300)
    table = pd.DataFrame(
        {
            "uuid": [f"{i * 7919 % 300:032x}" for i in range(300)],
            "code": [f"{i % 5:03}" for i in range(300)],
            "x": x,
            "member": random.rand(300) < 0.5,
            "since": pd.date_range("2019-01-01", periods=300, freq="11h"),
            "state": pd.Categorical(np.where(x**2 > 0.6, "far", "near")),
        }
    )
    table.to_parquet(path)
    return []


TABLES: dict[Callable[[Path], list[str]], dict[str, str]] = {
    visits: {
        "Unnamed: 0": "row numbers",
        "patient_id": "as requested",
        "visit": "year, month, weekday",
        "pressure": "numbers",
        "height": "numbers",
        "weight": "numbers",
        "pulse": "numbers",
    },
    accounts: {
        "Kundennummer": "identifiers, all different",
        "Ergebnis": "numbers",
        "Eröffnet": "year, month, weekday",
        "Gebühr": "numbers",
        "Stadt": "text",
    },
    sensors: {"at": "as requested", "shift_begins": "hour", "temperature": "numbers"},
    parcels: {
        "CustomerNo": "identifiers, all different",
        "zip": "numbers",
        "size": "S < M < L < XL",
        "weight": "numbers",
    },
    stored: {"uuid": "identifiers, all different", "code": "text", "x": "numbers", "member": "text", "since": "hour"},
}
"""Treatment of each column, by table."""


def check_notes(printed: str, treatments: dict[str, str]) -> None:
    """Check that a printed line names each column and its treatment."""
    notes = printed.splitlines()
    for name, treatment in treatments.items():
        named = [note for note in notes if re.search(rf"[:,;] {re.escape(name)}\b", note)]
        assert any(treatment in note for note in named), (name, notes)


@pytest.mark.parametrize("make", usually(TABLES, [visits, stored]))
def test_from_the_file_to_predictions_and_a_comparison(
    make: Callable[[Path], list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = make(tmp_path / "mine.csv")
    assert main(["fit", "data.path=mine.csv", *settings, *FAST, "output=model.skops"]) == 0
    fitted = capfd.readouterr()
    check_notes(fitted.out + fitted.err, TABLES[make])
    klr, error, _, constant = map(float, LOSS.search(fitted.out).groups())  # type: ignore[union-attr]
    assert 0 < error < 0.2
    if make is visits:
        assert klr > constant - 0.05, "nothing is learned about new patients"
    reading = [word for word in settings if word.startswith("data.encoding")]
    first = next(iter(TABLES[make]))
    assert main(["predict", "model=model.skops", "data.path=mine.csv", *reading, f"keep={first}", "output=p.csv"]) == 0
    predictions = pd.read_csv(tmp_path / "p.csv")
    assert predictions.columns[:2].tolist() == [first, "prediction"]
    assert predictions[first].nunique() > 50
    assert (predictions.filter(like="probability_").sum(axis=1) - 1).abs().max() < 1e-6
    assert load_model("model.skops")[-1].cv is None
    words = ["experiment=own_file", "data.path=mine.csv", "data.cache=cache", *settings, *RUN]
    assert main(["run", *words]) == 0, capfd.readouterr().err
    printed = capfd.readouterr()
    check_notes(printed.out + printed.err, TABLES[make])
    records = pd.read_csv(tmp_path / "results" / "own_file" / "records.csv")
    assert records["status"].tolist() == ["ok"] * 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["data.group=patient_id", "data.time=visit"], "data.group= and data.time= are both given"),
        (["data.group=patent_id"], "there is no group column 'patent_id' (data.group)"),
        (["data.decimal=,"], "data.decimal: unknown value ','. Known: comma, point."),
        (["data.columns={pressure: [low]}"], "data.columns: pressure: expected at least two different values"),
    ],
)
def test_a_wrong_setting_is_one_message(
    words: list[str], message: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    visits(tmp_path / "mine.csv")
    assert main(["fit", "data.path=mine.csv", "output=model.skops", *words]) == 2
    error = capfd.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("setting", ["data.group=patient_id", "data.time=visit"])
def test_a_learner_without_groups_leaves_their_column_out(
    setting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    visits(tmp_path / "mine.csv")
    assert main(["fit", "data.path=mine.csv", "output=model.skops", setting, "algorithm=svc"]) == 0, capfd.readouterr()
    name = setting.partition("=")[2]
    (column,) = [column for column in load_model("model.skops")[0].columns_ if column.name == name]
    assert column.kind == "leave_out"


def test_groups_change_the_loss_that_fit_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A model that recognizes patients is good at their other visits only."""
    monkeypatch.chdir(tmp_path)
    visits(tmp_path / "mine.csv")
    losses: list[tuple[Any, ...]] = []
    for words in ([], ["data.group=patient_id"]):
        few = "data.columns={visit: leave_out, pressure: leave_out}"
        assert main(["fit", "data.path=mine.csv", "output=model.skops", few, *words, *FAST]) == 0
        output = capfd.readouterr().out
        losses.append(tuple(map(float, LOSS.search(output).groups())))  # type: ignore[union-attr]
        assert ("patient_id: identifiers that repeat: set data.group=patient_id?" in output) == (not words)
    (of_visits, _, _, constant), (new, _, _, _) = losses
    assert of_visits < 0.85 * constant
    assert new > 0.9 * constant


def test_two_data_sets_of_one_file_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Their results would have the same names."""
    monkeypatch.chdir(tmp_path)
    visits(tmp_path / "mine.csv")
    folder = Path("configs/dataset")
    folder.mkdir(parents=True)
    for name, scale in (("first", "standard"), ("second", "minmax")):
        source = "{format: file, path: mine.csv}"
        text = f"# @package datasets.{name}\nsource: {source}\nscale: {scale}\nsplit: {{test_size: 0.2}}\n"
        (folder / f"{name}.yaml").write_text(text)
    assert main(["run", "dataset=[first,second]", "algorithm=[nc]", "data.cache=cache"]) == 2
    assert "dataset=[first,second]: results call both mine-" in capfd.readouterr().err
