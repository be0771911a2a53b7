"""Pydantic models of the configuration, with the type and range of each key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PureWindowsPath
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, Field

from klr_bench.config.splitting import MOST_ROWS, PartOfRows, Rows, SplitSpec, Stream
from klr_bench.files import expanded, is_encoding
from klr_bench.instantiate import TARGET
from klr_bench.parsing import DISTINCT, Brief, Check, Model, Text, Words, above, between, matching, non_empty

Kernel = Literal["rbf", "poly", "linear"]
KERNELS: tuple[str, ...] = get_args(Kernel)
MAX_SEED = 2**32 - 1
N_JOBS = {-1, *range(1, 1025)}
MOST_FEATURES = 100_000_000
"""Maximum number of features; a single wrong index must not fill the memory with arrays of that length."""
LEFT_TO_SELECTION = "cv"
"""Swept value that stands for selection from the grid."""
GAMMAS = (1e-70, 1e70)
"""Range of gamma, whose square root is then nonzero in float32."""
FILE = "file"
"""Format of a user's own file, which the section ``data`` describes."""


NO_TEXT = re.compile("[\0\ud800-\udfff]")
"""Characters of a path that YAML cannot represent: NUL and bytes that are not UTF-8."""


def _is_path(path: str) -> bool:
    return bool(path.strip()) and not NO_TEXT.search(path)


def _is_inside(name: str) -> bool:
    path = PureWindowsPath(name)  # which also finds the names that leave a folder on Linux
    return _is_path(name) and name.isprintable() and not path.anchor and ".." not in path.parts


def _is_shard(shard: str) -> bool:
    numbers = [int(number) for number in re.findall(r"\d+", shard)]
    return re.fullmatch(r"\d{1,9}/\d{1,9}", shard) is not None and 1 <= numbers[0] <= numbers[1]


def _is_plain(value: Any) -> bool:
    """Return True if a value can be a parameter: a scalar other than NaN, or a flat list."""
    if isinstance(value, list):
        return all(not isinstance(entry, list) and _is_plain(entry) for entry in value)
    return value is None or type(value) in (bool, int, str) or (type(value) is float and value == value)


def _expanded(path: str | None) -> str | None:
    return str(expanded(path)) if path and path.startswith("~") else path or None


Name = Annotated[str, matching("a name: letters, digits, and _ . + - after the first character", r"\w[\w.+-]{0,99}")]
Path = Annotated[str, Check("a path", _is_path)]
Folder = Annotated[str, Check("a folder", _is_path), AfterValidator(_expanded)]
OwnPath = Annotated[str | None, Check("a path", lambda path: not path or _is_path(path)), AfterValidator(_expanded)]
"""A path in which ~ is expanded; an empty path, such as an empty KLR_BENCH_MIRROR, counts as None."""
OwnFile = Annotated[OwnPath, Check("a path of printable characters (rename it)", lambda path: str(path).isprintable())]
InsideCache = Annotated[str, Check("a path inside the cache: use <data set>/<file>", _is_inside)]
Sha256 = Annotated[str, matching("64 hexadecimal digits, or unknown", r"[0-9a-f]{64}|unknown")]
Url = Annotated[str, matching("an http(s) address", r"https?://\S+"), Check("an http(s) address", str.isprintable)]
Address = Annotated[
    str, matching("the address of a scheduler, as in tcp://HOST:8786", r"([a-z]+://)?[^\s/:]+(:[^\s/:]+)*:\d{1,5}")
]
Encoding = Annotated[str, Check("an encoding that Python knows, such as cp1252 or latin-1", is_encoding)]
Features = Annotated[int, between(1, MOST_FEATURES)]
Bytes = Annotated[int, between(1, 2**62)]
Budget = Annotated[int, between(1, MOST_ROWS)]
Parameter = Annotated[Any, Check("a number, text, true, false, null, or a list of these", _is_plain)]
TARGET_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")
Call = Annotated[
    dict[str, Parameter],
    Check(
        f"{TARGET}: the dotted name of a function, and its parameters",
        lambda call: TARGET_NAME.fullmatch(str(call.get(TARGET))) is not None,
    ),
]
Columns = Annotated[dict[Text, Literal["number", "text", "date", "leave_out"] | list[Text]], DISTINCT]
"""Kinds of the columns of a user's table, or values in their order, keyed by name or 1-based position."""
Decimal = Literal["point", "comma"]
Sweep = dict[Name, dict[str, list[Parameter]]]
"""Values of swept parameters, keyed by algorithm."""


