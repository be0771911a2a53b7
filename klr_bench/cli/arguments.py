"""Parsing of command-line arguments: words, flags and key=value pairs."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from klr_bench.errors import fail, nearest
from klr_bench.files import expanded
from klr_bench.printing import quote

OWN_FLAGS = ("--debug", "--quiet", "--dry-run", "--verbose", "--pdb")
OWN_KEYS = ("paper", "watch")
"""Keys of klr-bench that are not part of the configuration."""
HYDRA_FLAGS = (
    *("--cfg", "--config-dir", "--hydra-help", "--info", "--multirun", "--package", "--resolve", "--run"),
    *("--shell-completion", "--version"),
)
"""Hydra's flags, except those that change the root file configs/config.yaml."""
VALUED_FLAGS = ("--cfg", "--config-dir", "--info", "--package", "-c", "-cd", "-i", "-p")
SHORT_FLAGS = ("-c", "-cd", "-i", "-m", "-p", "-r", "-sc")
LONGEST_NAME = 100
"""Maximum number of characters of the name of a run."""
AROUND = " '\"[](){}"
"""Characters around a value that are omitted from the name of a run."""
LITERAL_KEYS = (
    *("data.mirror", "data.cache", "data.path", "data.test_path", "data.label", "data.positive", "data.group"),
    *("data.time", "results_dir", "hydra.sweep.dir", "hydra.run.dir"),
)
TEXT_KEYS = ("data.label", "data.positive", "data.group", "data.time", "keep")
"""Keys whose values are no paths, also if they begin with ~."""
LITERAL = re.compile(rf"(\+{{0,2}}(?:{'|'.join(map(re.escape, LITERAL_KEYS))}))=(.*)", re.DOTALL)
"""Values that are taken literally; Hydra's lexer accepts blanks, commas, ~ and ? only in quotes."""
OPEN_KEY = re.compile(r"(?:(?:algorithms|datasets|sweep|against)\.[^=]+|sweep|against)=")
"""Keys that may be set even if no YAML file lists them; the configuration rejects unknown ones."""
NO_NAME = re.compile(
    r"\+{0,2}(experiment|dataset|algorithm|parallel)=\s*"
    r"(null|\S+\.yaml|(?:.*[^$])?\{.*|.*\[\s*\[.*|\[(?:.*,)?\s*(?:null|\d+)\s*(?:,.*)?\])?\s*",
    re.IGNORECASE,
)
"""Selected files that are not names, such as nothing, null, a path, {nc: 1}, [[nc]] or [5]."""


@dataclass(frozen=True)
class Arguments:
    """Arguments of ``klr-bench run``: those passed to Hydra, and klr-bench's own."""

    hydra: list[str]
    quiet: bool
    dry_run: bool
    verbose: bool
    watch: bool
    pdb: bool
    """Run in this process, and open the debugger where a fit fails."""
    paper: str
    """Name of a paper whose experiments are run, or ""."""


def prepare(arguments: Sequence[str]) -> Arguments:
    """Separate klr-bench's own flags and keys from the arguments that Hydra receives."""
    words = [_whole_flag(argument) if argument.startswith("-") else argument for argument in arguments]
    watch, words = _taken_out("watch", words)
    paper, words = _taken_out("paper", words)
    if paper is not None:
        words = _with_experiments(paper, words)
    rest = [_rewrite(word) for word in words if word not in OWN_FLAGS]
    pairs = sorted(pairwise(["", *rest]), key=lambda pair: _is_override(*pair))
    rest = [word for _, word in pairs]  # Hydra does not accept key=value pairs both before and after a flag
    dry_run = "--dry-run" in words
    verbose = "--verbose" in words
    quiet = "--quiet" in words or (dry_run and bool(paper) and not verbose)  # a paper has many experiments
    in_page = is_true("watch", {"watch": watch} if watch is not None else {})
    return Arguments(
        rest, quiet=quiet, dry_run=dry_run, verbose=verbose, watch=in_page, pdb="--pdb" in words, paper=paper or ""
    )


def _whole_flag(argument: str) -> str:
    """Expand an abbreviated flag to its full name, such as --dry to --dry-run.

    Raises KlrBenchError if the flag is unknown or ambiguous.
    """
    flag, equals, value = argument.partition("=")
    if flag in SHORT_FLAGS and not equals:
        return flag
    flags = OWN_FLAGS + HYDRA_FLAGS
    meant = [flag] if flag in flags else [name for name in flags if name.startswith(flag)]
    if not flag.startswith("--") or len(meant) != 1:
        fail(f"unknown flag {flag!r}.{nearest(flag, flags)}")
    return meant[0] + equals + value


def _taken_out(key: str, words: Sequence[str]) -> tuple[str | None, list[str]]:
    """Return the value of a key in `words` (None if missing), and the words without this key."""
    values = [word.partition("=")[2] for word in words if word.startswith(f"{key}=")]
    if len(values) > 1:
        fail(f"{key}: expected one value, got {values[0]!r} and {values[1]!r}.")
    return values[0] if values else None, [word for word in words if not word.startswith(f"{key}=")]


