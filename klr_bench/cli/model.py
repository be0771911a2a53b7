"""Commands ``klr-bench fit`` and ``klr-bench predict`` for the user's own files."""

from __future__ import annotations

import math
import os
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from klr_bench.cli.arguments import items, split_keys
from klr_bench.cli.outputs import check_model, check_table, write_table
from klr_bench.config import locations as config_files
from klr_bench.config.datasets import check_pairs, label_column
from klr_bench.config.models import MAX_SEED, AlgorithmConfig, AlgorithmEntry, Call, DataConfig
from klr_bench.config.presentation import without_presentation
from klr_bench.errors import KlrBenchError, error_context, exception_message, exception_text, fail, nearest, sanitize
from klr_bench.files import check_writable, expanded, is_one_of, no_file, write_atomic
from klr_bench.instantiate import import_from_here
from klr_bench.parsing import between, parse, parse_value
from klr_bench.printing import print_line, warn, warning_lines

if TYPE_CHECKING:
    from klr_bench.datasets.table_preparer import TablePreparer

FIT_KEYS = (
    *("data.path", "data.label", "data.positive", "data.columns", "data.coerce", "data.decimal", "data.scale"),
    *("data.group", "data.time", "data.encoding", "output", "algorithm", "seed"),
)
PREDICT_KEYS = ("model", "data.path", "data.encoding", "keep", "output")
Seed = Annotated[int, between(0, MAX_SEED)]
LITERAL = (
    *("data.path", "data.label", "data.positive", "data.decimal", "data.group", "data.time", "data.encoding"),
    *("output", "algorithm"),
)
"""Keys whose values are taken literally; the others are parsed by Hydra, as those of a run."""


def fit(arguments: Sequence[str]) -> int:
    """Fit a classifier to the user's own file, store the pipeline, and return the exit status."""
    parameters = [word.partition("=")[0] for word in arguments if word.startswith("algorithms.")]
    values = _values("fit", arguments, [*FIT_KEYS, *parameters], "data.path=train.csv output=model.skops")
    settings = {key: text if key in LITERAL else parsed(key, text) for key, text in values.items()}
    described = {key.removeprefix("data."): settings[key] for key in settings if key.startswith("data.")}
    data = parse(DataConfig, described, "data.")
    check_pairs(data)
    seed = parse_value(Seed, settings.get("seed", 0), "seed")
    import_from_here()
    name = values.get("algorithm", "klr")
    algorithm = read_algorithm(name, {key: settings[key] for key in parameters})
    estimator = algorithm.estimator
    path, output = _paths(values)
    check_model(output)
    from sklearn.pipeline import make_pipeline

    from klr_bench import model_file
    from klr_bench.cli.losses import validation_losses
    from klr_bench.datasets.column_notes import describe
    from klr_bench.datasets.readers.user_table import SOURCE, frame_groups, read_frame, take_labels
    from klr_bench.protocols import takes_groups
    from klr_bench.report.labels import pluralize
    from klr_bench.runner.bandwidth import resolve_gamma, substitute_gamma
    from klr_bench.runner.grouped import with_groups
    from klr_bench.runner.plan import check_candidates
    from klr_bench.runner.selection import make

    check_candidates(name, [estimator], construct=True)
    frame, train = read_frame(path, label_column(data), encoding=data.encoding)
    table, y, notes = take_labels(frame, train.label, data.positive)
    notes[1] += "" if train.has_header else " (no header)"
    decimal = "," if data.decimal == "comma" else "."
    by, groups = frame_groups(table, data.group, data.time, decimal)
    preparer = _preparer(data, decimal, by)
    with error_context(f"algorithm={name}"):
        model_file.check_storable(make(substitute_gamma(estimator), {}, seed))
    with _warning_lines():
        X = preparer.fit_transform(table, y, groups)
        model_file.dump(preparer)  # refuse a table with too many columns before a long fit
        header = table.attrs[SOURCE][1].header
        columns = [replace(column, place=header.index(column.name)) for column in preparer.columns_]  # of the file
        for number, note in enumerate([*notes, *describe(path, columns)]):
            if note.startswith("warning: "):
                warn(note)
            else:
                print_line(f"  {note}" if number else note)
        classifier = make(resolve_gamma(estimator, X), {}, seed)
        begun = time.perf_counter()
        classifier, options = with_groups(classifier, y, groups, is_later=data.time is not None)
        try:
            classifier.fit(X, y, **options)
        except (KlrBenchError, ImportError, MemoryError, OSError, ValueError):
            raise
        except (Exception, SystemExit) as error:
            fail(f"algorithm={name}: fit raised {exception_message(error)}")
        seconds = time.perf_counter() - begun
    folds = {"cv": classifier.cv} if data.time is not None and takes_groups(classifier) else {}
    classifier.set_params(**dict.fromkeys(folds))  # the folds are not part of the model
    content = model_file.dump(make_pipeline(preparer, classifier), train)
    write_atomic(output, content)
    classifier.set_params(**folds)
    with _warning_lines():
        losses = validation_losses(classifier, X, y, groups)
    score = getattr(classifier, "best_score_", math.nan)
    loss = "" if losses or math.isnan(score) else f"; validation log loss {-score:.4f}"
    size = f"{pluralize(len(y), 'row')} and {pluralize(X.shape[1], 'feature')}"
    print_line(f"{algorithm.label}: fitted to {size} in {seconds:.1f} s{loss}")
    if losses:
        print_line(losses)
    print_line(f"{output}: {len(content) / 1000:,.0f} kB")
    print_line(f"Next: klr-bench predict model={shlex.quote(str(output))} data.path=NEW.csv output=predictions.csv")
    return 0


