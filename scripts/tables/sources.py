"""Table of data/README.md: the files that klr-bench downloads."""

from __future__ import annotations

from pathlib import Path

from markup import table

from klr_bench.config.datasets import read_dataset
from klr_bench.config.locations import config_dir, names
from klr_bench.datasets.download import UNKNOWN, files


def sources(reference: Path) -> dict[str, str]:
    """Return the table of files, by name; the references are not used."""
    used: dict[str, list[str]] = {}
    rows = {}
    folders = [config_dir()]
    for name in names("dataset", folders):
        dataset = read_dataset(name, folders)
        for file in files(dataset):
            used.setdefault(file.name, []).append(f"`{name}`")
            address = f"[download]({file.url})" if file.url else "mirror only"
            checked = "rows, features" if file.sha256 == UNKNOWN else "SHA-256"
            rows[file.name] = [address, checked, dataset.source.reference]
    head = ["file", "data sets", "address", "checked by", "source"]
    return {"sources": table(head, [[f"`{file}`", ", ".join(used[file]), *row] for file, row in rows.items()], 5)}
