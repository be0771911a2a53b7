"""What an experiment asked for, from its manifest: the lines of its table, their order and their labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from klr_bench.errors import KlrBenchError
from klr_bench.experiment.variants import Variant, value_text, variant_text
from klr_bench.report.published import load, tables_of

Column = tuple[str, Variant]
"""An algorithm and its variant."""


@dataclass(frozen=True)
class Plan:
    """The part of the resolved configuration that a report needs."""

    title: str
    repeats: int
    datasets: Mapping[str, Mapping[str, Any]]
    algorithms: Mapping[str, Mapping[str, Any]]
    sweep: Mapping[str, Mapping[str, list[Any]]]
    published: Mapping[str, Any] | None
    labels: Mapping[str, Mapping[str, str]]
    figures: list[str] | None = None
    metrics: list[str] | None = None
    """The figures and the columns that were asked for; None: the usual ones."""
    against: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """For numbers that compare two columns, what leads from a column to the other."""

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> Plan:
        """Read the plan from a manifest; KlrBenchError where it has none."""
        config = manifest.get("config")
        optional = ("labels", "figures", "metrics", "against")  # earlier manifests lack some of them
        names = [name for name in cls.__dataclass_fields__ if name not in optional]
        missing = [name for name in names if name not in (config or {})]
        if not isinstance(config, Mapping) or missing:
            message = (
                f"manifest.yaml: no {', '.join(f'config.{name}' for name in missing)} in it, or it cannot be "
                "read. Run the experiment again to write it anew; nothing finished is computed twice."
            )
            raise KlrBenchError(message)
        given = {name: config[name] for name in names}
        return cls(
            **given,
            labels=manifest.get("labels") or {},
            figures=config.get("figures"),
            metrics=config.get("metrics"),
            against=config.get("against") or {},
        )

    def columns(self) -> list[Column]:
        """Return the algorithms and variants in the order of the configuration."""
        return [
            (stem, Variant(dict(zip(self.sweep.get(stem, {}), values, strict=True))))
            for stem in self.algorithms
            for values in product(*self.sweep.get(stem, {}).values())
        ]

    def order(self, column: Column) -> tuple[Any, ...]:
        """Sort key: as in the configuration; after that, in natural order, what it does not know."""
        algorithm, variant = column
        sweep, stems = self.sweep.get(algorithm, {}), list(self.algorithms)
        places = [
            next((i for i, value in enumerate(known) if value == variant.get(name)), len(known))
            for name, known in sweep.items()
        ]
        place = stems.index(algorithm) if algorithm in stems else len(stems)
        return place, algorithm, variant.keys() != sweep.keys(), places, variant.order()

    def label(self, column: Column) -> str:
        """Return the print name of a column, in the paper's terms: "OSKL G=4"."""
        algorithm = column[0]
        label = self.algorithms.get(algorithm, {}).get("label") or self.labels.get("algorithms", {}).get(algorithm)
        return f"{label or algorithm} {self.variant_label(column)}".strip()

    def variant_label(self, column: Column) -> str:
        """Return the print name of a variant: its parameters are called as in the paper."""
        algorithm, variant = column
        terms = self.algorithms.get(algorithm, {}).get("terms") or {}
        return variant_text({terms.get(name, name): value for name, value in variant.items()})

    def dataset_label(self, dataset: str) -> str:
        """Return the print name of a data set."""
        label = self.datasets.get(dataset, {}).get("label") or self.labels.get("datasets", {}).get(dataset)
        return str(label or dataset)

    def published_name(self, name: str) -> str:
        """Return the paper's name of an algorithm, a data set or a parameter."""
        names: Mapping[str, str] = (self.published or {}).get("names") or {}
        return names.get(name, name)

    def published_values(self, column: Column) -> dict[str, object]:
        """Return the parameters of a column under the paper's names, and those that it has there besides."""
        values = {self.published_name(key): self.published_name(value_text(v)) for key, v in column[1].items()}
        besides: Mapping[str, Any] = (self.published or {}).get("params") or {}
        return {**values, **(besides.get(column[0]) or {})}

    def data_name(self, name: str) -> str:
        """Return what the paper calls the data that a data set was taken from."""
        names: Mapping[str, str] = (self.published or {}).get("data") or {}
        return names.get(name, self.published_name(name))

    def source(self, table: str | None) -> tuple[str, tuple[str, ...]] | None:
        """Return the paper and the tables to compare with, None where there are none.

        KlrBenchError where `table` says nothing about the data sets and algorithms of the experiment.
        """
        if not self.published:
            if table is None:
                return None
            message = f"table={table}: this experiment is compared with no published table; leave `table` out."
            raise KlrBenchError(message)
        paper, usual = str(self.published["paper"]), tables_of(self.published)
        names, datasets = (set(map(self.published_name, group)) for group in (self.algorithms, self.datasets))
        known = {*usual} | {r.table for r in load(paper) if r.dataset in datasets and r.algorithm in names}
        if table is not None and table not in known:
            message = (
                f"table={table}: table {table} of {paper} says nothing about the data sets and algorithms of "
                f"this experiment. Known: {', '.join(sorted(known))}."
            )
            raise KlrBenchError(message)
        return paper, (table,) if table else usual
