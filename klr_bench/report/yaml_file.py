"""A YAML file as plain values: nothing in it is made or called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from klr_bench.errors import KlrBenchError


def read_yaml(path: Path) -> Any:
    """Return the content of a YAML file.  KlrBenchError, which does not name the path, where it has none."""
    if not path.is_file():
        message = f"expected a YAML file, got {'something else' if path.exists() else 'none'}."
        raise KlrBenchError(message)
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        reason = error.strerror or str(error)
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        reason = " ".join(str(error).split()) or "nested too deeply"
    message = f"expected a YAML file, got something that cannot be read ({reason})."
    raise KlrBenchError(message)
