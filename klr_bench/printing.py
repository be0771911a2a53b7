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


def shortened(text: str, most: int) -> str:
    """Return a text, cut off behind so many characters, with a note of how many it had."""
    return text if len(text) <= most else f"{text[:most]}... ({len(text):,} characters)"


def error_message(text: str) -> str:
    """Return what is printed of an error: a few lines."""
    lines = printable(shortened(text.strip(), MOST_CHARACTERS)).splitlines()
    cut = [*lines[: MOST_LINES - 1], "..."] if len(lines) > MOST_LINES else lines
    return shortened(f"error: {chr(10).join(cut)}", MOST_CHARACTERS) + "\n"
