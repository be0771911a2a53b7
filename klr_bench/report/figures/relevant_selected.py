"""The share of the relevant features that were found, against the number of selected features."""

from klr_bench.report.figures.core.drawing import Axis
from klr_bench.report.figures.core.selected import against_selected

FIGURE = against_selected(Axis("relevant_found", "Relevant features found (%)", 100.0))
