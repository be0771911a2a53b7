"""Properties of every refusal, and commands run as a user runs them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from klr_bench.cli import main
from klr_bench.errors import KlrBenchError

MOST_LINES = 5
LONGEST = 3000


class Hostile:
    """Creates a file when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return Path.touch, (self.mark,)


def check_message(message: str, *parts: str) -> None:
    """Check that a message is short and printable, has no traceback, and contains these parts."""
    assert message.strip()
    assert len(message.splitlines()) <= MOST_LINES, message
    assert len(message) <= LONGEST, message
    assert "Traceback" not in message
    assert all(character.isprintable() or character == "\n" for character in message), repr(message)
    for part in parts:
        assert part in message, message


def rejected(call: Callable[[], object], *parts: str) -> str:
    """Return the message of the KlrBenchError that a call must raise."""
    with pytest.raises(KlrBenchError) as refused:
        call()
    check_message(str(refused.value), *parts)
    return str(refused.value)


def refused(capsys: pytest.CaptureFixture[str], arguments: Sequence[str], *parts: str) -> str:
    """Return the message of a command, run in this process, that must end with exit status 2."""
    capsys.readouterr()
    status = main(list(arguments))
    errors = capsys.readouterr().err
    assert status == 2, errors
    assert errors.startswith("error: ")
    check_message(errors, *parts)
    return errors


def files_in(folder: Path) -> dict[Path, bytes]:
    """Return all files below a folder with their content, except what Python compiles."""
    written = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path: path.read_bytes() for path in written if path.parent.name != "__pycache__"}