def _with_experiments(paper: str, words: Sequence[str]) -> list[str]:
    """Return the arguments in `words`, with an added sweep over all experiments of a paper."""
    from klr_bench.report.papers.reading import experiments_of

    chosen = next((word for word in words if word.startswith("experiment=")), None)
    if chosen:
        fail(f"paper={paper} and {chosen} are both given; leave one of them out.")
    many = [] if {"-m", "--multirun"} & set(words) else ["--multirun"]
    return [*many, *words, f"experiment={','.join(experiments_of(paper))}"]


def _is_override(previous: str, argument: str) -> bool:
    return not argument.startswith("-") and ("=" in argument or previous not in VALUED_FLAGS)


def _rewrite(argument: str) -> str:
    literal = LITERAL.fullmatch(argument)
    if literal:
        key, value = literal.groups()
        quoted = len(value) >= 2 and value[0] == value[-1] and value[0] in "'\""
        if key.lstrip("+").startswith("hydra.") and value.startswith("~"):  # which Hydra would take for a name
            value = str(expanded(value))
        return argument if value == "null" or quoted else f"{key}={quote(value)}"
    no_name = NO_NAME.fullmatch(argument)
    if no_name:
        group = no_name[1].lower()
        example = f", or a list of names such as '{group}=[a,b]'" if group in ("dataset", "algorithm") else ""
        got = no_name[2] if no_name[2] and no_name[2].lower() != "null" else "none"
        fail(f"{group}: expected a name from configs/{group}{example}, got {got}. See: klr-bench list")
    return f"++{argument}" if OPEN_KEY.match(argument) else argument


def fixed_keys(arguments: Sequence[str]) -> frozenset[str]:
    """Return the keys that have the same value in all jobs of a sweep.

    Raises the errors of Hydra's parser.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser

    words = [word for previous, word in pairwise(["", *arguments]) if _is_override(previous, word)]
    overrides = OverridesParser.create().parse_overrides(words)
    return frozenset(override.key_or_group for override in overrides if not override.is_sweep_override())


def config_dirs(arguments: Sequence[str]) -> list[Path]:
    """Return the folders that the flag ``--config-dir`` adds to Hydra's search path."""
    following = [word for flag, word in pairwise(arguments) if flag in ("--config-dir", "-cd")]
    joined = [word.removeprefix("--config-dir=") for word in arguments if word.startswith("--config-dir=")]
    return [Path(folder) for folder in (*following, *joined)]


def varied(overrides: Iterable[str], fixed: Collection[str]) -> list[tuple[str, str]]:
    """Return the settings that distinguish the runs of a sweep, as pairs; none with ``name=``."""
    pairs = [override.lstrip("+~").partition("=") for override in overrides]
    alike = {*fixed, "experiment", "results_dir"}
    has_name = any(key == "name" for key, _, _ in pairs)
    return [] if has_name else [(key, value) for key, _, value in pairs if key not in alike]


def name_of_job(name: str, overrides: Sequence[str], fixed: Collection[str]) -> str:
    """Return the name of one job of a sweep, such as oskl_magic-seed-2 for seed=2.

    `overrides` are the key=value pairs of this job, `fixed` the keys that all jobs have in common.  The experiment is
    part of `name` already; a name given on the command line is returned unchanged.
    """
    parts = [f"{key}-{value.strip(AROUND)}" for key, value in varied(overrides, fixed)]
    plain = re.sub(r"[^\w.+-]+", "-", "-".join([name, *parts]))
    if len(plain) <= LONGEST_NAME:
        return plain
    return f"{plain[: LONGEST_NAME - 9]}-{hashlib.sha256(plain.encode()).hexdigest()[:8]}"


def split_keys(arguments: Sequence[str], keys: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Split command-line arguments into plain words and a dict of key=value pairs.

    Paths with an equals sign, such as ./lr=0.1, are words.  Raises KlrBenchError for keys not in `keys`.
    """
    words: list[str] = []
    values: dict[str, str] = {}
    for argument in arguments:
        key, equals, value = argument.partition("=")
        is_path = key not in keys and ("/" in key or os.path.exists(argument))
        if key.startswith("-") or (equals and not is_path):
            if key not in keys:
                fail(f"unknown key {key!r}.{nearest(key.lstrip('-'), keys)}")
            if not equals or not value:
                fail(f"{key}: expected {key}=<value>, got none.")
            if key in values:
                fail(f"{key}: expected one value, got {values[key]!r} and {value!r}.")
            values[key] = str(expanded(value)) if value.startswith("~") and key not in TEXT_KEYS else value
        else:
            words.append(argument)
    return words, values


def items(key: str, value: str) -> list[str]:
    """Return the distinct items of a list written as ``a,b`` or ``[a,b]``.

    Raises KlrBenchError for an empty list.
    """
    bare = value[1:-1] if value.startswith("[") and value.endswith("]") else value
    items = [item.strip() for item in bare.split(",") if item.strip()]
    if not items:
        fail(f"{key}: expected names, as in {key}=a,b, got {value!r}.")
    return list(dict.fromkeys(items))


def is_true(key: str, values: Mapping[str, str]) -> bool:
    """Return the boolean value of a command-line key, or False if the key is missing."""
    value = values.get(key, "false")
    if value not in ("true", "false"):
        fail(f"{key}: expected true or false, got {value!r}.")
    return value == "true"
