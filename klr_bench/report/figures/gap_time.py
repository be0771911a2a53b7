"""The duality gap over the objective against training time."""

from klr_bench.report.figures.core.drawing import GAP, TIME
from klr_bench.report.figures.core.traced import traced

FIGURE = traced(x=TIME, y=GAP)
