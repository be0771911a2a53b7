"""Test accuracy against support vectors, while a learner sees its examples."""

from klr_bench.report.figures.core.drawing import ACCURACY, SUPPORT
from klr_bench.report.figures.core.traced import traced

FIGURE = traced(x=SUPPORT, y=ACCURACY)
