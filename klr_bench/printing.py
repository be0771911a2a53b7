"""Text as it is printed: none of it is markup, a command to the terminal, or endless.

Names, labels, paths and messages come from files and from other people's code.
"""

from __future__ import annotations

MOST_LINES = 5
MOST_CHARACTERS = 2500


def printable(text: str) -> str:
    r"""Return a text with what is not printable, such as the escape character, spelled as ``\x1b``; line ends stay."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one in "\n\t" else _spelled(one) for one in text)


def _spelled(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def is_file_name(text: str) -> bool:
    """Say whether a text may be part of the name of a file, and be printed."""
    return bool(text.strip()) and text.isprintable() and not text.startswith(".") and not {"/", "\\"} & set(text)


def shortened(text: str, most: int) -> str:
    """Return a text of at most so many characters; where it is cut, its end says how many it had."""
    if len(text) <= most:
        return text
    end = f"... ({len(text):,} characters)"
    return f"{text[: max(0, most - len(end))]}{end}"


def error_message(text: str) -> str:
    """Return what is printed of an error: a few lines."""
    lines = printable(shortened(text.strip(), MOST_CHARACTERS)).splitlines()
    cut = [*lines[: MOST_LINES - 1], "..."] if len(lines) > MOST_LINES else lines
    return shortened(f"error: {chr(10).join(cut)}", MOST_CHARACTERS) + "\n"
