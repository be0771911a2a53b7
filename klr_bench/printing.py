"""Text as it is printed: none of it is markup, a command to the terminal, or endless.

Names, labels, paths and messages come from files and from other people's code.
"""

from __future__ import annotations

import re

MOST_LINES = 5
MOST_CHARACTERS = 2500
LONGEST_WORD = 200
LONG_WORD = re.compile(rf"\S{{{LONGEST_WORD + 1},}}")


def printable(text: str) -> str:
    r"""Return a text with what is not printable, such as the escape character, spelled as ``\x1b``; line ends stay."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one in "\n\t" else _spelled(one) for one in text)


def _spelled(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def is_file_name(text: str) -> bool:
    """Return True if a text may be part of the name of a file, and be printed."""
    return bool(text.strip()) and text.isprintable() and text[0] != "." and "/" not in text and "\\" not in text


def shortened(text: str, most: int) -> str:
    """Return a text of at most so many characters; where it is cut, its end says how many it had."""
    if len(text) <= most:
        return text
    end = f"... ({len(text):,} characters)"
    return f"{text[: max(0, most - len(end))]}{end}"


def error_message(text: str) -> str:
    """Return what is printed of an error: a few lines, in which no name or path is endless."""
    text = LONG_WORD.sub(lambda found: shortened(found[0], LONGEST_WORD), text[: 100 * MOST_CHARACTERS].strip())
    lines = printable(shortened(text, MOST_CHARACTERS)).splitlines()
    cut = [*lines[: MOST_LINES - 1], "..."] if len(lines) > MOST_LINES else lines
    return shortened(f"error: {chr(10).join(cut)}", MOST_CHARACTERS) + "\n"


def no_formula(text: str) -> str:
    """Return a text for a CSV file that no spreadsheet takes for a formula: where it could, an apostrophe precedes."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
