"""What happens to the arguments of ``klr-bench run`` before Hydra sees them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from klr_bench.errors import KlrBenchError, nearest

OWN_FLAGS = ("--debug", "--quiet", "--dry-run")
HYDRA_FLAGS = (
    *("--cfg", "--config-dir", "--config-name", "--config-path", "--experimental-rerun", "--help"),
    *("--hydra-help", "--info", "--multirun", "--package", "--resolve", "--run", "--shell-completion"),
    "--version",
)

LITERAL_KEYS = (
    *("data.mirror", "data.cache", "data.path", "data.test_path", "data.label", "data.positive"),
    *("results_dir", "hydra.sweep.dir", "hydra.run.dir"),
)
LITERAL = re.compile(rf"(\+{{0,2}}(?:{'|'.join(map(re.escape, LITERAL_KEYS))}))=(.*)", re.DOTALL)
"""Values that are taken as they are written: Hydra's lexer refuses blanks, commas, ~ and ? outside quotes."""

OPEN_KEY = re.compile(r"(?:(?:algorithms|datasets|sweep|against)\.[^=]+|sweep|against)=")
"""Keys that may be set whether a YAML file lists them or not; the configuration refuses the unknown ones."""

EMPTY_GROUP = re.compile(r"\+{0,2}(experiment|dataset|algorithm|parallel)=\s*(null)?\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Arguments:
    """The arguments for Hydra, and klr-bench's own flags."""

    hydra: list[str]
    quiet: bool
    dry_run: bool


def prepare(arguments: Sequence[str]) -> Arguments:
    """Take klr-bench's own flags out, and write the rest as Hydra's grammar wants it."""
    for argument in arguments:
        flag = argument.partition("=")[0]
        known = flag in OWN_FLAGS or any(name.startswith(flag) for name in HYDRA_FLAGS)
        if flag.startswith("--") and not known:
            message = f"unknown flag {flag!r}.{nearest(flag, OWN_FLAGS + HYDRA_FLAGS)}"
            raise KlrBenchError(message)
    rest = [_rewrite(argument) for argument in arguments if argument not in OWN_FLAGS]
    rest.sort(key=_is_override)  # Hydra's parser refuses an override behind a flag behind an override
    return Arguments(rest, quiet="--quiet" in arguments, dry_run="--dry-run" in arguments)


def _is_override(argument: str) -> bool:
    return "=" in argument and not argument.startswith("-")


def _rewrite(argument: str) -> str:
    literal = LITERAL.fullmatch(argument)
    if literal:
        key, value = literal.groups()
        return argument if value == "null" or _is_quoted(value) else f"{key}={quote(value)}"
    empty = EMPTY_GROUP.fullmatch(argument)
    if empty:
        message = f"{argument}: expected a name of configs/{empty[1]}, got none. See klr-bench list."
        raise KlrBenchError(message)
    return f"++{argument}" if OPEN_KEY.match(argument) else argument


def _is_quoted(value: str) -> bool:
    return len(value) >= 2 and value[0] == value[-1] and value[0] in "'\""


def quote(text: str) -> str:
    """Return the text as a quoted string of Hydra's override grammar.

    A backslash is doubled only before a quote and at the end: elsewhere Hydra takes it as it is.
    """
    escaped = re.sub(r"(\\*)('|\Z)", lambda match: match[1] * 2 + ("\\'" if match[2] else ""), text)
    return f"'{escaped}'"
