"""TablePreparer chooses between treatments of columns by validation on the training rows."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline

from klr_bench import KLR, TablePreparer
from klr_bench.datasets import treatments
from klr_bench.datasets.column_notes import describe

N_TRAIN, N_TEST = 400, 600


def nominal(n_columns: int = 60) -> tuple[pd.DataFrame, np.ndarray]:
    """Return columns of four codes, some of which have an effect on the class that does not follow their order."""
    random = np.random.RandomState(0)
    codes = random.randint(1, 5, (N_TRAIN + N_TEST, n_columns))
    effects = np.array([2.0, -2.0, 2.0, -2.0])[codes[:, :8] - 1] * random.uniform(0.5, 1.5, 8)
    y = random.rand(len(codes)) < 1 / (1 + np.exp(-effects.sum(axis=1)))
    return pd.DataFrame(codes, columns=[f"c{i}" for i in range(n_columns)]), np.array(["no", "yes"])[y.astype(int)]


def with_texts(n_values: int, effect: float) -> tuple[pd.DataFrame, np.ndarray]:
    """Return a table with a text column of many values, each of which shifts the log-odds of the class."""
    random = np.random.RandomState(1)
    values = random.randint(0, n_values, N_TRAIN + N_TEST)
    x = random.standard_normal((len(values), 2))
    odds = 2 * x[:, 0] - 1.5 * x[:, 1] + effect * random.standard_normal(n_values)[values]
    table = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "city": [f"city {value}" for value in values]})
    return table, np.array(["no", "yes"])[(random.rand(len(values)) < 1 / (1 + np.exp(-odds))).astype(int)]


def loss_of(preparer: TablePreparer, table: pd.DataFrame, y: np.ndarray, *, with_classes: bool = True) -> float:
    """Return the log loss of KLR on new rows, with the classes known to the preparer or not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # columns that are left out
        X = preparer.fit_transform(table[:N_TRAIN], y[:N_TRAIN] if with_classes else None)
        new = preparer.transform(table[N_TRAIN:])
    model = KLR(random_state=0, max_rounds=1, cv=2).fit(X, y[:N_TRAIN])
    return log_loss(y[N_TRAIN:], model.predict_proba(new))


def test_nominal_columns_coded_as_integers_gain() -> None:
    table, y = nominal()
    preparer = TablePreparer()
    assert loss_of(preparer, table, y) < 0.8 * loss_of(TablePreparer(), table, y, with_classes=False)
    assert {*preparer.report_["kind"]} == {"text"}
    assert preparer.report_["reason"].str.fullmatch(r"validation log loss 0\.\d{3}, 0\.\d{3} otherwise").all()


def test_ordinal_columns_stay_numbers() -> None:
    random = np.random.RandomState(2)
    table = pd.DataFrame(random.randint(0, 15, (N_TRAIN, 6)), columns=list("abcdef"))
    y = table.sum(axis=1) + 3 * random.standard_normal(N_TRAIN) > 42
    assert {*TablePreparer().fit(table, y).report_["kind"]} == {"number"}


def test_a_noise_column_of_many_values_does_no_harm() -> None:
    table, y = with_texts(200, effect=0.0)
    preparer = TablePreparer()
    without = loss_of(TablePreparer({"city": "leave_out"}), table, y)
    assert loss_of(preparer, table, y) < without + 0.01
    assert len(preparer.report_["features"][2]) <= 1


def test_a_useful_column_of_many_values_becomes_the_shares_of_the_classes() -> None:
    table, y = with_texts(200, effect=3.0)
    preparer = TablePreparer(scale=None)
    assert loss_of(preparer, table, y) < loss_of(TablePreparer({"city": "leave_out"}), table, y) - 0.05
    assert preparer.report_["features"][2] == ["city_share_yes"]
    X = preparer.transform(table[:N_TRAIN])
    shares = pd.Series(y[:N_TRAIN] == "yes").groupby(table["city"][:N_TRAIN]).mean()
    assert np.corrcoef(X[:, 2], shares[table["city"][:N_TRAIN]])[0, 1] > 0.9
    with pytest.warns(UserWarning, match="city: 'elsewhere' in 1 row"):
        new = preparer.transform(table[:1].assign(city="elsewhere"))
    assert new[0, 2] == pytest.approx((y[:N_TRAIN] == "yes").mean(), rel=1e-6)


