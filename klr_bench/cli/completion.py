"""Shell completion scripts of klr-bench for bash, zsh and fish.

This module imports nothing beyond the standard library and pydantic, because it runs each time the tab key is pressed.
"""

from __future__ import annotations

from collections.abc import Sequence

from klr_bench.cli import DATA_KEYS, DATA_VERBS, HELP
from klr_bench.cli.arguments import HYDRA_FLAGS, OWN_FLAGS, OWN_KEYS
from klr_bench.cli.listing import LISTED, SHOWN
from klr_bench.cli.merge import KEYS as MERGE_KEYS
from klr_bench.cli.model import FIT_KEYS, PREDICT_KEYS
from klr_bench.cli.report import KEYS as REPORT_KEYS
from klr_bench.cli.report import SITE_KEYS
from klr_bench.cli.watch import KEYS as WATCH_KEYS
from klr_bench.config import locations as config_files
from klr_bench.config.models import KERNELS, all_keys
from klr_bench.files import expanded
from klr_bench.metrics.labels import METRICS, SCORES
from klr_bench.report.writing import FORMATS, ORIENTATIONS

# Bash splits words at the characters in COMP_WORDBREAKS, which include "=", and completes only the last part.
# The script therefore removes the earlier parts from the completions that klr-bench prints.
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
    local -a words_
    words_=("${(@f)$("${words[1]}" completion --words "$BUFFER" "$CURSOR" 2>/dev/null)}")
    if [[ -n $words_ ]]; then
        compadd -Q -S '' -- $words_
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


KEYS = {
    "fit": FIT_KEYS,
    "predict": PREDICT_KEYS,
    "report": REPORT_KEYS,
    "site": SITE_KEYS,
    "watch": WATCH_KEYS,
    "merge": MERGE_KEYS,
    "run": (*config_files.GROUPS, *OWN_KEYS, *all_keys()),
}
"""Keys of each command; the commands of `data` have further keys."""
CHOICES: dict[str, Sequence[str]] = {
    **dict.fromkeys(("force", "open", "own_figures", "statistics", "watch"), ("true", "false")),
    **dict.fromkeys(("columns", "metrics"), tuple(METRICS)),
    "format": FORMATS,
    "orientation": [*ORIENTATIONS],
    "data.scale": ("standard", "minmax", "none"),
    "kernel.kernel": KERNELS,
    "selection.score": SCORES,
}
"""Keys with a fixed set of values."""


def complete(line: str, point: int) -> list[str]:
    """Return the possible completions of the word that ends at position `point` of a line.

    Completed words end in a space.
    """
    words = line[:point].split()[1:]
    if not words or line[:point].endswith((" ", "\t")):
        words.append("")
    *before, current = words
    if "=" in current:
        return _values(before, current)
    verb, *rest = before or [""]
    keys = DATA_KEYS if verb == "data" and rest else KEYS.get(verb, ())
    following: dict[str, Sequence[str]] = {
        "": (*HELP, "--help", "--version"),
        "data": _names("dataset") if rest else DATA_VERBS,
        "check": _names("algorithm"),
        "list": [f"{kind}s" for kind in LISTED],
        "show": _names(rest[0]) if rest and rest[0] in SHOWN else SHOWN,
        "completion": [*SCRIPTS],
    }
    if verb == "run" and current.startswith("-"):
        following, keys = {"run": (*OWN_FLAGS, *HYDRA_FLAGS)}, ()
    candidates = [*(f"{word} " for word in following.get(verb, ())), *(f"{key}=" for key in keys)]
    return [word for word in candidates if word.startswith(current)]


def _values(before: list[str], current: str) -> list[str]:
    key, _, value = current.partition("=")
    cut = max(value.rfind(","), value.rfind("[")) + 1
    done, part = value[:cut], value[cut:]
    taken = done.strip("[").split(",")
    matches = [name for name in _choices(before, key) if name.startswith(part) and name not in taken]
    return [f"{key}={done}{name}{'' if done else ' '}" for name in matches]


def _choices(before: list[str], key: str) -> Sequence[str]:
    is_report = before[:1] == ["report"]
    if key in ("experiment", "compare") and is_report:
        folders = [word.partition("=")[2] for word in before if word.startswith("results_dir=")] or ["results"]
        return sorted(path.parent.name for path in expanded(folders[-1]).glob("*/records.csv"))
    if key in config_files.GROUPS:
        return _names(key)
    if key == "parallel.backend":
        return _names("parallel")
    if key == "paper":
        return [*_names("paper"), *(["all"] if is_report else [])]
    if key == "figures":
        from klr_bench.report.figures import names

        return names()
    return CHOICES.get(key, ())


def _names(group: str) -> list[str]:
    return config_files.names(group, config_files.folders())
