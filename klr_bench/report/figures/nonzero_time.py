"""The share of non-zero coefficients against training time."""

from klr_bench.report.figures.core.drawing import NONZERO, TIME
from klr_bench.report.figures.core.traced import traced

FIGURE = traced(x=TIME, y=NONZERO)
