"""What happens to the arguments of ``klr-bench run`` before Hydra sees them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from klr_bench.cli.words import is_true
from klr_bench.config.locations import new_key
from klr_bench.errors import fail, nearest

OWN_FLAGS = ("--debug", "--quiet", "--dry-run")
OWN_KEYS = ("paper", "watch")
"""Keys that are klr-bench's own, and no part of the configuration."""
HYDRA_FLAGS = (
    *("--cfg", "--config-dir", "--help", "--hydra-help", "--info", "--multirun", "--package", "--resolve", "--run"),
    *("--shell-completion", "--version"),
)
"""Hydra's flags but for those that would change the root of the configuration, configs/config.yaml."""
VALUED_FLAGS = ("--cfg", "--config-dir", "--info", "--package", "-c", "-cd", "-i", "-p")
SHORT_FLAGS = ("-c", "-cd", "-h", "-i", "-m", "-p", "-r", "-sc")
LONGEST_NAME = 100
"""Characters of the name of a run."""

AROUND = " '\"[](){}"
"""What may stand around a value, and says nothing in the name of a run."""

LITERAL_KEYS = (
    *("data.mirror", "data.cache", "data.path", "data.test_path", "data.label", "data.positive"),
    *("results_dir", "hydra.sweep.dir", "hydra.run.dir"),
)
LITERAL = re.compile(rf"(\+{{0,2}}(?:{'|'.join(map(re.escape, LITERAL_KEYS))}))=(.*)", re.DOTALL)
"""Values that are taken as they are written: Hydra's lexer refuses blanks, commas, ~ and ? outside quotes."""

OPEN_KEY = re.compile(r"(?:(?:algorithms|datasets|sweep|against)\.[^=]+|sweep|against)=")
"""Keys that may be set whether a YAML file lists them or not; the configuration refuses the unknown ones."""

