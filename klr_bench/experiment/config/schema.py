"""The shape of a configuration: every key of it, at every depth, with its type and its range."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, get_args

from klr_bench.errors import KlrBenchError
from klr_bench.experiment.config.splitting import MOST_ROWS, PartOfRows, Rows
from klr_bench.experiment.config.typed import Check, Text, Words, above, between, check_choice, hints_of, refuse, some
from klr_bench.experiment.measure.catalogue import METRICS, SCORES
from klr_bench.experiment.targets import TARGET

Kernel = Literal["rbf", "poly", "linear"]
Backend = Literal["joblib", "serial", "dask"]
KERNELS: tuple[str, ...] = get_args(Kernel)
BACKENDS: tuple[str, ...] = get_args(Backend)
MAX_SEED = 2**32 - 1
MOST_FEATURES = 100_000_000
"""More would fill the memory of a learner, which has arrays of as many; a single wrong index can ask for them."""
LEFT_TO_SELECTION = "cv"
"""In a sweep: the value of this variant is chosen by cross-validation over the grid."""
GAMMAS = (1e-70, 1e70)
"""The range of gamma; in float32 its square root is then a number other than 0."""
FILE = "file"
"""The format of a user's own file, of which the section ``data`` says more."""


def _is_name(text: str) -> bool:
    return re.fullmatch(r"\w[\w.+-]{0,99}", text) is not None


def _is_path(path: str) -> bool:
    return bool(path.strip()) and "\0" not in path


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return _is_path(name) and name.isprintable() and not path.is_absolute() and ".." not in path.parts


def _is_shard(shard: str) -> bool:
    numbers = [int(part) for part in shard.split("/") if part.isdecimal() and len(part) < 9]
    return shard.count("/") == len(numbers) - 1 == 1 and 1 <= numbers[0] <= numbers[1]


def _is_address(address: str) -> bool:
    return re.fullmatch(r"([a-z]+://)?[^\s/:]+(:[^\s/:]+)*:\d{1,5}", address) is not None


def _is_count(n_jobs: int) -> bool:
    return n_jobs == -1 or 1 <= n_jobs <= 1024


def _is_plain(value: Any) -> bool:
    """Say whether a value may be that of a parameter; whether it may be infinite depends on the parameter."""
    if isinstance(value, list):
        return all(not isinstance(entry, list) and _is_plain(entry) for entry in value)
    return value is None or type(value) in (bool, int, str) or (type(value) is float and value == value)


def _has_target(call: Mapping[str, Any]) -> bool:
    return re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)+", str(call.get(TARGET))) is not None


Name = Annotated[str, Check("a name: letters, digits, and _ . + - behind the first", _is_name)]
Path = Annotated[str, Check("a path", _is_path)]
Folder = Annotated[str, Check("a folder", _is_path)]
InsideCache = Annotated[str, Check("a path inside the cache: use <data set>/<file>", _is_inside)]
Sha256 = Annotated[
    str, Check("64 hexadecimal digits, or unknown", lambda text: bool(re.fullmatch(r"[0-9a-f]{64}|unknown", text)))
]
Url = Annotated[
    str, Check("an http(s) address", lambda url: bool(re.fullmatch(r"https?://\S+", url)) and url.isprintable())
]
Features = Annotated[int, between(1, MOST_FEATURES)]
Bytes = Annotated[int, between(1, 2**62)]
Budget = Annotated[int, between(1, MOST_ROWS)]
Parameter = Annotated[Any, Check("a number, text, true, false, null, or a list of these", _is_plain)]
Call = Annotated[
    dict[str, Parameter], Check(f"{TARGET}: the dotted name of a function, and its parameters", _has_target)
]


Columns = dict[Text, Literal["number", "text", "leave_out"]]
"""What columns of a user's table are, by their name, or their number from 1."""


@dataclass(frozen=True)
class DataConfig:
    """Where data comes from, and the user's own file (``dataset=file``)."""

    mirror: str | None = None
    cache: str | None = None
    path: str | None = None
    test_path: str | None = None
    format: Literal["svmlight", "csv"] | None = None
    n_features: Features | None = None
    label: int | str | None = None
    positive: Text | None = None
    multiclass: bool | None = None
    test_size: PartOfRows | None = None
    scale: Literal["standard", "minmax", "none"] | None = None
    columns: Columns | None = None


