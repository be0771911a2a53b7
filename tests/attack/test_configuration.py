"""Wrong values of all declared keys: each ends in one KlrBenchError that names the dotted key."""

import copy
import math
import sys
import types
import typing
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from klr_bench.cli import main
from klr_bench.config import locations as config_files
from klr_bench.config.datasets import read_dataset
from klr_bench.config.models import AlgorithmEntry, DatasetEntry, RunConfig
from klr_bench.config.resolve import resolve_run
from klr_bench.config.splitting import SPLITS
from klr_bench.datasets.generators import check_generator, check_generators, generate
from klr_bench.errors import KlrBenchError
from klr_bench.parsing import Model
from klr_bench.runner.validation import check_named
from tests.attack.promise import check_message, refused, rejected
from tests.config.composing import composed_values

pytestmark = pytest.mark.exhaustive
Key = tuple[str, ...]
VALUES: tuple[Any, ...] = (
    *(True, 7, -1, 10**30, 1.5, math.nan, math.inf, 10**400, "seven", "", [7], [], {"seven": 7}, {7: {}}, {"a b": 7}),
    None,
)
"""Values that no or few keys accept."""
FILE = {"name": "a/b", "sha256": "0" * 64, "url": "http://localhost/b"}


def base() -> dict[str, Any]:
    """Return plain values of a valid run with all sections and mappings."""
    plain = composed_values("experiment=quickstart", "algorithm=[nc,oskl]", "dataset=[magic]")
    labeled = FILE | {"labels": dict(FILE)}
    plain["datasets"]["drawn"] = {
        "label": "Drawn",
        "source": {"format": "idx", "train": labeled, "test": copy.deepcopy(labeled), "n_samples": 30},
        "positive": 3,
        "derive": {"_target_": "klr_bench.datasets.deformed.deformed", "n_samples": 10, "seed": 0},
        "split": {"n_test": 10},
    }
    return plain


BASE = base()


def declared_keys() -> dict[Key, Any]:
    """Return the types of all declared keys, at every depth, of a run, a data set, an algorithm and a split."""

    def keys(cls: type[Model], path: Key) -> Iterator[tuple[Key, Any]]:
        for name, field in cls.model_fields.items():
            yield (*path, name), field.annotation
            options = () if typing.get_origin(field.annotation) is dict else typing.get_args(field.annotation)
            for part in (field.annotation, *options):
                if isinstance(part, type) and issubclass(part, Model):
                    yield from keys(part, (*path, name))

    roots: list[tuple[type[Model], Key]] = [(RunConfig, ()), (DatasetEntry, ("datasets", "drawn"))]
    roots += [(AlgorithmEntry, ("algorithms", "nc")), *((spec, ("datasets", "drawn", "split")) for spec in SPLITS)]
    return {key: hint for cls, path in roots for key, hint in keys(cls, path)}


