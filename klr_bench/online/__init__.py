"""Online kernel learners that only insert: one engine, one short file an algorithm, many learners in one pass."""

from __future__ import annotations

from klr_bench.online.many import fit_many

__all__ = ["fit_many"]