NO_NAME = re.compile(r"\+{0,2}(experiment|dataset|algorithm|parallel)=\s*(null|(\S+\.yaml))?\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Arguments:
    """The arguments for Hydra, and klr-bench's own flags."""

    hydra: list[str]
    quiet: bool
    dry_run: bool
    watch: bool
    paper: str
    """The name of a paper whose experiments are run, or nothing."""


def prepare(arguments: Sequence[str]) -> Arguments:
    """Take klr-bench's own flags out, and write the rest as Hydra's grammar wants it."""
    words = [_whole_flag(argument) if argument.startswith("-") else argument for argument in arguments]
    words, watch = _without_watch(_with_experiments(words))
    rest = [_rewrite(word) for word in words if word not in OWN_FLAGS]
    pairs = sorted(pairwise(["", *rest]), key=lambda pair: _is_override(*pair))
    rest = [word for _, word in pairs]  # Hydra's parser refuses an override behind a flag behind an override
    dry_run = "--dry-run" in words
    paper = next((word.partition("=")[2] for word in arguments if word.startswith("paper=")), "")
    quiet = "--quiet" in words or (dry_run and bool(paper))  # the cells of a paper are counted, not listed
    return Arguments(rest, quiet=quiet, dry_run=dry_run, watch=watch, paper=paper)


def _whole_flag(argument: str) -> str:
    """Return a flag with its whole name; refuse one that is unknown, or the beginning of several."""
    flag, equals, value = argument.partition("=")
    if flag in SHORT_FLAGS and not equals:
        return flag
    known = OWN_FLAGS + HYDRA_FLAGS
    meant = [flag] if flag in known else [name for name in known if name.startswith(flag)]
    if not flag.startswith("--") or len(meant) != 1:
        fail(f"unknown flag {flag!r}.{nearest(flag, known)}")
    return meant[0] + equals + value


def _with_experiments(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with the experiments of a paper in place of ``paper=NAME``: a sweep over them."""
    papers = [argument for argument in arguments if argument.startswith("paper=")]
    if not papers:
        return list(arguments)
    from klr_bench.report.papers.reading import experiments_of

    rest = [argument for argument in arguments if argument not in papers]
    chosen = [argument for argument in rest if argument.startswith("experiment=")]
    if chosen or len(papers) > 1:
        fail(f"{papers[0]} and {[*chosen, *papers[1:]][0]} are both given; leave one of them out.")
    experiments = experiments_of(papers[0].partition("=")[2])
    many = [] if {"-m", "--multirun"} & set(rest) else ["--multirun"]
    return [*many, *rest, f"experiment={','.join(experiments)}"]


def _without_watch(arguments: Sequence[str]) -> tuple[list[str], bool]:
    """Return the arguments without ``watch=true``, and whether it was given."""
    given = [argument.partition("=")[2] for argument in arguments if argument.startswith("watch=")]
    if len(given) > 1:
        fail(f"watch: expected it once, got {given[0]!r} and {given[1]!r}.")
    rest = [argument for argument in arguments if not argument.startswith("watch=")]
    return rest, bool(given) and is_true("watch", given[0])


def _is_override(previous: str, argument: str) -> bool:
    """Return False for a flag, and for the value of the flag before it."""
    return not argument.startswith("-") and ("=" in argument or previous not in VALUED_FLAGS)


def _rewrite(argument: str) -> str:
    prefix, key, value = re.fullmatch(r"([+~]*)([^=]*)(.*)", argument, re.DOTALL).groups()  # type: ignore[union-attr]
    argument = f"{prefix}{new_key(key)}{value}"
    literal = LITERAL.fullmatch(argument)
    if literal:
        key, value = literal.groups()
        return argument if value == "null" or _is_quoted(value) else f"{key}={quote(value)}"
    no_name = NO_NAME.fullmatch(argument)
    if no_name:
        got = "a file" if no_name[3] else "none"
        fail(f"{argument}: expected a name of configs/{no_name[1]}, got {got}. See klr-bench list.")
    return f"++{argument}" if OPEN_KEY.match(argument) else argument


def _is_quoted(value: str) -> bool:
    return len(value) >= 2 and value[0] == value[-1] and value[0] in "'\""


def quote(text: str) -> str:
    """Return the text as a quoted string of Hydra's override grammar.

    A backslash is doubled only before a quote and at the end: elsewhere Hydra takes it as it is.
    """
    escaped = re.sub(r"(\\*)('|\Z)", lambda match: match[1] * 2 + ("\\'" if match[2] else ""), text)
    return f"'{escaped}'"


def fixed_keys(arguments: Sequence[str]) -> frozenset[str]:
    """Return the keys that are given one value, for all jobs of a sweep; raises what Hydra's parser raises."""
    from hydra.core.override_parser.overrides_parser import OverridesParser

    overrides = OverridesParser.create().parse_overrides(
        [pair[1] for pair in pairwise(["", *arguments]) if _is_override(*pair)]
    )
    return frozenset(override.key_or_group for override in overrides if not override.is_sweep_override())


def config_dirs(arguments: Sequence[str]) -> list[Path]:
    """Return the folders that ``--config-dir`` names; Hydra composes their files, too."""
    flag = "--config-dir"
    following = [word for flag_before, word in pairwise(arguments) if flag_before in (flag, "-cd")]
    joined = [word.partition("=")[2] for word in arguments if word.startswith(f"{flag}=")]
    return [Path(folder) for folder in (*following, *joined)]


def name_of_job(name: str, overrides: Sequence[str], fixed: Collection[str]) -> str:
    """Return the name of one job of a sweep: with the values that tell it from the others, as in oskl_magic-seed-2.

    `overrides` are those of the job, `fixed` the keys that all jobs have in common.  The name of its experiment tells
    enough by itself; where the command line gives names, they are left as they are.
    """
    values = [override.lstrip("+~").partition("=") for override in overrides]
    if any(key == "name" for key, _, _ in values):
        return name
    alike = {*fixed, "experiment", "results_dir"}
    told = [f"{key}-{value.strip(AROUND)}" for key, _, value in values if key not in alike]
    plain = re.sub(r"[^\w.+-]+", "-", "-".join([name, *told]))
    if len(plain) <= LONGEST_NAME:
        return plain
    return f"{plain[: LONGEST_NAME - 9]}-{hashlib.sha256(plain.encode()).hexdigest()[:8]}"
