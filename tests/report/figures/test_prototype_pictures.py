"""Pictures of prototypes: what is drawn is what was fitted."""

import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pytest

from klr_bench import PrototypeKLR
from klr_bench.datasets.synthetic import gaussian_mixtures
from klr_bench.report.figures import Inputs, draw_all
from klr_bench.report.figures.prototype_pictures import FIGURE, Classifier
from tests.report.figures import made

PICTURE = "prototypes_magic_kmeans.png"


def read(folder: Path, traced: Any = made.TRACED, rows: Any = made.ROWS, names: Iterable[str] = ("p",)) -> Inputs:
    cells = [made.cell(name, {"init": "kmeans"}, traced=traced, rows=rows) for name in names]
    return made.inputs(folder, *cells)


def drawn(folder: Path, **changes: Any) -> dict[str, bytes]:
    return draw_all(read(folder, **changes), ["prototype_pictures"]).files


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_checkpoint_holds_the_classifier(n_classes: int) -> None:
    X, y = gaussian_mixtures(200, n_classes, 2, 0.8, 0)
    fitted = PrototypeKLR(4, random_state=0, max_iter=20).fit(X, y)
    classifier = Classifier.of(fitted.progress())
    assert classifier is not None
    np.testing.assert_array_equal(classifier.classes(X), fitted.predict(X))
    np.testing.assert_allclose(classifier.kernel(X), fitted.kernel_values(X), rtol=1e-6)
    no_plane = PrototypeKLR(2, max_iter=1, solver="lbfgs").fit(np.eye(4), [0, 1, 0, 1])
    assert set(no_plane.progress()) == {"n_support", "gamma"}


def test_a_fit_with_rows_has_a_picture(tmp_path: Path) -> None:
    files = drawn(tmp_path)
    assert set(files) == {PICTURE}
    assert matplotlib.image.imread(io.BytesIO(files[PICTURE])).std() > 0.05
    more = drawn(tmp_path / "more", rows=[*made.ROWS, (0.2, 0.2, 1)])
    assert more[PICTURE] != files[PICTURE], "the rows are drawn"
    several = {"prototypes_magic_kmeans_p.png", "prototypes_magic_kmeans_q.png"}
    assert set(drawn(tmp_path / "several", names=("p", "q"))) == several


def test_rows_and_numbers_that_make_no_picture(tmp_path: Path) -> None:
    with_holes, not_in_the_plane, two_intercepts = {"u_900000000_1": 1.0}, {"u_0_2": 1.0, "u_1_2": 1.0}, {"b0_1": 1.0}
    for number, traced in enumerate((with_holes, not_in_the_plane, two_intercepts)):
        assert drawn(tmp_path / str(number), traced=made.TRACED | traced) == {}
    assert drawn(tmp_path / "rows", rows=[(np.inf, 0.0, 1)]) == {}


@pytest.mark.parametrize(("height", "beyond"), [(0.5, []), (9.0, ["prototype beyond the data, at their edge"])])
def test_the_legend_names_classes_and_squares(height: float, beyond: list[str], tmp_path: Path) -> None:
    """Of eight classes six have a color of their own."""
    rows = [(0.25 * label, 0.25 * label, label) for label in range(8)]
    drawings: Any = FIGURE.draw(read(tmp_path, made.TRACED | {"u_1_1": height}, rows))  # type: ignore[misc]
    [legend] = drawings["prototypes_magic_kmeans"].legends
    classes = [f"class {label}" for label in range(6)]
    assert [text.get_text() for text in legend.get_texts()] == [*classes, "prototype", *beyond]
