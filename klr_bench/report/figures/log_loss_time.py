"""Log loss on the test rows against training time."""

from klr_bench.report.figures.core.drawing import LOG_LOSS, TIME
from klr_bench.report.figures.core.traced import traced

FIGURE = traced(x=TIME, y=LOG_LOSS)
