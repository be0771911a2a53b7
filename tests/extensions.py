"""The extensions of the documentation, docs/_ext, as modules that tests can import."""

import importlib
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "_ext"


def extension(name):
    """Return an extension of this name."""
    if str(FOLDER) not in sys.path:
        sys.path.insert(0, str(FOLDER))
    return importlib.import_module(name)
