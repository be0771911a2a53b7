"""Text of unknown origin as it is printed: without markup and control characters, and of limited length.

Names, labels, paths and messages come from files and from other people's code.
"""

from __future__ import annotations

import re
import sys

MOST_LINES = 5
MOST_CHARACTERS = 2500
LONGEST_WORD = 200
LONG_WORD = re.compile(rf"\S{{{LONGEST_WORD + 1},}}")
ENDS_WITH = "0.2.0"
"""The version that no longer understands renamed keys, values and functions."""
_announced: set[str] = set()


def announce_renaming(former: str, new: str) -> None:
    """Write once per process on standard error that a former name is about to end."""
    if former not in _announced:
        _announced.add(former)
        sys.stderr.write(f"{former} is renamed {new}; the old name ends with {ENDS_WITH}.\n")


def printable(text: str) -> str:
    r"""Return a text with unprintable characters, except line ends and tabs, spelled as ``\x1b``."""
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() or one in "\n\t" else one.encode("unicode_escape").decode("ascii") for one in text
    )


def is_file_name(text: str) -> bool:
    """Return True if a text may be part of the name of a file, and be printed."""
    return bool(text.strip()) and text.isprintable() and text[0] != "." and "/" not in text and "\\" not in text


def shortened(text: str, most: int) -> str:
    """Return a text of at most `most` characters; the end of a cut one says how many it had."""
    if len(text) <= most:
        return text
    end = f"... ({len(text):,} characters)"
    return f"{text[: max(0, most - len(end))]}{end}"


def error_message(text: str) -> str:
    """Return a few printable lines about an error; long names and paths are cut."""
    text = LONG_WORD.sub(lambda word: shortened(word[0], LONGEST_WORD), text[: 100 * MOST_CHARACTERS].strip())
    lines = printable(shortened(text, MOST_CHARACTERS)).splitlines()
    cut = [*lines[: MOST_LINES - 1], "..."] if len(lines) > MOST_LINES else lines
    return shortened(f"error: {chr(10).join(cut)}", MOST_CHARACTERS) + "\n"


def no_formula(text: str) -> str:
    """Return a text for a CSV file; an apostrophe precedes what a spreadsheet would take for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
