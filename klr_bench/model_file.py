"""Store fitted models in the skops format; loading such a file runs no code from the file."""

from __future__ import annotations

import json
import warnings
import zipfile
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from typing import Any

import skops.io

from klr_bench.datasets.user_table import TrainingFile
from klr_bench.errors import exception_text, fail, sanitize
from klr_bench.files import read_regular, write_atomic
from klr_bench.parsing import OpenModel, parse_value
from klr_bench.results.keys import PUBLIC
from klr_bench.version import __version__

LARGEST_MODEL = 4 * 10**9
"""Maximum size in bytes of a model file, compressed and uncompressed."""
ABOUT = "klr-bench.json"
"""Name of the member of a model file with versions and, from `klr-bench fit`, the columns of the training file."""
_PARTS = """
    datasets.column_kinds.Column
    datasets.preprocessing.Scaling
    estimators.batch.hindsight.BestInHindsight
    estimators.budget.merging.MergingState
    estimators.budget.oskl.FixedState
    estimators.budget.projecting.ProjectingState
    estimators.budget.projection.ProjectionState
    estimators.batch.scaling.Scaling
    estimators.core.bits.PackedRows
    estimators.core.bits.TwoValued
    estimators.core.features.FourierFeatures
    estimators.core.features.KernelFeatures
    estimators.core.features.LinearFeatures
    estimators.core.kernels.Kernel
    estimators.core.operands.Dense
    estimators.core.operands.Indexed
    estimators.core.operands.Packed
    estimators.core.rows.Growing
    estimators.core.rows.GrowingCSR
    estimators.core.rows.GrowingColumns
    estimators.features.base.Descent
    estimators.features.fogd.FourierState
    estimators.features.nogd.NystroemState
    estimators.linear.engine.Diagonal
    estimators.linear.engine.Full
    estimators.online.duol.DoubleState
    estimators.online.engine.OnlineState
    estimators.online.softmax.SoftmaxState
    estimators.online.strategies.StrategyState
    estimators.peers.boosting.GradientBoosting
    estimators.prototype.kernels.PrototypeKernel
    estimators.prototype.losses.Loss
    estimators.prototype.losses._hinge_constant
    estimators.prototype.losses._hinge_loss
    estimators.prototype.losses._hinge_slopes
    estimators.prototype.losses._log_constant
    estimators.prototype.losses._log_loss
    estimators.prototype.losses._log_slopes
    estimators.prototype.model.Layout
    estimators.prototype.model.Model
"""
TRUSTED = frozenset(
    {
        *(f"{module}.{name}" for name, module in PUBLIC.items() if name[0].isupper()),
        *(f"klr_bench.{name}" for name in _PARTS.split()),
        "numpy.dtype",
        "scipy.sparse._csr.csr_matrix",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    }
)
"""Types that a model file may contain, in addition to those of NumPy, SciPy and scikit-learn that skops trusts."""


class About(OpenModel):
    """Metadata in a model file: versions of libraries, and columns of the training file."""

    versions: dict[str, str]
    train: TrainingFile | None = None


def save_model(model: Any, path: str | Path) -> None:
    """Store a fitted model in a file that `load_model` can read.

    The file has the format of skops, and also contains the versions of klr-bench, scikit-learn and NumPy.  It appears
    at once: a reader never sees half of it.

    Parameters
    ----------
    model : estimator
        Classifier of klr-bench or scikit-learn, or a pipeline of such a classifier and transformers.
    path : str or Path
        File, which is replaced if it exists; its folder is created.

    Raises
    ------
    KlrBenchError
        If the model contains types that `load_model` refuses, or the file cannot be written.

    Examples
    --------
    >>> from klr_bench import OSKL, load_model, save_model
    >>> from tempfile import mkdtemp
    >>> path = f"{mkdtemp()}/levels.skops"
    >>> save_model(OSKL(random_state=0).fit([[0.0], [1.0], [2.0]], ["low", "low", "high"]), path)
    >>> load_model(path).predict([[2.1]]).tolist()
    ['high']
    """
    write_atomic(Path(path), dump(model))