@dataclass(frozen=True)
class KernelConfig:
    """The kernel that all learners of a run share; percentile null: gamma as given."""

    kernel: Kernel = "rbf"
    percentile: Annotated[float, Check("above 0, at most 100, or null", lambda p: 0 < p <= 100)] | None = 20.0
    multiple: Annotated[float, between(1e-9, 1e9)] = 1.0
    gamma: Annotated[float, between(*GAMMAS, ", or null")] | None = None
    degree: Annotated[float, Check("above 0, at most 1000", lambda degree: 0 < degree <= 1000)] = 3.0
    coef0: Annotated[float, between(-1e30, 1e30)] = 1.0


@dataclass(frozen=True)
class SelectionConfig:
    """Cross-validation, on the training set of each repeat; not nested: over the folds of the split."""

    folds: Annotated[int, between(2, 1000)] = 5
    max_examples: Rows | None = None
    score: str = "accuracy"
    tolerance: Annotated[float, between(0, 1)] = 0.0
    nested: bool = True


@dataclass(frozen=True)
class TraceConfig:
    """Checkpoints of each fit, 0: none; `rows`: the training rows of repeat 0 are stored with the results."""

    points: Annotated[int, between(0, 10_000, ", 0 is none")] = 0
    spacing: Literal["even", "log"] = "even"
    rows: bool = False


@dataclass(frozen=True)
class ParallelConfig:
    """Where the cells run: in joblib's worker processes, in this process, or on the workers of a dask cluster.

    `spare_threads`: the last ones of a run may use the cores that are left.  A cluster has an address, or a file that
    its scheduler has written; with neither one is started on this machine.
    """

    backend: Backend = "joblib"
    spare_threads: bool = False
    address: Annotated[str, Check("the address of a scheduler, as in tcp://HOST:8786", _is_address)] | None = None
    scheduler_file: Path | None = None


@dataclass(frozen=True)
class Labels:
    """A file of labels, beside the one of examples (idx)."""

    name: InsideCache
    sha256: Sha256 = "unknown"
    url: Url | None = None
    max_bytes: Bytes | None = None


@dataclass(frozen=True)
class FileEntry(Labels):
    """A file of a source."""

    labels: Labels | None = None


@dataclass(frozen=True)
class SourceConfig:
    """Where the rows of a data set come from; which keys there are depends on the format: see `SOURCE_KEYS`."""

    format: Literal["csv", "svmlight", "idx", "generated", "bundled", "file"]
    name: Name | None = None
    reference: Words = ""
    n_samples: Rows | None = None
    n_features: Features | None = None
    n_train: Rows | None = None
    train: FileEntry | None = None
    test: FileEntry | None = None
    label_column: int | str | None = None
    generator: Call | None = None
    path: Path | None = None
    test_path: Path | None = None
    file_format: Literal["svmlight", "csv"] | None = None
    columns: Columns | None = None


_ALWAYS = ("format", "name", "reference", "n_features")
_FILES = (*_ALWAYS, "n_samples", "n_train", "train", "test")
_MADE = (*_ALWAYS, "n_samples", "n_train", "generator")
SOURCE_KEYS = {
    "csv": (*_FILES, "label_column"),
    "svmlight": _FILES,
    "idx": _FILES,
    "generated": _MADE,
    "bundled": _MADE,
    "file": (*_ALWAYS, "path", "test_path", "file_format", "label_column", "columns"),
}
"""The keys that have an effect, by format."""


@dataclass(frozen=True)
class DatasetConfig:
    """What is made of a source: its labels, which of its rows, scaled or not, and how they are split."""

    label: Words | None = None
    reference: Words = ""
    source: SourceConfig | Name | None = None
    parts: Annotated[list[Literal["train", "test"]], some("train, test")] | None = None
    n_samples: Rows | None = None
    positive: Text | None = None
    multiclass: bool | None = None
    only: Annotated[list[Text], some("the labels")] | None = None
    derive: Call | None = None
    scale: Literal["minmax", "standard", "auto"] | None = None
    split: Any = None  # see klr_bench.experiment.config.splitting