class DataConfig(Model):
    """Section ``data``: folders with data files, and a description of the user's own file."""

    mirror: OwnPath = None
    cache: OwnPath = None
    path: OwnFile = None
    test_path: OwnFile = None
    format: Literal["svmlight", "csv"] | None = None
    n_features: Features | None = None
    label: int | str | None = None
    positive: Text | None = None
    multiclass: bool | None = None
    test_size: PartOfRows | None = None
    scale: Literal["standard", "minmax", "none"] | None = None
    columns: Columns | None = None
    coerce: bool | None = None
    decimal: Decimal | None = None
    group: Text | None = None
    time: Text | None = None
    encoding: Encoding | None = None


class KernelConfig(Model):
    """Section ``kernel``: the kernel that all learners of a run share.

    `gamma` is used if `percentile` is None.
    """

    kernel: Kernel = "rbf"
    percentile: Annotated[float, Check("above 0, at most 100, or null", lambda p: 0 < p <= 100)] | None = 20.0
    multiple: Annotated[float, between(1e-9, 1e9)] = 1.0
    gamma: Annotated[float, between(*GAMMAS, ", or null")] | None = None
    degree: Annotated[float, Check("above 0, at most 1000", lambda degree: 0 < degree <= 1000)] = 3.0
    coef0: Annotated[float, between(-1e30, 1e30)] = 1.0


class SelectionConfig(Model):
    """Section ``selection``: cross-validation that selects the parameters of learners.

    It uses the training rows of each repeat or, if `nested` is False, the folds of the split.
    """

    folds: Annotated[int, between(2, 1000)] = 5
    max_examples: Rows | None = None
    score: Words = "accuracy"
    tolerance: Annotated[float, between(0, 1)] = 0.0
    nested: bool = True


class TraceConfig(Model):
    """Section ``trace``: the checkpoints at which metrics are recorded during a fit.

    `points` is the number of checkpoints per fit.  `rows` also stores the training rows of repeat 0.
    """

    points: Annotated[int, between(0, 10_000, ", 0 is none")] = 0
    spacing: Literal["even", "log"] = "even"
    rows: bool = False


class ParallelConfig(Model):
    """Section ``parallel``: whether fits run in joblib or dask workers or in this process.

    `backend` is the name of an executor, one of the modules in `klr_bench.runner.executors`.
    With `spare_threads`, the last cells of a run may use idle cores.  A dask cluster is given by its address or its
    scheduler file, or started as jobs of the queueing system `jobqueue`; else, one is started on this machine.
    """

    backend: str = "joblib"
    spare_threads: bool = False
    address: Address | None = None
    scheduler_file: Path | None = None
    jobqueue: Literal["slurm", "pbs", "sge", "lsf", "htcondor", "oar", "moab"] | None = None


class LabelsFile(Brief):
    """Separate file that holds the labels of the examples, for data in idx format."""

    name: InsideCache
    sha256: Sha256 = "unknown"
    url: Url | None = None
    max_bytes: Bytes | None = None
    megabytes: (
        Annotated[list[float], Check("two sizes: of the download, uncompressed", lambda mb: len(mb) == 2)] | None
    ) = None
    """Approximate sizes, which only `klr-bench list papers` and reports show."""


class FileEntry(LabelsFile):
    """Data file of a source, and its labels file if the labels are stored separately."""

    labels: LabelsFile | None = None


class SourceConfig(Brief):
    """Source of the rows of a data set: files, a generator function or the user's own file.

    `SOURCE_KEYS` lists the keys of each format.
    """

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
    coerce: bool | None = None
    decimal: Decimal | None = None
    encoding: Encoding | None = None

    @property
    def is_own_file(self) -> bool:
        """True if the source is a file that the user provides."""
        return self.format == FILE


_ALWAYS = ("format", "name", "reference", "n_features")
_FILES = (*_ALWAYS, "n_samples", "n_train", "train", "test")
_GENERATED = (*_ALWAYS, "n_samples", "n_train", "generator")
SOURCE_KEYS = {
    "csv": (*_FILES, "label_column", "encoding"),
    "svmlight": (*_FILES, "encoding"),
    "idx": _FILES,
    "generated": _GENERATED,
    "bundled": _GENERATED,
    "file": (*_ALWAYS, "path", "test_path", "file_format", "label_column", "columns", "coerce", "decimal", "encoding"),
}
"""Keys that have an effect, per format."""


class DatasetEntry(Model):
    """Description of a data set, as given by its YAML file and the experiment."""

    label: Words | None = None
    reference: Words = ""
    source: SourceConfig | Name | None = None
    parts: Annotated[list[Literal["train", "test"]], non_empty("train, test")] | None = None
    n_samples: Rows | None = None
    positive: Text | None = None
    multiclass: bool | None = None
    only: Annotated[list[Text], non_empty("the labels")] | None = None
    derive: Call | None = None
    scale: Literal["minmax", "standard", "auto"] | None = None
    split: Any = None
    seed_name: Words = ""
    """Text that becomes part of the seed of splits and learners."""


