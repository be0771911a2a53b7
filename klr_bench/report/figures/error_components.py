"""The error of approximate kernel features against their number, as theorem 2 of Qin et al. (2011) bounds it."""

from klr_bench.report.figures.core.drawing import COMPONENTS, KERNEL_ERROR
from klr_bench.report.figures.core.swept import swept

FIGURE = swept(x=COMPONENTS, y=KERNEL_ERROR)