@dataclass(frozen=True)
class AlgorithmConfig:
    """An estimator, the values to choose from, and how long a fit may take."""

    label: Words | None = None
    reference: Words = ""
    estimator: dict[str, Parameter] | None = None
    grid: dict[str, Any] | None = None
    selected_as: dict[str, Parameter] | None = None
    kernel_parameters: list[Literal["gamma", "degree", "coef0"]] | None = None
    """Those that the run's kernel sets, of a class without a parameter `kernel`."""
    time_limit_s: Annotated[float, above(0, " seconds, or null")] | None = None


@dataclass(frozen=True)
class Config:
    """One run of one experiment, validated: the only thing that the runner reads."""

    name: Name
    experiment: str = ""
    title: Words = ""
    seed: Annotated[int, between(0, MAX_SEED)] = 0
    repeats: Annotated[int, between(1, 10_000)] = 5
    n_jobs: Annotated[int, Check("from 1 to 1024, or -1 or null for one a core", _is_count)] | None = None
    shard: Annotated[str, Check("K/N with K from 1 to N, as in 1/4, or null for all cells", _is_shard)] | None = None
    force: bool = False
    results_dir: Folder = "results"
    data: DataConfig = field(default_factory=DataConfig)
    kernel: KernelConfig = field(default_factory=KernelConfig)
    selection: SelectionConfig = field(default_factory=SelectionConfig)
    trace: TraceConfig = field(default_factory=TraceConfig)
    parallel: ParallelConfig = field(default_factory=ParallelConfig)
    datasets: dict[Name, dict[str, Any]] = field(default_factory=dict)
    algorithms: dict[Name, dict[str, Any]] = field(default_factory=dict)
    sweep: dict[Name, dict[str, Any]] = field(default_factory=dict)
    left_out: dict[Name, dict[Name, dict[str, list[Parameter]]]] = field(default_factory=dict)
    budget: list[Budget] | str | Budget | None = None
    figures: list[str] | None = None
    metrics: Annotated[list[str], some("the metrics, or null")] | None = None
    against: dict[str, dict[str, Parameter]] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """Return the configuration as plain values, for a manifest."""
        return asdict(self)


ENTRIES: dict[str, type] = {"datasets": DatasetConfig, "algorithms": AlgorithmConfig}
"""What stands under each name of a section."""


def all_keys() -> list[str]:
    """Return the dotted names of all keys of the root file."""
    return [key for key in _key_names(Config, "") if key != "experiment"]


def _key_names(cls: type, where: str) -> list[str]:
    found = []
    for name, hint in hints_of(cls).items():
        nested = is_dataclass(hint) and isinstance(hint, type)
        found += _key_names(hint, f"{where}{name}.") if nested else [where + name]
    return found


def check_together(config: Config, own_metrics: Iterable[str] = ()) -> None:
    """Refuse values that make no sense beside each other, whatever the data; an estimator checks its own parameters.

    `own_metrics` are the names of those of the user.
    """
    derived = [name for name, metric in METRICS.items() if metric.compares]

    kernel, selection = config.kernel, config.selection
    if config.parallel.address and config.parallel.scheduler_file:
        message = "parallel.address and parallel.scheduler_file are both given; each names a scheduler. Leave one out."
        raise KlrBenchError(message)
    if selection.max_examples is not None and selection.max_examples < 2 * selection.folds:
        refuse("selection.max_examples", "at least two per fold, or null", selection.max_examples)
    check_choice("selection.score", config.selection.score, [*SCORES, *own_metrics])
    for metric in config.metrics or ():
        check_choice("metrics", metric, [*METRICS, *own_metrics])
        if metric in derived and metric not in config.against:
            message = (
                f"metrics: {metric} compares two columns of the table; say which, as with against.{metric}="
                "{algorithm: NAME} or {PARAMETER: VALUE}."
            )
            raise KlrBenchError(message)
    for number in config.against:
        check_choice("against", number, derived)
    if kernel.kernel == "rbf" and kernel.gamma is not None and kernel.percentile is not None:
        message = (
            f"kernel.gamma={kernel.gamma:g} and kernel.percentile={kernel.percentile:g} are both given; the percentile "
            "would decide the width. To use gamma, add kernel.percentile=null."
        )
        raise KlrBenchError(message)
