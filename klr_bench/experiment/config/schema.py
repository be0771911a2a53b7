"""The shape of a configuration, as dataclasses, and the reader that holds a composed one against it."""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from typing import Any, TypeVar

from klr_bench.errors import KlrBenchError, nearest
from klr_bench.experiment.measure.catalogue import METRICS, SCORES

T = TypeVar("T")

KERNELS = ("rbf", "poly", "linear")
BACKENDS = ("loky", "serial")
FIGURES = (
    *("accuracy_support", "accuracy_examples", "support_examples"),
    *("accuracy_support_curve", "accuracy_time", "objective_time", "gap_time", "nonzero_time", "log_loss_time"),
    *("sparsity_gamma", "lambda_panels", "log_loss_prototypes", "prototype_pictures"),
    *("accuracy_selected", "time_selected", "relevant_selected"),
)
"""Names of klr_bench.report.figures."""
SPACINGS = ("even", "log")
MAX_SEED = 2**32 - 1
LEFT_TO_SELECTION = "cv"
"""In a sweep: the value of this variant is chosen by cross-validation over the grid."""

TYPE_NAMES: dict[type, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    dict: "keys and values",
    list: "a list",
    type(None): "null",
}


@dataclass(frozen=True)
class DataConfig:
    """Where data comes from, and the user's own file (``dataset=file``)."""

    mirror: str | None = None
    cache: str | None = None
    path: str | None = None
    test_path: str | None = None
    format: str | None = None
    n_features: int | None = None
    label: int | str | None = None
    positive: str | None = None
    multiclass: bool | None = None
    test_size: float | None = None


@dataclass(frozen=True)
class KernelConfig:
    """The kernel that all learners of a run share; percentile null: gamma as given."""

    kernel: str = "rbf"
    percentile: float | None = 20.0
    multiple: float = 1.0
    gamma: float | None = None
    degree: float = 3.0
    coef0: float = 1.0


@dataclass(frozen=True)
class SelectionConfig:
    """Cross-validation on the training set."""

    folds: int = 5
    max_examples: int | None = None
    score: str = "accuracy"


@dataclass(frozen=True)
class TraceConfig:
    """Checkpoints of each fit; 0: no trace."""

    points: int = 0
    spacing: str = "even"


@dataclass(frozen=True)
class ParallelConfig:
    """Where the cells run: ``loky`` or ``serial``."""

    backend: str = "loky"


@dataclass(frozen=True)
class Config:
    """One run of one experiment, validated: the only thing that the runner reads."""

    name: str
    title: str = ""
    seed: int = 0
    repeats: int = 5
    n_jobs: int | None = None
    force: bool = False
    results_dir: str = "results"
    data: DataConfig = field(default_factory=DataConfig)
    kernel: dict[str, Any] = field(default_factory=lambda: asdict(KernelConfig()))
    selection: SelectionConfig = field(default_factory=SelectionConfig)
    trace: TraceConfig = field(default_factory=TraceConfig)
    parallel: ParallelConfig = field(default_factory=ParallelConfig)
    datasets: dict[str, dict[str, Any]] = field(default_factory=dict)
    algorithms: dict[str, dict[str, Any]] = field(default_factory=dict)
    sweep: dict[str, dict[str, list[Any]]] = field(default_factory=dict)
    budget: list[Any] | str | int | None = None
    figures: list[Any] | None = None
    published: dict[str, Any] | None = None
    metrics: list[str] | None = None
    against: dict[str, Any] = field(default_factory=dict)


def parse(cls: type[T], values: Mapping[str, Any], where: str = "") -> T:
    """Build a dataclass of this module from plain values; refuse unknown keys and values of another type."""
    hints = typing.get_type_hints(cls)
    refuse_unknown(values, hints, where)
    return cls(**{key: check_type(value, hints[key], where + key) for key, value in values.items()})


def refuse_unknown(given: Iterable[str], known: Iterable[str], where: str) -> None:
    """Refuse the first key that is not known, and name the nearest one; `where` ends in a dot or is empty."""
    known = list(known)
    for key in given:
        if key not in known:
            message = f"unknown key '{where}{key}'.{nearest(str(key), known)}"
            raise KlrBenchError(message)


def all_keys() -> list[str]:
    """Return the dotted names of all keys that the schema fixes."""
    return [*_key_names(Config, ""), *_key_names(KernelConfig, "kernel.")]