def predict(arguments: Sequence[str]) -> int:
    """Write the predictions of a stored model for the rows of a file; return the exit status."""
    example = "model=model.skops data.path=new.csv output=predictions.csv"
    values = _values("predict", arguments, PREDICT_KEYS, example)
    path, output = _paths(values)
    check_table(output)
    encoding = parse(DataConfig, {"encoding": values.get("data.encoding")}, "data.").encoding
    stored = expanded(values["model"])
    if fault := no_file(stored):
        fail(f"model: {sanitize(stored, 1000)} {fault}; expected a model file of klr-bench fit.")

    from klr_bench import model_file
    from klr_bench.datasets.readers.user_table import read_frame
    from klr_bench.report.labels import pluralize

    with _warning_lines():
        model, train = model_file.load(stored)
        if train is None:
            fail(f"{stored}: expected a file from klr-bench fit; load this {type(model).__name__} with load_model.")
        frame, _ = read_frame(path, train=train, encoding=encoding)
        table = frame.drop(columns=train.label, errors="ignore")
        try:
            predictions = _kept(frame, values.get("keep"), path)
            names = [f"probability_{name}" for name in model.classes_] if hasattr(model, "predict_proba") else []
            for name in predictions.columns.intersection(["prediction", *names]):
                fail(f"keep: {sanitize(repr(name))} is also a column of the predictions; rename it in {path}.")
            predictions["prediction"] = model.predict(table)
            if names:
                predictions[names] = model.predict_proba(table)
        except (AttributeError, TypeError, LookupError, ArithmeticError) as error:  # errors of unfitted models
            fail(f"{stored}: the model cannot predict ({exception_text(error)}); fit it again.")
    write_table(predictions, output)
    counts = predictions["prediction"].value_counts(sort=False).sort_index()
    listed = ", ".join(f"{name} ({n:,})" for name, n in counts.items())
    print_line(f"{output}: {pluralize(len(table), 'row')}, predicted as {listed}")
    return 0


