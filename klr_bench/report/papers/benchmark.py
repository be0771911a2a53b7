"""Times of the benchmark "confidence", with a loop over rows, as methods of a claim."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from klr_bench.errors import fail
from klr_bench.report.load import read_texts
from klr_bench.report.measured import Entry, MeasuredDataset, Method
from klr_bench.report.papers.candidates import method_without_records

LOOPS = "benchmark/confidence.csv"
"""The file of the benchmark in a folder of results."""
DATASETS = {"54": ("covtype_450k", "Covertype 450k"), "2000": ("epsilon_50k_generated", "Generated, 50,000 x 2,000")}
"""Names and labels of the data sets, by their number of features."""
COLUMNS = frozenset({"what", "d", "seconds", "ratio"})
LOOP = "plain loop of arow over bcw1"
"""The row whose `ratio` is the time of the loop, divided by that of BCW-L1."""


@dataclass(frozen=True)
class Benchmark:
    """Training times of BCW, and of AROW in a loop over the rows."""

    path: Path

    @cached_property
    def datasets(self) -> list[MeasuredDataset]:
        """Results by data set; raises KlrBenchError if a time is not a number."""
        header, lines = read_texts(self.path)
        if missing := COLUMNS - {*header}:
            fail(f"{self.path}: expected the columns {', '.join(sorted(COLUMNS))}, got none called {min(missing)}.")
        rows = [dict(zip(header, line, strict=True)) for line in lines]
        datasets = []
        for n_features, (dataset, label) in DATASETS.items():
            of_data = {row["what"]: row for row in rows if row["d"] == n_features}
            batch = [name for name in ("bcw1", "bcw2") if name in of_data]
            methods = [self._method(name, f"BCW-L{name[-1]}", of_data[name]["seconds"]) for name in batch]
            if LOOP in of_data and "bcw1" in of_data:
                unit = methods[0].entries["fit_time_s"].mean or 0.0
                methods.append(self._method("arow", "AROW, row by row", of_data[LOOP]["ratio"], unit))
            datasets.append(MeasuredDataset(dataset, label, methods, {}))
        return datasets

    def _method(self, algorithm: str, label: str, text: str, unit: float = 1.0) -> Method:
        try:
            seconds = float(text) * unit
        except ValueError:
            fail(f"{self.path}: {algorithm}: expected a number of seconds or a ratio, got {text!r}.")
        return method_without_records(algorithm, label, "benchmark", {}, {"fit_time_s": Entry(1, seconds, None)})
