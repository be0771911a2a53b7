"""Command ``klr-bench merge``: join results folders into a folder, a table or an archive."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from klr_bench.cli import EXIT_FAILED
from klr_bench.cli.arguments import split_keys
from klr_bench.cli.outputs import COMPRESSED, check_folder, check_table, write_table
from klr_bench.errors import fail
from klr_bench.files import expanded, is_one_of, write_atomic
from klr_bench.printing import print_line, warn
from klr_bench.results.archive import ENDING, FILES, archive

KEYS = ("into",)
PARQUET = ".parquet"


def merge(arguments: Sequence[str]) -> int:
    """Merge the results folders that the arguments name, and return the exit status."""
    words, values = split_keys(arguments, KEYS)
    if not words or "into" not in values:
        missing = "into=FOLDER" if words else "results folders"
        fail(f"merge: expected {missing}, got none. Try klr-bench merge RESULTS1 RESULTS2 into=results")
    sources, into = [expanded(word) for word in words], Path(values["into"])
    ending = into.suffix.lower()
    is_table = (into.with_suffix("") if ending in COMPRESSED else into).suffix.lower() == ".csv"
    if not into.is_dir() and (is_table or ending in (PARQUET, ENDING)):
        return _write_file(sources, into, ending if not is_table else ".csv")
    check_folder("into", into)
    from klr_bench.results.merge import merge

    merged = merge(sources, into)
    for merged_run in merged:
        lines = [merged_run.sentence(), *(f"  {text}" for text in (*merged_run.conflicts, *merged_run.notes))]
        print_line("\n".join(lines))
    return EXIT_FAILED if any(merged_run.conflicts for merged_run in merged) else 0


def _write_file(sources: Sequence[Path], into: Path, ending: str) -> int:
    """Write all runs as a table or as an archive, and return the exit status."""
    from klr_bench.report.load import read_runs

    if ending == ".csv":
        check_table(into)
    folders = _runs(sources)
    if is_one_of(into, [folder / name for folder in folders for name in FILES]):
        fail(f"into={into}: expected the name of a new table, got a file of the run {into.resolve().parent.name}.")
    records = read_runs(folders)
    if ending == ENDING:
        write_atomic(into, archive(folders))
    elif ending == PARQUET:
        content = io.BytesIO()
        try:
            records.to_parquet(content, index=False)
        except ImportError:
            fail(f"into={into}: Parquet files need pyarrow. Install it, or write a .csv file.")
        write_atomic(into, content.getvalue())
    else:
        write_table(records, into)
    print_line(f"{into}: {len(folders)} runs, {len(records):,} cells")
    return 0


def _runs(sources: Sequence[Path]) -> list[Path]:
    """Return the folders of all runs, whose names must differ."""
    from klr_bench.results.store import was_run

    by_name: dict[str, Path] = {}
    for source in sources:
        files = [path for name in FILES[:2] for path in (*source.glob(name), *source.glob(f"*/{name}"))]
        if not files:
            fail(f"merge: {source}: expected a results folder or the folder of a run, but it has no records.csv.")
        for folder in sorted({path.parent for path in files}):
            if not was_run(folder):
                warn(f"{folder}: not merged, because no cell has been computed there.")
                continue
            name = folder.resolve().name
            if by_name.setdefault(name, folder) != folder:
                fail(f"merge: {by_name[name]} and {folder} have the same name. Merge them into a folder first.")
    if not by_name:
        fail("merge: expected folders with results, but no cell has been computed in any of them.")
    return [*by_name.values()]