def is_number(hint: Any) -> bool:
    """Return True if a type has only numbers, and perhaps None."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return is_number(parts[0])
    if origin in (typing.Union, types.UnionType):
        return all(is_number(part) for part in parts if part is not type(None))
    return hint in (int, float)


KEYS = declared_keys()
DRAWN, NC = ("datasets", "drawn"), ("algorithms", "nc")
NOT_DATA = [
    {"_target_": target} for target in (5, "rm -rf", "klr_bench.cli.main", "klr_bench.datasets.synthetic.moonz")
]
NONSENSE: list[tuple[Key, list[Any]]] = [
    ((*DRAWN, "split"), [None, {}, 5, [], {"test_size": None}, {5: 1}]),
    ((*DRAWN, "split"), [{"runs": runs} for runs in ([], [[1]], [[0, 1], [5, 1]], [[9, 10**30]], [5])]),
    ((*DRAWN, "derive"), [{}, {"a": 1}, *NOT_DATA]),
    ((*DRAWN, "source"), ["minst", {}, {"format": "generated"}, {"format": "idx"}]),
    ((*DRAWN, "source", "train", "name"), ["/etc/passwd", "../a", "", "a\0b"]),
    ((*DRAWN, "source", "train", "sha256"), ["0" * 63, "known", ""]),
    ((*DRAWN, "source", "train", "url"), ["file:///etc", "ftp://a", "http://a b"]),
    ((*NC, "estimator", "eta"), [math.nan, math.inf, {}, [[1]], [math.inf]]),
    ((*NC, "estimator", "_target_"), [5, None, "os", "klr_bench.NC", "builtins.dict"]),
    ((*NC, "grid"), [5, [], {"etta": [1]}, {5: [1]}, {"eta": 5}, {"eta": [{}]}]),
    (("sweep", "oskl"), [5, [], {5: [1]}, {"GG": [1]}, {"G": 5}, {"G": [[[1]]]}, {"G": ["cv"]}]),
    (("against", "accuracy_gain"), [5, {}, {"GG": 1}, {"algorithm": 5}, {"algorithm": "nnc"}]),
    (("budget",), [0, -1, 2.5, [0], [2.5], [True], {}]),
    (("metrics",), [[], [5], ["acuracy"], "accuracy", {}]),
    (("name",), ["", "..", "a/b", ".hidden", "x" * 300]),
    (("results_dir",), ["", "  ", "a\0b"]),
    *((key, [{}]) for key in [("sweep", "osk1"), ("datasets", "minst"), ("algorithms", "osk1")]),
]


def attacked(key: Key, value: Any) -> dict[str, Any]:
    """Return the valid values with one invalid key."""
    plain = copy.deepcopy(BASE)
    place: Any = plain
    for name in key[:-1]:
        if not isinstance(place.get(name), dict):
            place[name] = {}
        place = place[name]
    if key[-2:-1] == ("split",):
        place.clear()
    place[key[-1]] = value
    return plain


def refusal(key: Key, value: Any) -> str | None:
    """Return the message about a value of a key, or None if it is accepted; the message names the key or its parent."""
    try:
        check_named(resolve_run(attacked(key, value), set(), config_files.folders()))
    except KlrBenchError as error:
        message = str(error)
        check_message(message)
        places = [".".join(key), ".".join(key[:-1]), ".".join(key[:2]), f"unknown {key[0][:-1]}", f"no {key[0][:-1]}"]
        assert any(place and place in message for place in places), message
        return message
    return None


def test_the_values_that_are_attacked_are_valid() -> None:
    assert refusal(("title",), "Mine") is None


@pytest.mark.parametrize("key", KEYS, ids=".".join)
def test_each_key_refuses_wrong_values_and_a_wrong_name(key: Key) -> None:
    accepted = [value for value in VALUES if not refusal(key, value)]
    assert len(accepted) <= len(VALUES) - 5
    if is_number(KEYS[key]):
        for value in accepted:
            assert value is None or (type(value) in (int, float) and abs(value) <= 10**30), value
    misspelt = refusal((*key[:-1], f"{key[-1]}x"), 7)
    assert misspelt
    assert f"unknown key '{'.'.join(key)}x'" in misspelt
    assert "Did you mean" in misspelt or "Known:" in misspelt


@pytest.mark.parametrize(("key", "values"), NONSENSE, ids=str)
def test_nonsense_is_refused(key: Key, values: list[Any]) -> None:
    for value in values:
        assert refusal(key, value), value


CONFIGS = [config_files.config_dir()]
GENERATED = {
    stem: dataset
    for stem in config_files.names("dataset", CONFIGS)
    if (dataset := read_dataset(stem, CONFIGS)).source.generator
}
BAD: list[Any] = ["abc", None, True, [5], math.nan, math.inf, -1e9, 1e30, 10**30]


@pytest.mark.parametrize("stem", GENERATED)
def test_each_parameter_of_a_generator_is_checked(stem: str) -> None:
    call = GENERATED[stem].source.generator or {}
    check = partial(check_generator, where="datasets.x.")
    for name in call.keys() - {"_target_"}:
        for value in BAD:
            rejected(partial(check, call | {name: value}), f"datasets.x.{name}: expected ")
        rejected(partial(check, call | {f"{name}x": 1}), f"unknown key 'datasets.x.{name}x'")


def test_shipped_data_sets_have_valid_generators_and_declare_their_sizes() -> None:
    for dataset in GENERATED.values():
        check_generators(dataset, "")
        source = dataset.source
        if source.format == "generated":
            other = source.model_copy(update={"n_samples": (source.n_samples or 0) + 1})
            changed = dataset.model_copy(update={"source": other})
            rejected(partial(check_generators, changed, "x."), "x.source.n_samples: expected the value of source.gen")


def test_a_data_set_of_the_user_is_read_strictly_and_its_module_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "my_rows.py").write_text("def two(n):\n    return n\n")
    path = tmp_path / "configs" / "dataset" / "trap.yaml"
    path.parent.mkdir(parents=True)
    header = "# @package datasets.trap\nsplit: {test_size: 0.5}\nsource: "
    path.write_text(f"{header}{{format: generated, n_samples: 3, generator: {{_target_: my_rows.two, n: 3}}}}\n")
    for command in ("list", "show dataset trap", "data list", "data info trap", "data fetch trap"):
        assert main(command.split()) == 0
        assert "trap" in capsys.readouterr().out
    assert "my_rows" not in sys.modules
    assert generate({"_target_": "my_rows.two", "n": 3}, "") == 3
    rejected(lambda: generate({"_target_": "my_rows.other", "n": 3}, ""), "my_rows.other")
    for source in ("5", "{format: csv, train: {name: ../x, sha256: unknown}}", "nothing"):
        path.write_text(f"{header}{source}\n")
        refused(capsys, ["data", "list"], f"{path}: ")


WITHOUT_EFFECT = {
    "trace: {points: 0, spacing: log}": "trace.spacing=log: has no effect, because trace.points=0",
    "n_jobs: 2": "n_jobs=2: has no effect",
    "budget: [5]": "budget=[5]: has no effect, because no learner of this run has a budget",
}


def test_a_key_of_a_file_without_effect_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("configs/experiment/mine.yaml")
    path.parent.mkdir(parents=True)
    base = "[quickstart, override /parallel: serial, override /algorithm: [nc], _self_]"
    for lines, named in WITHOUT_EFFECT.items():
        path.write_text(f"# @package _global_\ndefaults: {base}\nsweep: null\n{lines}\n")
        refused(capsys, ["run", "--dry-run", "experiment=mine"], named)
