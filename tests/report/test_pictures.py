"""Pictures of prototypes: what is drawn is what was fitted."""

from __future__ import annotations

import io
import warnings
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from rich.console import Console
from sklearn.exceptions import ConvergenceWarning

from klr_bench import PrototypeKLR
from klr_bench.experiment import runner
from klr_bench.experiment.config.schema import DataConfig, KernelConfig, ParallelConfig, TraceConfig
from klr_bench.experiment.config.validate import Config
from klr_bench.experiment.data.synthetic import gaussian_mixtures
from klr_bench.report import report
from klr_bench.report.pictures import Picture
from klr_bench.report.reading import read_records, read_traces

MIXTURES = {
    "label": "Mixtures",
    "source": {
        "format": "generated",
        "generator": {
            "_target_": "klr_bench.experiment.data.synthetic.gaussian_mixtures",
            **{"n_samples": 200, "n_classes": 3, "components": 1, "spread": 0.8, "seed": 3},
        },
    },
    "multiclass": True,
    "split": {"test_size": 0.2},
}
PASSES = {"_target_": "klr_bench.PrototypeKLR", "solver": "alternating", "batch_size": 16, "max_iter": 3, "tol": 0.0}


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_checkpoint_holds_the_classifier(n_classes):
    X, y = gaussian_mixtures(200, n_classes, 2, 0.8, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = PrototypeKLR(4, random_state=0, max_iter=20).fit(X, y)
    picture = Picture(fitted.progress())
    np.testing.assert_array_equal(picture.classes(X), fitted.predict(X))
    np.testing.assert_allclose(picture.kernel(X), fitted.kernel_values(X), rtol=1e-6)
    assert set(PrototypeKLR(2, max_iter=1, solver="lbfgs").fit(np.eye(4), [0, 1, 0, 1]).progress()) == {
        "n_support",
        "gamma",
    }


def test_a_run_in_the_plane_has_a_picture_a_fit_and_its_curves(tmp_path: Path):
    config = Config(
        name="plane",
        repeats=2,
        results_dir=str(tmp_path / "results"),
        data=DataConfig(cache=str(tmp_path / "cache")),
        kernel=KernelConfig(percentile=None),
        trace=TraceConfig(points=3),
        parallel=ParallelConfig("serial"),
        datasets={"mixtures": MIXTURES},
        algorithms={"prototype": {"label": "Prototypes", "reference": "", "estimator": PASSES, "grid": {}}},
        sweep={"prototype": {"init": ["random", "kmeans"], "n_prototypes": [2, 5]}},
        figures=["prototype_pictures", "log_loss_prototypes", "log_loss_time"],
    )
    console = Console(file=io.StringIO())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        runner.run(config, console=console)
    folder = tmp_path / "results" / "plane"
    written = {path.name: path for path in report(folder, console=console)}
    curves = {f"{name}.{kind}" for name in ("log_loss_prototypes", "log_loss_time") for kind in ("png", "svg")}
    fits = {f"prototypes_mixtures_{init}_{J}.png" for init in ("random", "kmeans") for J in (2, 5)}
    assert set(written) == curves | fits
    assert matplotlib.image.imread(written["prototypes_mixtures_random_5.png"]).std() > 0.05
    traces = read_traces(folder / "traces.csv")
    records = read_records(folder / "records.csv")
    assert sorted(traces["t"].unique()) == [1, 2, 3]
    for row in records.to_dict("records"):
        last = traces[(traces["key"] == row["key"]) & (traces["t"] == 3)].set_index("metric")["value"]
        assert last["log_loss"] == pytest.approx(row["log_loss"])
        assert len(Picture(last.to_dict()).u) == row["n_support"]
    svg = written["log_loss_prototypes.svg"].read_text(encoding="utf-8")
    assert svg.count("<!-- Prototypes init=") == 2, "a curve for each start"
