"""Show how to fit the best method of a comparison to all rows of the user's file."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from klr_bench.config import locations as config_files
from klr_bench.config.datasets import name_or_position
from klr_bench.config.models import DataConfig
from klr_bench.errors import KlrBenchError
from klr_bench.instantiate import TARGET, Parameters, classifier_class, parameters
from klr_bench.metrics.metric import Metric
from klr_bench.printing import quote
from klr_bench.protocols import takes_groups
from klr_bench.report.labels import join_names, line_label
from klr_bench.report.manifest import Manifest
from klr_bench.report.measured import MeasuredDataset, Method
from klr_bench.report.significance import is_constant, is_marked
from klr_bench.report.statistics.across import DIGITS

STORABLE = ("klr_bench.", "sklearn.")
"""Beginnings of the names of classes whose models `klr-bench fit` can store."""
FIT_KEYS = ("path", "label", "columns", "coerce", "decimal", "scale", "positive", "encoding", "group", "time")
"""Keys of the section ``data`` that describe a file to `klr-bench fit`."""
PARSED = ("columns", "coerce", "scale")
"""Those whose values Hydra reads."""
PLAIN = re.compile(r"[\w.-]+( [\w.-]+)*", re.ASCII)
"""Texts that need no quotes in Hydra's grammar, unless they are constants."""
CONSTANT = re.compile(r"null|true|false|[-+]?(inf|nan|[\d_]*\.?[\d_]+\.?(e[-+]?\d+)?)", re.IGNORECASE)
"""Texts that Hydra reads as a number, null or a truth value."""
KEY = re.compile(r"[\w\\()\[\]{}:=,/+.$%*@?|-]+( [\w\\()\[\]{}:=,/+.$%*@?|-]+)*", re.ASCII)
"""Keys of a mapping that can be written in Hydra's grammar, which has no quotes there."""
NO_LABEL = ["", "#n/a", "<na>", "?", "n/a", "na", "nan", "null"]
"""Labels, in lower case, that `klr-bench fit` takes for missing ones."""
SCALE = " scale"
"""End of a gamma that is a multiple of scikit-learn's "scale" (see `klr_bench.runner.bandwidth`)."""


@dataclass(frozen=True)
class Code:
    """A command (`language` "sh") or Python code ("python"), with a sentence about it."""

    sentence: str
    language: str
    text: str


def best_model(manifest: Manifest, datasets: Sequence[MeasuredDataset]) -> list[Code]:
    """Return a command and Python code that fit the best method to all rows of the user's file.

    The best method has the best mean of the score by which parameters were selected or, if no method has this score, of
    the first metric of the table.  As in the table, methods without a successful repeat and constant predictors do not
    count.  The parameters are those that most repeats chose.  The list is empty if the data are not a CSV file of the
    user, or if a model of the class cannot be stored.
    """
    data, shown = manifest.config.data, manifest.config.metrics or ()
    if len(datasets) != 1 or data.path is None or data.format == "svmlight":
        return []
    (dataset,), metrics = datasets, manifest.metrics
    names = [name for name in (manifest.config.selection.score, *shown) if name in metrics]
    best = {name: methods for name in names if (methods := _best(dataset, metrics[name]))}
    if not best:
        return []
    score, (method, *_) = next(iter(best.items()))
    in_table = next((name for name in shown if name in best), score)
    name = method.algorithm
    try:
        spec = config_files.read(config_files.find("algorithm", name, config_files.folders()))["estimator"]
        accepted = parameters(spec[TARGET]) if spec[TARGET].startswith(STORABLE) else None
    except KlrBenchError:
        return []
    if accepted is None:
        return []
    fitted = [row["params"] for row in dataset.groups[method.column] if row["status"] == "ok"]
    chosen = Counter(json.dumps(params, sort_keys=True) for params in fitted)
    merged = json.loads(chosen.most_common(1)[0][0]) | dict(method.variant)
    accepted_values = {key: value for key, value in merged.items() if key in accepted}
    changed = {
        f"algorithms.{name}.estimator.{key}": entry for key, entry in accepted_values.items() if spec.get(key) != entry
    }
    given = {key: value for key in FIT_KEYS if (value := getattr(data, key)) is not None}
    settings = {f"data.{key}": _hydra(value) if key in PARSED else str(value) for key, value in given.items()}
    settings |= {"algorithm": name} | {key: _hydra(value) for key, value in changed.items()}
    words = [f"{key}={text}" for key, text in settings.items()]
    seed = {"random_state": 0} if "random_state" in accepted else {}
    arguments = {key: entry for key, entry in (spec | accepted_values).items() if key != TARGET} | seed
    label = line_label(method)
    sentence, named = f"{label} has the best {metrics[score].title.lower()}.", "it"
    if method not in best[in_table]:
        named = label
        sentence = (
            f"{label} has the best {metrics[score].title.lower()}, by which settings are selected; the best "
            f"{metrics[in_table].title.lower()} is that of {join_names([*map(line_label, best[in_table])])}."
        )
    python = _python(data, spec[TARGET], arguments)
    without = ", without the order of time" if data.time else ""
    if not all(KEY.fullmatch(str(key)) for key in data.columns or {}):
        return [Code(f"{sentence} This code fits {named} to all rows{without}:", "python", python)]
    command = shlex.join(["klr-bench", "fit", *words, "output=model.skops"])
    in_python = f"In Python{without}:" if without else "The same in Python:"
    return [
        Code(f"{sentence} This command fits {named} to all rows:", "sh", command),
        Code(in_python, "python", python),
    ]


