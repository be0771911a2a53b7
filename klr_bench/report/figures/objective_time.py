"""The objective against training time."""

from klr_bench.report.figures.core.drawing import OBJECTIVE, TIME
from klr_bench.report.figures.core.traced import traced

FIGURE = traced(x=TIME, y=OBJECTIVE)
