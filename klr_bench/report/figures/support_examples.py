"""Support vectors against the examples seen."""

from klr_bench.report.figures.core.drawing import EXAMPLES, SUPPORT
from klr_bench.report.figures.core.traced import traced

FIGURE = traced(x=EXAMPLES, y=SUPPORT, usual=True)
