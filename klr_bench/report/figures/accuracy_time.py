"""Test accuracy against training time."""

from klr_bench.report.figures.core.drawing import ACCURACY, TIME
from klr_bench.report.figures.core.traced import traced

FIGURE = traced(x=TIME, y=ACCURACY)
