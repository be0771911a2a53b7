"""Archives of results folders: a zip file with manifest, tables and report of each run."""

from __future__ import annotations

import io
import shutil
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from klr_bench.errors import KlrBenchError, fail, sanitize
from klr_bench.files import LARGEST_CSV, read_regular, regular
from klr_bench.printing import is_file_name

ENDING = ".zip"
FILES = ("manifest.yaml", "records.csv", "traces.csv", "reliability.csv", "rows.csv")
"""Files of a run that an archive has and that are read from it."""
LARGEST = LARGEST_CSV
"""Maximum number of bytes of an archive, and of the files that are read from it."""
DAMAGES = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, RuntimeError, ValueError, OverflowError)
"""Exceptions of zipfile for a damaged, encrypted or unsupported archive."""


def archive(folders: Iterable[Path]) -> bytes:
    """Return a zip file of runs: <folder>/<file> for FILES and for each file of report/.

    Links are left out.  Raises KlrBenchError if `extracted` would refuse the archive.
    """
    content, size = io.BytesIO(), 0
    with zipfile.ZipFile(content, "w") as file:
        for folder in folders:
            name = folder.resolve().name
            if not is_file_name(name):
                fail(f"{folder}: expected the name of a run, got {sanitize(name)!r}. Rename the folder.")
            for path in [*(folder / name for name in FILES), *sorted((folder / "report").glob("*"))]:
                if path.is_file() and not path.is_symlink():
                    member = zipfile.ZipInfo(f"{name}/{path.relative_to(folder).as_posix()}")  # without a time
                    part = read_regular(path, LARGEST)
                    size += len(part) if path.parent == folder else 0
                    file.writestr(member, part, zipfile.ZIP_DEFLATED)
    if max(size, content.tell()) > LARGEST:
        fail(f"merge: expected runs of at most {LARGEST:,} bytes in total, got {size:,}. Write several archives.")
    return content.getvalue()


@contextmanager
def extracted(path: Path) -> Iterator[Path]:
    """Yield a temporary results folder with the runs of an archive.

    Only FILES are read, each to a folder directly below the temporary one; errors name the archive in place of it.
    Raises KlrBenchError for a damaged archive, or one without runs or with more than LARGEST bytes.
    """
    with TemporaryDirectory(prefix="klr-bench-") as place:
        _extract(path, Path(place))
        try:
            yield Path(place)
        except KlrBenchError as error:
            raise type(error)(str(error).replace(place, str(path))) from error


def _extract(path: Path, place: Path) -> None:
    expected = "expected an archive that klr-bench merge has written"
    try:
        with regular(path, LARGEST) as file, zipfile.ZipFile(file) as content:
            members = [member for member in content.infolist() if _is_file_of_run(member.filename)]
            if not members:
                fail(f"{path}: {expected}, got none of its files, such as <experiment>/records.csv.")
            if (size := sum(member.file_size for member in members)) > LARGEST:
                fail(f"{path}: expected files of at most {LARGEST:,} bytes in total, got {size:,}.")
            for member in members:
                if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    fail(f"{path}: {expected}, got another compression of {sanitize(member.filename)}.")
                target = place / member.filename
                target.parent.mkdir(exist_ok=True)
                with content.open(member) as source, target.open("wb") as copy:
                    shutil.copyfileobj(source, copy)
    except DAMAGES as error:
        fail(f"{path}: {expected}, got a file that cannot be read ({sanitize(error)}). Copy it again.")


def _is_file_of_run(name: str) -> bool:
    folder, _, file = name.partition("/")
    return file in FILES and is_file_name(folder)
