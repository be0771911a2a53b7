"""Pictures of prototypes: what is drawn is what was fitted."""

from __future__ import annotations

import io
import warnings
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from klr_bench import PrototypeKLR
from klr_bench.datasets.synthetic import gaussian_mixtures
from klr_bench.report.figures import draw_all
from klr_bench.report.figures.prototype_pictures import FIGURE, Classifier
from tests.report.figures import made

PICTURE = "prototypes_magic_kmeans.png"


def drawn(folder: Path, traced=made.TRACED, rows=made.ROWS) -> dict[str, bytes]:
    return draw_all(
        made.read(made.write(folder, [made.cell("p", {"init": "kmeans"}, traced=traced, rows=rows)])),
        ["prototype_pictures"],
    ).files


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_checkpoint_holds_the_classifier(n_classes: int) -> None:
    X, y = gaussian_mixtures(200, n_classes, 2, 0.8, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = PrototypeKLR(4, random_state=0, max_iter=20).fit(X, y)
        no_plane = PrototypeKLR(2, max_iter=1, solver="lbfgs").fit(np.eye(4), [0, 1, 0, 1])
    classifier = Classifier.of(fitted.progress())
    assert classifier is not None
    np.testing.assert_array_equal(classifier.classes(X), fitted.predict(X))
    np.testing.assert_allclose(classifier.kernel(X), fitted.kernel_values(X), rtol=1e-6)
    assert set(no_plane.progress()) == {"n_support", "gamma"}


def test_a_fit_with_rows_has_a_picture(tmp_path: Path) -> None:
    files = drawn(tmp_path)
    assert set(files) == {PICTURE}
    assert matplotlib.image.imread(io.BytesIO(files[PICTURE])).std() > 0.05
    more = drawn(tmp_path / "more", rows=[*made.ROWS, (0.2, 0.2, 1)])
    assert more[PICTURE] != files[PICTURE], "the rows are drawn"
    cells = [made.cell(name, traced=made.TRACED, rows=made.ROWS) for name in ("p", "q")]
    several = draw_all(made.read(made.write(tmp_path / "several", cells)), ["prototype_pictures"]).files
    assert set(several) == {"prototypes_magic_p.png", "prototypes_magic_q.png"}


def test_rows_and_numbers_that_make_no_picture(tmp_path: Path) -> None:
    assert drawn(tmp_path / "gap", traced=made.TRACED | {"u_900000000_1": 1.0}) == {}, "an array with holes"
    assert drawn(tmp_path / "axes", traced=made.TRACED | {"u_0_2": 1.0, "u_1_2": 1.0}) == {}, "not in the plane"
    assert drawn(tmp_path / "size", traced=made.TRACED | {"b0_1": 1.0}) == {}, "two intercepts, one row of weights"
    assert drawn(tmp_path / "rows", rows=[(np.inf, 0.0, 1)]) == {}
    eight = [(0.1 * label, 0.3, label) for label in range(8)]
    assert set(drawn(tmp_path / "classes", rows=eight)) == {PICTURE}, "more classes than colours"


@pytest.mark.parametrize(("height", "beyond"), [(0.5, []), (9.0, ["prototype beyond the data, at their edge"])])
def test_the_legend_names_classes_and_squares(height: float, beyond: list[str], tmp_path: Path) -> None:
    traced = made.TRACED | {"u_1_1": height}
    drawings = FIGURE.draw(made.read(made.write(tmp_path, [made.cell("p", traced=traced, rows=made.ROWS)])))
    assert isinstance(drawings, dict)
    [legend] = drawings["prototypes_magic"].legends
    assert [text.get_text() for text in legend.get_texts()] == ["class -1", "class 1", "prototype", *beyond]
