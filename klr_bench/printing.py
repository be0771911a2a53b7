"""Printing of untrusted strings, which are escaped and shortened.

Names, labels, paths and messages may come from untrusted files and third-party code.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

SEPARATORS = "/\\:" if os.name == "nt" else "/\\"
"""Characters that separate the parts of a path."""
MOST_LINES = 5
MOST_CHARACTERS = 2500
LONGEST_WORD = 200
LONGEST_NAME = 100
LONG_WORD = re.compile(rf"\S{{{LONGEST_WORD + 1},}}")


def print_line(text: str) -> None:
    """Print a line on standard output, at once."""
    sys.stdout.write(printable(f"{text}\n"))
    sys.stdout.flush()


def warn(text: str) -> None:
    """Print a warning on standard error."""
    sys.stderr.write(printable(f"warning: {text.removeprefix('warning: ')}\n"))


@contextmanager
def warning_lines() -> Iterator[None]:
    """Print the Python warnings of the ``with`` block on standard error, each of them once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        warn(text)


def printable(text: str) -> str:
    """Return a string with unprintable characters escaped, except newlines and tabs."""
    if text.isprintable():
        return text
    return "".join(
        character
        if character.isprintable() or character in "\n\t"
        else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def is_file_name(text: str) -> bool:
    """Return True if a string is printable and can safely be part of a file name."""
    return bool(text.strip()) and text.isprintable() and text[0] != "." and not any(mark in text for mark in SEPARATORS)


def to_file_name(text: str) -> str:
    """Return a similar string that `is_file_name` accepts, of at most LONGEST_NAME bytes."""
    name = "".join(
        character if character.isprintable() and character not in SEPARATORS else "_" for character in text
    ).lstrip(".")
    name = name.encode()[:LONGEST_NAME].decode(errors="ignore")
    return name if is_file_name(name) else "data"


def shortened(text: str, most: int) -> str:
    """Shorten a string to at most `most` characters, and append its original length."""
    if len(text) <= most:
        return text
    end = f"... ({len(text):,} characters)"
    return f"{text[: max(0, most - len(end))]}{end}"


def error_message(text: str) -> str:
    """Return an error message as a few printable lines, with long words shortened."""
    text = LONG_WORD.sub(lambda word: shortened(word[0], LONGEST_WORD), text[: 100 * MOST_CHARACTERS].strip())
    lines = printable(shortened(text, MOST_CHARACTERS)).splitlines()
    cut = [*lines[: MOST_LINES - 1], "..."] if len(lines) > MOST_LINES else lines
    return shortened(f"error: {chr(10).join(cut)}", MOST_CHARACTERS) + "\n"


def no_formula(text: str) -> str:
    """Prefix a string with an apostrophe if a spreadsheet would read it as a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def quote(text: str) -> str:
    """Return a string in single quotes, escaped for Hydra's command-line grammar.

    A backslash is doubled only before a quote and at the end: elsewhere Hydra takes it literally.
    """
    escaped = re.sub(r"(\\*)('|\Z)", lambda match: match[1] * 2 + ("\\'" if match[2] else ""), text)
    return f"'{escaped}'"
