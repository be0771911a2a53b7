"""ONNX models of whole pipelines predict what the pipelines predict, from the columns of a table."""

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer, StandardScaler

from klr_bench import KLR, OSKL, TablePreparer, to_onnx
from klr_bench.datasets.onnx_columns import knots_of

RANDOM = np.random.RandomState(0)
N = 200


def table() -> pd.DataFrame:
    size = RANDOM.randint(0, 3, N)
    return pd.DataFrame(
        {
            "id": np.arange(N),
            "age": np.where(RANDOM.rand(N) < 0.1, np.nan, RANDOM.randint(18, 80, N)),
            "income": np.exp(3 * RANDOM.standard_normal(N)).round(1),
            "counts": RANDOM.poisson(0.3, N) ** 4,
            "plan": RANDOM.choice(["free", "gold", "basic", None], N),
            "sex": RANDOM.choice(["f", "m"], N),
            "size": pd.Categorical.from_codes(size, ["S", "M", "L"], ordered=True),
            "since": pd.date_range("2021-03-05", periods=N, freq="31h"),
            "ok": RANDOM.rand(N) < 0.5,
        }
    )


def inputs(frame: pd.DataFrame) -> dict[str, np.ndarray]:
    time = pd.DatetimeIndex(frame["since"])
    parts = {"year": time.year, "month": time.month, "weekday": time.day_of_week, "hour": time.hour}
    values = {f"since_{name}": np.asarray(part, dtype=np.float64) for name, part in parts.items()}
    values |= {name: frame[name].to_numpy(np.float64) for name in ("age", "income", "counts")}
    texts = {name: frame[name].astype(object).where(frame[name].notna(), "") for name in ("plan", "sex", "size", "ok")}
    values |= {name: text.astype(str).to_numpy(dtype=object) for name, text in texts.items()}
    return {name: value[:, None] for name, value in values.items()}


@pytest.mark.parametrize("n_classes", [2, 3])
def test_treatments_chosen_by_validation_agree(n_classes: int) -> None:
    random = np.random.RandomState(0)
    code, city = random.choice([1.0, 2.0, 3.0, 4.0, 7.0, np.nan], 500), random.randint(0, 200, 500)
    frame = pd.DataFrame({"code": code, "city": [f"city {value}" for value in city]})
    frame["city"] = frame["city"].where(city > 3, None)
    odds = np.where(np.isin(code, [1, 3]), 2, -2) + 2 * random.standard_normal(200)[city]
    y = np.clip(np.digitize(odds, [-1, 1]), 0, n_classes - 1)
    model = make_pipeline(TablePreparer(), OSKL(random_state=0)).fit(frame[:400], y[:400])
    columns = model[0].columns_
    assert columns[0].whole
    assert len(columns[1].shares) == len(columns[1].values) + 1
    session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString(), providers=["CPUExecutionProvider"])
    frame.loc[499] = [9.0, "new"]
    texts = frame["city"].fillna("").to_numpy(dtype=object)
    _, probabilities = session.run(None, {"code": frame[["code"]].to_numpy(), "city": texts[:, None]})
    with pytest.warns(UserWarning, match="values that the training rows do not have"):
        expected = model.predict_proba(frame)
    np.testing.assert_allclose(probabilities, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("scale", ["auto", "standard", "minmax", None])
@pytest.mark.parametrize("classifier", [KLR(random_state=0, max_rounds=0, cv=2), OSKL(random_state=0)])
def test_probabilities_of_a_pipeline_agree(classifier: object, scale: str | None) -> None:
    frame = table()
    y = np.array(["no", "yes"])[((frame["income"] > 1) ^ (frame["sex"] == "f")).astype(int)]
    model = make_pipeline(TablePreparer({"id": "leave_out"}, scale=scale), classifier).fit(frame[:150], y[:150])
    frame.loc[N - 1, ["plan", "sex"]] = ["new", "x"]
    session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString(), providers=["CPUExecutionProvider"])
    assert {entry.name for entry in session.get_inputs()} == {*inputs(frame)}
    label, probabilities = session.run(None, inputs(frame))
    with pytest.warns(UserWarning, match="values that the training rows do not have"):
        expected = model.predict_proba(frame)
    np.testing.assert_allclose(probabilities, expected, rtol=0, atol=1e-5)
    assert (label == model.predict(frame)).mean() > 0.99


def test_the_knots_give_the_ranks_of_scikit_learn() -> None:
    counts, normal = RANDOM.poisson(0.5, 300), RANDOM.standard_normal(300)
    for values in (counts, normal, np.repeat([1.0, 2.0, 5.0], [200, 3, 97]), np.zeros(300)):
        ranks = QuantileTransformer(n_quantiles=100).fit(values[:, None])
        knots, first, last, slopes = knots_of(ranks.quantiles_[:, 0], ranks.references_)
        x = np.concatenate([values, RANDOM.uniform(values.min() - 1, values.max() + 1, 200)])
        place = (x[:, None] >= knots[None, 1:]).sum(axis=1)
        between = last[place] + (x - knots[place]) * slopes[place]
        found = np.where(x == knots[place], (first[place] + last[place]) / 2, between)
        np.testing.assert_allclose(found, ranks.transform(x[:, None])[:, 0], atol=1e-12)


def test_levels_and_truth_values_are_spelled_as_in_python() -> None:
    """A level may be spelled as a missing value, and 1 and 0 are truth values in a column of these."""
    pain, ok = np.tile(["none", "mild", "severe"], 50), np.tile(["True", "False"], 75)
    frame = pd.DataFrame({"pain": pain, "ok": ok})
    model = make_pipeline(TablePreparer({"pain": ["none", "mild", "severe"]}), OSKL(random_state=0))
    y = (pain == "none") ^ (ok == "True")
    model.fit(frame, y)
    assert model[0].report_["n_missing"].tolist() == [0, 0]
    new = pd.DataFrame({"pain": ["none", "mild", "severe"] * 8, "ok": np.repeat(["true", "FALSE", "1", "0.0"], 6)})
    session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString(), providers=["CPUExecutionProvider"])
    _, probabilities = session.run(None, {name: new[[name]].to_numpy(dtype=object) for name in new})
    np.testing.assert_allclose(probabilities, model.predict_proba(new), rtol=0, atol=1e-5)


def test_other_pipelines_are_refused() -> None:
    model = make_pipeline(StandardScaler(), OSKL()).fit(RANDOM.standard_normal((20, 2)), np.arange(20) % 2)
    named = make_pipeline(TablePreparer(), OSKL(random_state=0))
    clash = pd.DataFrame({"label": np.arange(40.0) % 9, "x": np.arange(40.0) % 7})
    with pytest.raises(ValueError, match=r"to_onnx: expected different names of columns, .* got 'label'"):
        to_onnx(named.fit(clash, np.arange(40) % 2))
    with pytest.raises(ValueError, match="expected a classifier, alone or after a TablePreparer in a pipeline"):
        to_onnx(model)
