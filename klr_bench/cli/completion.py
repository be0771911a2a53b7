"""Completion for bash, zsh and fish: a short script for the shell, which asks back for the words that fit.

Imports nothing beyond the standard library, for it runs at each press of the tab key.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from klr_bench.cli import DATA_VERBS, KINDS, MERGE_KEYS
from klr_bench.cli.overrides import HYDRA_FLAGS, OWN_FLAGS, OWN_KEYS
from klr_bench.cli.report import KEYS as REPORT_KEYS
from klr_bench.cli.report import SITE_KEYS
from klr_bench.cli.watch import KEYS as WATCH_KEYS
from klr_bench.config import locations as config_files
from klr_bench.config.models import BACKENDS, KERNELS, all_keys
from klr_bench.metrics.labels import METRICS, SCORES
from klr_bench.report.writing import FORMATS, ORIENTATIONS

VERBS = ("run", "report", "site", "watch", "merge", "data", "list", "show", "completion")
DATA_KEYS = ("data.mirror", "data.cache")

# Bash cuts words at the characters of COMP_WORDBREAKS, "=" among them, and completes only what stands behind
# the last cut, so what stands before it is taken off the answers.
BASH = """\
_klr_bench() {
    local typed=${COMP_LINE:0:$COMP_POINT} IFS=$'\\n'
    typed=${typed##*[[:space:]]}
    COMPREPLY=($("$1" completion --words "$COMP_LINE" "$COMP_POINT" 2>/dev/null))
    if [[ $typed == *=* && $COMP_WORDBREAKS == *=* ]]; then
        COMPREPLY=("${COMPREPLY[@]#"${typed%"${typed##*=}"}"}")
    fi
}
complete -o nospace -o default -F _klr_bench klr-bench
"""

ZSH = """\
_klr_bench() {
    local -a found
    found=("${(@f)$("${words[1]}" completion --words "$BUFFER" "$CURSOR" 2>/dev/null)}")
    if [[ -n $found ]]; then
        compadd -Q -S '' -- $found
    else
        compset -P '*='
        _files
    fi
}
compdef _klr_bench klr-bench
"""

FISH = """\
function __klr_bench
    set -l line (commandline -cp)
    klr-bench completion --words "$line" (string length -- "$line") 2>/dev/null | string trim
end
complete -c klr-bench -a '(__klr_bench)'
"""

SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


def complete(line: str, point: int) -> list[str]:
    """Return what may stand at the cursor; a word that is finished ends in a blank."""
    words = line[:point].split()[1:]
    if not words or line[:point].endswith((" ", "\t")):
        words.append("")
    *before, current = words
    if "=" in current:
        return _values(before, current)
    return [word for word in _words(before, current) if word.startswith(current)]


def _words(before: list[str], current: str) -> list[str]:
    """Return all that may stand behind the words before the cursor."""
    if not before:
        return _finished([*VERBS, "--help", "--version"])
    verb, *rest = before
    if verb == "run":
        if current.startswith("-"):
            return _finished([*OWN_FLAGS, *HYDRA_FLAGS])
        return [f"{key}=" for key in (*config_files.GROUPS, *OWN_KEYS, *all_keys())]
    if verb == "report":
        return [f"{key}=" for key in REPORT_KEYS]
    if verb == "site":
        return [f"{key}=" for key in SITE_KEYS]
    if verb == "watch":
        return [f"{key}=" for key in WATCH_KEYS]
    if verb == "merge":
        return [f"{key}=" for key in MERGE_KEYS]
    if verb == "data":
        names = [*_finished(_names("dataset")), *(f"{key}=" for key in DATA_KEYS)]
        return names if rest else _finished(DATA_VERBS)
    if verb == "list":
        return _finished([f"{kind}s" for kind in KINDS])
    if verb == "show":
        return _finished(_names(rest[0]) if rest and rest[0] in KINDS else KINDS)
    return _finished(SCRIPTS) if verb == "completion" else []


def _values(before: list[str], current: str) -> list[str]:
    """Return the words that `key=value` may become; inside brackets and behind commas the list goes on."""
    key, _, value = current.partition("=")
    cut = max(value.rfind(","), value.rfind("[")) + 1
    done, part = value[:cut], value[cut:]
    taken = done.strip("[").split(",")
    fitting = [name for name in _choices(before, key) if name.startswith(part) and name not in taken]
    return [f"{key}={done}{name}{'' if done else ' '}" for name in fitting]


def _choices(before: list[str], key: str) -> list[str]:
    reports = before[:1] == ["report"]
    if key in ("experiment", "against") and reports:
        return _runs(before)
    if key in config_files.GROUPS:
        return _names(key)
    if key == "paper":
        found = {path.parent.name for folder in config_files.folders() for path in folder.glob("paper/*/paper.yaml")}
        return [*sorted(found), *(["all"] if reports else [])]
    if key == "figures":
        from klr_bench.report.figures import names

        return names()
    fixed: dict[str, Sequence[str]] = {
        "force": ("true", "false"),
        "open": ("true", "false"),
        "own_figures": ("true", "false"),
        "statistics": ("true", "false"),
        "watch": ("true", "false"),
        "format": FORMATS,
        "columns": [*METRICS],
        "orientation": [*ORIENTATIONS],
        "kernel.kernel": KERNELS,
        "parallel.backend": BACKENDS,
        "metrics": [*METRICS],
        "selection.score": SCORES,
    }
    return list(fixed.get(key, ()))


def _runs(before: list[str]) -> list[str]:
    """Return the names of the runs that can be reported: in the folder that is named before the cursor, or results."""
    given = [word.partition("=")[2] for word in before if word.startswith("results_dir=")]
    return sorted(
        path.parent.name for path in Path(given[-1] if given else "results").expanduser().glob("*/records.csv")
    )


def _names(group: str) -> list[str]:
    return config_files.names(group, config_files.folders())


def _finished(words: Iterable[str]) -> list[str]:
    return [f"{word} " for word in words]
