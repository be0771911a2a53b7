"""Training time against the number of selected features."""

from klr_bench.report.figures.core.drawing import FIT_TIME
from klr_bench.report.figures.core.selected import against_selected

FIGURE = against_selected(FIT_TIME)
