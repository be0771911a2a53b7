"""Test accuracy against the examples seen."""

from klr_bench.report.figures.core.drawing import ACCURACY, EXAMPLES
from klr_bench.report.figures.core.traced import traced

FIGURE = traced(x=EXAMPLES, y=ACCURACY, usual=True)