def load_model(path: str | Path) -> Any:
    """Load a model from a file that `save_model` or ``klr-bench fit`` has written.

    No code in the file is run: types other than those of klr-bench, and of NumPy, SciPy and scikit-learn as far as
    skops trusts them, are refused.  A warning names versions that differ from those with which the file was written.

    Parameters
    ----------
    path : str or Path
        Model file.

    Returns
    -------
    model : estimator
        The fitted model.

    Raises
    ------
    KlrBenchError
        If the file contains other types, is damaged, or was written by a version whose models cannot be loaded.

    Examples
    --------
    >>> from klr_bench import OSKL, load_model, save_model
    >>> from tempfile import mkdtemp
    >>> path = f"{mkdtemp()}/levels.skops"
    >>> save_model(OSKL(random_state=0).fit([[0.0], [1.0], [2.0]], ["low", "low", "high"]), path)
    >>> load_model(path)
    OSKL(random_state=0)
    """
    return load(Path(path))[0]


def dump(model: Any, train: TrainingFile | None = None) -> bytes:
    """Convert a model to the content of a model file. Raises KlrBenchError if that fails.

    `train` describes the training file, for a model of ``klr-bench fit``.
    """
    try:
        content = BytesIO(skops.io.dumps(model, compression=zipfile.ZIP_DEFLATED))
        unknown = _untrusted(content.getvalue())
    except Exception as error:  # skops raises exceptions of many kinds
        fail(f"the model cannot be stored ({exception_text(error)}). Use joblib.dump, which stores any object.")
    if unknown:
        fail(
            f"the model cannot be stored: load_model would refuse {unknown}. Use joblib.dump, which stores any object."
        )
    with zipfile.ZipFile(content, "a") as archive:
        archive.writestr(ABOUT, About(versions=_versions(), train=train).model_dump_json())
    return content.getvalue()


def load(path: Path) -> tuple[Any, TrainingFile | None]:
    """Return the model in a file, and the description of its training file, if any.

    Raises the errors and warnings of `load_model`.
    """
    content = read_regular(path, LARGEST_MODEL)
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            size = sum(member.file_size for member in archive.infolist())
            about = parse_value(About, json.loads(archive.read(ABOUT)) if size <= LARGEST_MODEL else None, ABOUT)
        unknown = _untrusted(content)
    except Exception as error:  # damaged archives raise exceptions of many kinds
        reason = exception_text(error)
        fail(f"{path}: expected a model file of klr-bench fit or save_model; it cannot be read ({reason}).")
    if unknown:
        fail(f"{path}: contains {unknown}, which klr-bench does not load. Use a file that klr-bench fit has written.")
    here = _versions()
    different = [f"{name} {sanitize(one, 30)}" for name, one in about.versions.items() if here.get(name) != one]
    present = ", ".join(f"{name} {one}" for name, one in here.items())
    origin = f"it was written with {', '.join(different)}; this is {present}" if different else ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # scikit-learn's warning about its version
            model = skops.io.loads(content, trusted=sorted(TRUSTED))
    except Exception as error:
        advice = f"; {origin}. Fit the model again" if origin else ""
        fail(f"{path}: the model cannot be loaded ({exception_text(error)}){advice}.")
    if origin:
        warnings.warn(f"{path}: {origin}. Predictions may differ; fit the model again if in doubt.", stacklevel=3)
    return model, about.train


def _versions() -> dict[str, str]:
    return {"klr-bench": __version__, **{name: version(name) for name in ("scikit-learn", "numpy")}}


def _untrusted(content: bytes) -> str:
    """Return a description of the types in a model file that are not trusted, or ""."""
    names = sorted(set(skops.io.get_untrusted_types(data=content)) - TRUSTED)
    return f"the type{'s' * (len(names) > 1)} {sanitize(', '.join(names))}" if names else ""