def _preparer(data: DataConfig, decimal: str, by: str | None) -> TablePreparer:
    """Return an unfitted `TablePreparer` that leaves out the column `by` of groups or times."""
    from klr_bench.datasets.column import LEAVE_OUT
    from klr_bench.datasets.column_kinds import Request
    from klr_bench.datasets.table_preparer import TablePreparer

    columns: dict[str | int, Request] = dict((data.columns or {}).items())
    if by is not None:
        columns[by] = LEAVE_OUT
    return TablePreparer(
        columns,
        coerce=bool(data.coerce),
        decimal=decimal,
        scale={None: "auto", "none": None}.get(data.scale, data.scale),
    )


def _kept(frame: Any, keep: str | None, path: Path) -> Any:
    """Return the columns of new rows to copy to the predictions, such as identifiers."""
    names = [] if not keep else [keep] if keep in frame.columns else items("keep", keep)
    for name in names:
        if name not in frame.columns:
            fail(f"keep: {path} has no column {sanitize(repr(name))} to keep.{nearest(name, frame.columns)}")
    return frame[names].reset_index(drop=True)


def _values(verb: str, arguments: Sequence[str], keys: Sequence[str], example: str) -> dict[str, str]:
    """Return the keys and values in `arguments`; the keys that occur in `example` are required."""
    words, values = split_keys(arguments, keys)
    missing = [word for word in example.split() if word.partition("=")[0] not in values]
    if words or missing:
        got = f"got {sanitize(words[0])!r}" if words else "got none"
        expected = missing[0].partition("=")[0] + "=..." if missing else "key=value"
        fail(f"{verb}: expected {expected}, {got}. Try klr-bench {verb} {example}")
    return values


def parsed(key: str, text: str) -> Any:
    """Return the value of an argument in Hydra's grammar.  Raises KlrBenchError."""
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import OverrideParseException

    try:
        (override,) = OverridesParser.create().parse_overrides([f"{key}={text}"])
    except OverrideParseException:
        fail(f"{key}: cannot read {sanitize(text)!r}. Quote special characters: {key}=\"'value'\"")
    if override.is_sweep_override():
        fail(f"{key}: expected one value, got {sanitize(text)!r}.")
    return override.value()


def read_algorithm(name: str, parameters: Mapping[str, Any]) -> AlgorithmConfig:
    """Return an algorithm with the `parameters` of the command line, keyed by dotted name."""
    from klr_bench.config.resolve import resolve_algorithms

    searched = config_files.folders()
    config_files.check_own(searched)
    file = config_files.find("algorithm", name, searched)
    content = without_presentation(config_files.read(file), f"algorithms.{name}.")
    prefix = f"algorithms.{name}.estimator."
    if others := [key for key in parameters if not key.startswith(prefix)]:
        fail(f"unknown key {others[0]!r}. Parameters of this estimator are set by {prefix}NAME=VALUE.")
    changes = {key.removeprefix(prefix): value for key, value in parameters.items()}
    estimator = parse_value(Call, content.get("estimator"), prefix.rstrip(".")) | changes
    entry = parse(AlgorithmEntry, content | {"estimator": estimator}, f"algorithms.{name}.")
    return resolve_algorithms({name: entry}, list(parameters), searched)[name]


def _paths(values: Mapping[str, str]) -> tuple[Path, Path]:
    """Return the paths of the data file and of the output file, which may be replaced."""
    path, output = expanded(values["data.path"]).absolute(), expanded(values["output"])
    if os.path.exists(output):
        is_read = is_one_of(output, [path, expanded(values.get("model", ""))])
        if fault := no_file(output) or ("is the file that is read" if is_read else None):
            fail(f"output={output}: expected the name of a file to write, got {fault.removeprefix('is ')}.")
    check_writable(output)
    return path, output


@contextmanager
def _warning_lines() -> Iterator[None]:
    """Print Python warnings as lines; convert the error of a missing library to KlrBenchError."""
    try:
        with warning_lines():
            yield
    except ImportError as error:
        fail(str(error))
