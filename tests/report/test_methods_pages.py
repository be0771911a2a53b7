"""The pages of docs/methods name every class, their blocks run, and what they say in words holds in the records."""

import re
from pathlib import Path

import pandas as pd
import pytest
import yaml

import klr_bench
from tests.report.folders import REFERENCE

ROOT = Path(__file__).resolve().parents[2]
METHODS = ROOT / "docs" / "methods"


def _means(experiment: str, metric: str) -> pd.DataFrame:
    """Return the means over the repeats, a row a data set and a column an algorithm; variants are averaged."""
    records = pd.read_csv(REFERENCE / experiment / "records.csv").query("status == 'ok'")
    return records.groupby(["dataset", "algorithm"])[metric].mean().unstack()


def test_the_tables_of_the_estimators_name_every_public_class_and_function_once_with_its_keys() -> None:
    text = (METHODS / "estimators.md").read_text("utf-8")
    lines = re.findall(r"^\| `([A-Z]\w+|\w+(?=\(\)))(?:\(\))?`([^|]*)", text, re.MULTILINE)
    assert sorted(name for name, _ in lines) == sorted({*klr_bench.__all__} - {"__version__"})
    keys = {(name, key) for name, rest in lines for key in re.findall(r"`(\w+)`", rest)}
    files = [*(ROOT / "configs" / "algorithm").glob("*.yaml")]
    targets = [yaml.safe_load(file.read_text("utf-8"))["estimator"]["_target_"].rpartition(".") for file in files]
    ours = zip(targets, files, strict=True)
    assert keys == {(name, file.stem) for (module, _, name), file in ours if module == "klr_bench"}


@pytest.mark.parametrize("page", ["methods/estimators.md", "scale/index.md"])
def test_the_python_blocks_of_a_page_run_one_after_the_other(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / page).read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, page, "exec"), names)
    assert capsys.readouterr().out


def test_the_chart_and_its_description_name_the_same_classes() -> None:
    drawing, page = ((METHODS / name).read_text("utf-8") for name in ("choose.svg", "index.md"))
    description = re.search(r"!\[(.*)\]\(choose.svg\)", page)
    assert description
    drawn, described = (
        {*re.findall(r"(\w+)\(", text)}
        for text in (" ".join(re.findall(r'class="take"[^>]*>([^<]+)', drawing)), description[1])
    )
    assert {"KLR", "PartitionedKLR", "OSKL"} <= drawn == described <= {*klr_bench.__all__}


def test_what_is_said_of_other_methods_holds() -> None:
    ours = ["oskl_default", "auxiliary_default", "dcd_default", "prototype_default"]
    shown = [*ours, "gradient_boosting", "lr_linear", "svc"]
    accuracy, loss = _means("defaults", "accuracy")[shown], _means("defaults", "log_loss")[shown]
    assert accuracy.idxmax(axis=1).mode().tolist() == ["gradient_boosting"]
    assert loss.drop(columns="svc").idxmin(axis=1).mode().tolist() == ["gradient_boosting"]
    assert accuracy.loc[["adult", "wine_cultivars"]].idxmax(axis=1).eq("lr_linear").all()
    assert accuracy.loc["cod_rna", "oskl_default"] > accuracy.loc["cod_rna", "lr_linear"]
    boosted = pd.read_csv(REFERENCE / "benchmark" / "peers.csv").query("method == 'LightGBM'").set_index("dataset")
    gain = boosted["accuracy"] - boosted["oskl_accuracy"]
    assert (gain[["magic", "adult", "cod_rna"]] > 0).all()
    assert gain["ijcnn1"] < 0


def test_what_is_said_of_ours_holds() -> None:
    selected = pd.read_csv(REFERENCE / "sbcw_rcv1" / "records.csv").groupby(["algorithm", "variant"])
    means = selected.mean(numeric_only=True).groupby("algorithm")
    nearest = means.apply(lambda of: of.loc[(of["n_selected"] - 250).abs().idxmin()])
    assert (nearest["accuracy"].idxmax(), nearest["fit_time_s"].idxmin()) == ("fgm_converged", "sofs")
    small = _means("many_small", "log_loss").dropna(axis=1).rank(axis=1).mean().drop("majority")
    assert small.idxmax() == "auxiliary"
    refit = pd.read_csv(REFERENCE / "budget_all" / "records.csv")
    of_414 = refit["variant"].str.contains('"budget": 414')
    is_refit = refit["variant"].str.contains('"refit": true')
    accuracy, of_nc = (
        refit[rows].groupby("dataset")["accuracy"].mean() for rows in (of_414 & is_refit, refit["algorithm"] == "nc")
    )
    assert accuracy["magic"] > of_nc["magic"]
    assert -0.005 < accuracy["adult"] - of_nc["adult"] < 0
    plain = refit[of_414 & ~is_refit & (refit["dataset"] == "magic")]
    plain = plain.groupby("algorithm")[["accuracy", "fit_time_s"]].mean()
    for other in ("nogd", "projectron", "projectronpp"):
        assert (plain.loc[other] > plain.loc["budget_oskl"]).all()
    stream = pd.read_csv(REFERENCE / "stream_covtype" / "records.csv").query("algorithm == 'budget_oskl'")
    last = stream["variant"].str.contains('"average": false')
    assert stream[last]["accuracy"].mean() > stream[~last]["accuracy"].mean()