def _best(dataset: MeasuredDataset, metric: Metric) -> list[Method]:
    """Return the methods that the table marks as the best, also if there is only one."""
    sign = 1 if metric.better == "lower" else -1
    means = {
        method.column: round(sign * mean, DIGITS)
        for method in dataset.methods
        if is_marked(metric) and method.n_ok and not is_constant(dataset.groups[method.column])
        if (mean := method.entries[metric.name].mean) is not None
    }
    best = min(means.values(), default=None)
    return [method for method in dataset.methods if method.column in means and means[method.column] == best]


def _hydra(value: Any) -> str:
    """Format a value for Hydra's command-line grammar."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_key(key)}: {_hydra(entry)}' for key, entry in value.items())}}}"
    if isinstance(value, list):
        return f"[{','.join(map(_hydra, value))}]"
    if isinstance(value, bool) or value is None:  # 1 == True, also as a key
        return {True: "true", False: "false", None: "null"}[value]
    is_plain = PLAIN.fullmatch(str(value)) and not CONSTANT.fullmatch(str(value))
    return quote(value) if isinstance(value, str) and not is_plain else str(value)


def _key(name: Any) -> str:
    """Format a key of a mapping that matches KEY for Hydra's grammar."""
    return re.sub(r"[\\()\[\]{}:=,]", r"\\\g<0>", str(name))


def _python(data: DataConfig, target: str, arguments: Parameters) -> str:
    module, _, name = target.rpartition(".")
    names = ["TablePreparer", name] if module == "klr_bench" else ["TablePreparer"]
    imports = [f"from klr_bench import {', '.join(sorted(names))}"]
    imports += [f"from {module} import {name}"] * (module != "klr_bench")
    options: dict[str, Any] = {"coerce": True} if data.coerce else {}
    options |= {"decimal": ","} if data.decimal == "comma" else {}
    options |= {"scale": None if data.scale == "none" else data.scale} if data.scale else {}
    encoding = f", encoding={_quoted(data.encoding)}" if data.encoding else ""
    gamma = arguments.get("gamma")
    texts = {key: repr(value) for key, value in arguments.items()}
    if isinstance(gamma, str) and gamma.endswith(SCALE):
        texts["gamma"] = f"{gamma.removesuffix(SCALE)} / (X.shape[1] * X.var(dtype=float))"
    reading = f'pd.read_csv({_quoted(data.path)}, sep=None, engine="python"{encoding}'

    def column(by: str | int) -> str:
        place = name_or_position(by)
        return f"{reading}, nrows=0).columns[{place - (place > 0)}]" if isinstance(place, int) else _quoted(place)

    by = data.group or data.time
    kinds = {column(key): repr(kind) for key, kind in (data.columns or {}).items()}
    kinds |= {column(by): "'leave_out'"} if by else {}
    columns = f"columns={{{', '.join(f'{key}: {kind}' for key, kind in kinds.items())}}}"
    preparing = ", ".join([columns] * bool(kinds) + [f"{key}={value!r}" for key, value in options.items()])
    groups = f", groups=table[{column(data.group)}]" if data.group else ""
    of_fit = groups if takes_groups(classifier_class(target)) else ""
    return "\n".join(
        [
            "import pandas as pd",
            "from sklearn.pipeline import make_pipeline",
            "",
            *sorted(imports),
            "",
            f"label = {column(-1 if data.label is None else data.label)}",
            f"table = {reading}, converters={{label: str.strip}})",
            f"table = table[~table[label].str.lower().isin({json.dumps(NO_LABEL)})]",
            "y = table.pop(label)" + (f" == {_quoted(data.positive)}" if data.positive is not None else ""),
            f"preparer = TablePreparer({preparing})",
            f"X = preparer.fit_transform(table, y{groups})",
            f"classifier = {name}({', '.join(f'{key}={text}' for key, text in texts.items())}).fit(X, y{of_fit})",
            "model = make_pipeline(preparer, classifier)",
        ]
    )


def _quoted(text: Any) -> str:
    return json.dumps(str(text), ensure_ascii=False)