def _key_names(cls: type, where: str) -> list[str]:
    found = []
    for name, hint in typing.get_type_hints(cls).items():
        nested = is_dataclass(hint) and isinstance(hint, type)
        found += _key_names(hint, f"{where}{name}.") if nested else [where + name]
    return found


def check_type(value: Any, hint: Any, key: str) -> Any:
    """Return the value if it is of the type, else refuse it; a whole number is a number, a number text."""
    if is_dataclass(hint):
        return parse(typing.cast(type, hint), check_type(value, dict, key), f"{key}.")
    options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    kinds = [typing.get_origin(option) or option for option in options]
    for kind in kinds:
        if type(value) is kind:
            return value
    if float in kinds and type(value) is int:
        return float(value)
    if str in kinds and type(value) in (int, float):
        return str(value)
    expected = " or ".join(TYPE_NAMES[kind] for kind in kinds)
    message = f"{key}: expected {expected}, got {value!r}."
    raise KlrBenchError(message)


def check_ranges(config: Config) -> None:
    """Refuse values that make no sense for any data; an estimator checks its own parameters."""
    reported = list(METRICS)
    derived = [name for name, metric in METRICS.items() if metric.compares]

    kernel, data, jobs = config.kernel, config.data, config.n_jobs
    width, gamma = kernel["percentile"], kernel["gamma"]
    folds, points, size = config.selection.folds, config.trace.points, data.test_size
    checks: list[tuple[str, Any, bool, str]] = [
        ("name", config.name, re.fullmatch(r"\w[\w.+-]*", config.name) is not None, "the name of a folder"),
        ("seed", config.seed, 0 <= config.seed <= MAX_SEED, f"a whole number from 0 to {MAX_SEED}"),
        ("repeats", config.repeats, config.repeats >= 1, "at least 1"),
        ("n_jobs", jobs, jobs is None or jobs >= 1, "at least 1, or null for one a core"),
        ("results_dir", config.results_dir, bool(config.results_dir.strip()), "a folder"),
        ("selection.folds", folds, folds >= 2, "at least 2"),
        (
            "selection.max_examples",
            config.selection.max_examples,
            config.selection.max_examples is None or config.selection.max_examples >= 2 * folds,
            "at least two a fold, or null",
        ),
        ("trace.points", points, points >= 0, "at least 0, which is none"),
        ("kernel.percentile", width, width is None or 0 < width <= 100, "above 0, at most 100, or null"),
        ("kernel.multiple", kernel["multiple"], kernel["multiple"] > 0, "above 0"),
        ("kernel.gamma", gamma, gamma is None or gamma > 0, "above 0, or null"),
        ("kernel.degree", kernel["degree"], kernel["degree"] > 0, "above 0"),
        ("data.n_features", data.n_features, data.n_features is None or data.n_features >= 1, "at least 1"),
        ("data.test_size", size, size is None or 0 < size < 1, "above 0 and below 1"),
    ]
    for key, value, fits, expected in checks:
        if not fits:
            message = f"{key}: expected {expected}, got {value!r}."
            raise KlrBenchError(message)
    check_choice("kernel.kernel", kernel["kernel"], KERNELS)
    for name in config.figures or ():
        check_choice("figures", name, FIGURES)
    check_choice("selection.score", config.selection.score, SCORES)
    check_choice("trace.spacing", config.trace.spacing, SPACINGS)
    check_choice("parallel.backend", config.parallel.backend, BACKENDS)
    if config.metrics == []:
        message = f"metrics: expected some of {', '.join(reported)}, or null, got none."
        raise KlrBenchError(message)
    for metric in config.metrics or ():
        check_choice("metrics", metric, reported)
        if metric in derived and metric not in config.against:
            message = (
                f"metrics: {metric} compares two columns of the table; say which, as with against.{metric}="
                "{algorithm: NAME} or {PARAMETER: VALUE}."
            )
            raise KlrBenchError(message)
    for number, changes in config.against.items():
        check_choice("against", number, derived)
        check_type(changes, dict, f"against.{number}")
    if kernel["kernel"] == "rbf" and gamma is not None and width is not None:
        message = (
            f"kernel.gamma={gamma:g} and kernel.percentile={width:g} are both given; the percentile would "
            "decide the width. To use gamma, add kernel.percentile=null."
        )
        raise KlrBenchError(message)


def check_choice(key: str, value: str, known: Sequence[str]) -> None:
    """Refuse a value that is none of the known ones, and name the nearest."""
    if value not in known:
        message = f"{key}: unknown value {value!r}.{nearest(value, known)}"
        raise KlrBenchError(message)