def test_the_share_of_a_training_row_is_that_of_other_rows() -> None:
    table, y = with_texts(200, effect=3.0)
    preparer = TablePreparer(scale=None)
    X = preparer.fit_transform(table[:N_TRAIN], y[:N_TRAIN])[:, 2]
    for _, rows in pd.Series(range(N_TRAIN)).groupby(table["city"][:N_TRAIN]):
        shares = pd.Series(X[rows])
        assert 1 <= shares.nunique() <= 5  # each fold has its own
        same = pd.Series(y[rows] == "yes")
        assert len(rows) < 5 or same.nunique() == 1 or shares.nunique() > 1
    assert pd.Series(preparer.transform(table)[:, 2]).groupby(table["city"]).nunique().max() == 1


@pytest.mark.parametrize("n_rows", [100, 900])
def test_copies_of_rows_do_not_make_shares_of_noise_look_useful(n_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(treatments, "MOST_ROWS", 500)
    random = np.random.RandomState(0)
    table = pd.DataFrame({"x": random.standard_normal(n_rows), "code": [f"code {i}" for i in range(n_rows)]})
    y = np.tile(random.permutation(np.arange(n_rows) % 2), 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the column may be left out
        preparer = TablePreparer({"code": "text"}).fit(pd.concat([table] * 4, ignore_index=True), y)
    assert "code_share_1" not in [name for names in preparer.report_["features"] for name in names]


def test_three_classes_have_a_share_each() -> None:
    table, y = with_texts(60, effect=4.0)
    y = np.where(table["a"] > 0.8, "maybe", y)
    preparer = TablePreparer(scale=None).fit(table[:N_TRAIN], y[:N_TRAIN])
    assert preparer.report_["features"][2] == ["city_share_maybe", "city_share_no", "city_share_yes"]
    shares = preparer.transform(table[:N_TRAIN])[:, 2:]
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=0.1)


def test_spellings_of_whole_numbers_are_one_value() -> None:
    table, y = nominal(12)
    preparer = TablePreparer().fit(table[:N_TRAIN], y[:N_TRAIN])
    assert {*preparer.report_["kind"]} == {"text"}
    expected = preparer.transform(table[:50])
    for spelled in (table[:50].astype(float), table[:50].astype(str), table[:50].astype(str) + ".0"):
        np.testing.assert_array_equal(preparer.transform(spelled), expected)
    texts = TablePreparer().fit(table[:N_TRAIN].astype(str).astype(object), y[:N_TRAIN])
    np.testing.assert_array_equal(texts.transform(table[:50]), expected)


@pytest.mark.parametrize("form", ["{:,},000", "{:,}.00", "({})"])
def test_whole_numbers_written_otherwise_are_one_value(form: str) -> None:
    table, y = nominal(12)
    table = 1000 * (table + 1)
    spelled, table = table.map(form.format), 1000 * table if "000" in form else table
    preparer = TablePreparer().fit(spelled[:N_TRAIN], y[:N_TRAIN])
    assert {*preparer.report_["kind"]} == {"text"}
    sign = -1 if form == "({})" else 1
    numbers = TablePreparer().fit(sign * table[:N_TRAIN], y[:N_TRAIN])
    np.testing.assert_array_equal(preparer.transform(spelled[:50]), numbers.transform(sign * table[:50]))


def test_a_level_may_be_spelled_as_a_missing_value() -> None:
    table = pd.DataFrame({"pain": np.tile(["none", "mild", "severe", ""], 10), "x": np.arange(40.0)})
    preparer = TablePreparer({"pain": ["none", "mild", "severe"]}, scale=None).fit(table)
    assert preparer.report_["n_missing"][0] == 10
    assert preparer.transform(table[:3])[:, 0].tolist() == [0.0, 1.0, 2.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        complete = table[table["pain"] != ""]
        TablePreparer({"pain": ["none", "mild", "severe"]}, scale=None).fit(complete).transform(complete)


@pytest.mark.parametrize("n", [10, 20, 100])
def test_a_tenth_of_texts_are_missing_numbers(n: int) -> None:
    frame = pd.DataFrame({"x": [*(str(i * i % 97) for i in range(n - n // 10)), *["text"] * (n // 10)]})
    preparer = TablePreparer(scale=None).fit(frame[: n - n // 10].astype(float))
    with pytest.warns(UserWarning, match="text"):
        assert np.isfinite(preparer.transform(frame)).all()
    frame.loc[0, "x"] = "text"
    with pytest.raises(ValueError, match="text"):
        preparer.transform(frame)


def test_each_column_is_described() -> None:
    table, y = nominal(12)
    table["city"] = with_texts(60, effect=0.0)[0]["city"]
    preparer = TablePreparer().fit(table[:N_TRAIN], y[:N_TRAIN])
    notes = describe(None, preparer.columns_)
    assert all(any(name in note for note in notes) for name in table)
    assert notes[0].startswith("12 columns of whole numbers as 48 binary features: c0 (4), ")
    assert "; validation log loss 0." in notes[0]
    assert notes[1].startswith(
        "1 column of text as shares of the classes in the rows of each value: city (validation log"
    )


@pytest.mark.parametrize("kind", ["number", "text"])
def test_requested_kinds_are_respected(kind: str) -> None:
    table, y = nominal(12)
    table["c0"] = with_texts(60, effect=0.0)[0]["city"] if kind == "text" else table["c0"]
    columns = dict.fromkeys(table, "number") | {"c0": kind}
    assert TablePreparer(columns).fit(table[:N_TRAIN], y[:N_TRAIN]).report_["kind"].tolist() == [*columns.values()]


def test_without_classes_nothing_is_validated() -> None:
    table, _ = nominal(12)
    for y in (None, np.linspace(0, 1, len(table)), np.zeros(len(table)), np.arange(len(table)) % 50):
        assert {*TablePreparer().fit(table, y).report_["kind"]} == {"number"}
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        TablePreparer().fit(table, [0, 1])


def test_groups_stay_together() -> None:
    """A column that only tells groups apart seems useful unless their rows are kept in one fold."""
    random = np.random.RandomState(0)
    groups = np.repeat(np.arange(60), 7)
    y = random.randint(0, 2, 60)[groups]
    table = pd.DataFrame({"x": y + random.standard_normal(len(y)), "device": [f"device {group}" for group in groups]})
    for known, least, most in ((None, 0.99, 1.0), (groups, -0.5, 0.5)):
        preparer = TablePreparer(scale=None)
        shares = preparer.fit_transform(table, y, known)[:, 1]
        assert preparer.report_["features"][1] == ["device_share_1"]
        assert least <= np.corrcoef(shares, y)[0, 1] <= most


@pytest.mark.parametrize("n_groups", range(1, 8))
def test_few_groups_are_enough(n_groups: int) -> None:
    table, y = with_texts(60, effect=3.0)
    table["rating"] = np.random.RandomState(0).randint(1, 6, len(table))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        X = TablePreparer().fit_transform(table[:N_TRAIN], y[:N_TRAIN], np.arange(N_TRAIN) % n_groups)
    assert np.isfinite(X).all()


def test_both_zeros_are_one_value() -> None:
    table, y = nominal(12)
    table = table - 2.0
    preparer = TablePreparer().fit(table[:N_TRAIN], y[:N_TRAIN])
    assert {*preparer.report_["kind"]} == {"text"}
    np.testing.assert_array_equal(preparer.transform(table.replace(0.0, -0.0)), preparer.transform(table))


def test_a_pipeline_with_few_rows_of_a_class_can_be_fitted() -> None:
    table, y = with_texts(60, effect=1.0)
    y[:N_TRAIN] = "no"
    y[:3] = "yes"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = make_pipeline(TablePreparer(), KLR(random_state=0, max_rounds=0, cv=2))
        model.fit(table[:N_TRAIN], y[:N_TRAIN])
    assert model.predict_proba(table).shape == (len(table), 2)
