"""Test accuracy against the number of selected features."""

from klr_bench.report.figures.core.drawing import ACCURACY
from klr_bench.report.figures.core.selected import against_selected

FIGURE = against_selected(ACCURACY)
