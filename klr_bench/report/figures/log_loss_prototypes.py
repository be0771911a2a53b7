"""Log loss against the number of prototypes."""

from klr_bench.report.figures.core.drawing import LOG_LOSS, PROTOTYPES
from klr_bench.report.figures.core.swept import swept

FIGURE = swept(x=PROTOTYPES, y=LOG_LOSS)
