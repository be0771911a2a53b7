"""The table of a paper that an experiment sets its results beside: to go once papers are folders of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from klr_bench.experiment.config.typed import Text, parse


@dataclass(frozen=True)
class PublishedConfig:
    """A table of a paper, and what the paper calls algorithms, data sets and parameters."""

    paper: str
    table: int | str | list[Text] = ""
    columns: str | None = None
    names: dict[str, Text] | None = None
    params: dict[str, dict[str, Text]] | None = None
    data: dict[str, str] | None = None


def check_published_shape(published: dict[str, Any] | None) -> None:
    """Refuse unknown keys and values of another type under ``published``."""
    if published is not None:
        parse(PublishedConfig, published, "published.")