class DatasetConfig(DatasetEntry):
    """Complete description of a data set, with its source and split parsed."""

    label: Words = ""
    source: SourceConfig
    multiclass: bool = False
    split: SplitSpec

    @property
    def is_stream(self) -> bool:
        """True if the rows are read in chunks, each used for testing and then for training."""
        return isinstance(self.split, Stream)

    def files(self) -> list[FileEntry]:
        """Return the data files that this data set uses, for training, testing or both."""
        parts = {"train": self.source.train, "test": self.source.test}
        return [file for part, file in parts.items() if file and part in (self.parts or (part,))]

    def declared_rows(self) -> int | None:
        """Return the number of rows that the configuration declares, or None if it is unknown."""
        n_samples, n_train = self.source.n_samples, self.source.n_train
        if self.n_samples is not None or self.only or self.derive:
            return self.n_samples
        if not self.parts or len(set(self.parts)) == 2:
            return n_samples
        if n_train is None or n_samples is None:
            return None
        return n_train if self.parts == ["train"] else n_samples - n_train


class AlgorithmEntry(Model):
    """Description of a learner, as given by its YAML file and the experiment."""

    label: Words | None = None
    reference: Words = ""
    estimator: dict[str, Parameter] | None = None
    grid: dict[str, Any] | None = None
    selected_as: dict[str, Parameter] | None = None
    kernel_parameters: list[Literal["gamma", "degree", "coef0"]] | None = None
    """Parameters set by the run's kernel, for a class without a parameter `kernel`."""
    time_limit_s: Annotated[float, above(0, " seconds, or null")] | None = None


class AlgorithmConfig(AlgorithmEntry):
    """Complete description of a learner, with its label and grid of parameter values."""

    label: Words = ""
    estimator: dict[str, Parameter]
    grid: dict[str, list[Parameter]] = Field(default_factory=dict)
    selected_as: dict[str, Parameter] = Field(default_factory=dict)


class RunEntry(Model):
    """Configuration of a run as composed by Hydra, before its parts are parsed."""

    name: Name
    experiment: Words = ""
    title: Words = ""
    seed: Annotated[int, between(0, MAX_SEED)] = 0
    repeats: Annotated[int, between(1, 10_000)] = 5
    n_jobs: Annotated[int, Check("from 1 to 1024, or -1 or null for one per core", N_JOBS.__contains__)] | None = None
    shard: Annotated[str, Check("K/N with K from 1 to N, as in 1/4, or null for all cells", _is_shard)] | None = None
    force: bool = False
    results_dir: Folder = "results"
    data: DataConfig = DataConfig()
    kernel: KernelConfig = KernelConfig()
    selection: SelectionConfig = SelectionConfig()
    trace: TraceConfig = TraceConfig()
    parallel: ParallelConfig = ParallelConfig()
    left_out: dict[Name, dict[Name, dict[str, list[Parameter]]]] = Field(default_factory=dict)
    budget: list[Budget] | Words | Budget | None = None
    figures: list[Words] | None = None
    metrics: Annotated[list[Words], non_empty("the metrics, or null")] | None = None
    against: dict[str, dict[str, Parameter]] = Field(default_factory=dict)
    datasets: dict[Name, DatasetEntry] = Field(default_factory=dict)
    algorithms: dict[Name, AlgorithmEntry] = Field(default_factory=dict)
    sweep: dict[Name, dict[str, Any]] = Field(default_factory=dict)


class RunConfig(RunEntry):
    """Complete configuration of a run, with its data sets, learners and sweep parsed."""

    datasets: dict[Name, DatasetConfig] = Field(default_factory=dict)  # type: ignore[assignment]
    algorithms: dict[Name, AlgorithmConfig] = Field(default_factory=dict)  # type: ignore[assignment]
    sweep: Sweep = Field(default_factory=dict)

    def selected_grid(self, algorithm: str) -> dict[str, list[Any]]:
        """Return the values of each parameter that cross-validation selects for an algorithm."""
        swept, grid = self.sweep.get(algorithm, {}), self.algorithms[algorithm].grid
        return {
            name: values for name, values in grid.items() if LEFT_TO_SELECTION in swept.get(name, [LEFT_TO_SELECTION])
        }

    def leaves_out(self, dataset: str, algorithm: str, variant: Mapping[str, Any]) -> bool:
        """Return True if `left_out` excludes a method on a data set."""
        values = self.left_out.get(dataset, {}).get(algorithm)
        return values is not None and all(variant.get(name) in listed for name, listed in values.items())


def all_keys(cls: type[Model] = RunConfig, where: str = "") -> list[str]:
    """Return the dotted names of all configuration keys, such as kernel.gamma."""
    keys = []
    for name, field in cls.model_fields.items():
        inner: Any = field.annotation
        is_section = isinstance(inner, type) and issubclass(inner, Model)
        keys += all_keys(inner, f"{where}{name}.") if is_section else [f"{where}{name}"]
    return [key for key in keys if key != "experiment"]
