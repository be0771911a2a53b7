"""Sparsity, and accuracy relative to that at gamma = 1, against gamma - 1 of the auxiliary function."""

from __future__ import annotations

from klr_bench.report.figures.core.figure import Figure, Inputs, Needs
from klr_bench.report.figures.core.plot import COLOURS, Axis, Facet, Look, Plot, Series, drawable, fits_of, mean, spread
from klr_bench.report.labels import line_label
from klr_bench.report.table import Block, Line
from klr_bench.results.variants import Variant, as_number

PARAMETER = "aux_gamma"
SPARSITY, RELATIVE = Look("Sparsity", "o", "-", COLOURS[1]), Look("Relative accuracy", "s", "--", COLOURS[2])


def _plot(inputs: Inputs) -> Plot | None:
    fits, facets = fits_of(inputs), []
    for block in inputs.table.blocks:
        points = _points(block)
        sparsity, relative = (Series((look.label, Variant()), look, connected=True) for look in (SPARSITY, RELATIVE))
        base = next((accuracy for gamma, accuracy, _ in points if gamma == 1), points[0][1] if points else 1.0)
        for gamma, accuracy, line in points:
            if gamma > 1:
                keys = [str(row["key"]) for row in fits.get((block.dataset, line.algorithm, line.variant), [])]
                sparsity.add(gamma - 1, 100 * (mean(line, "sparsity") or 0.0), keys, line_label(line))
                sparsity.spread.append(100 * spread(line, "sparsity"))
                relative.add(gamma - 1, 100 * accuracy / base, keys, line_label(line))
                relative.spread.append(100 * spread(line, "accuracy") / base)
        if sparsity.x:
            facets.append(Facet(block.label, Axis("sparsity", "%"), [sparsity, relative]))
    return Plot(Axis(PARAMETER, "gamma - 1", logarithmic=True), facets) if facets else None


def _points(block: Block) -> list[tuple[float, float, Line]]:
    """Return gamma, the accuracy and the line of each variant, in ascending order."""
    found = []
    for line in block.lines:
        gamma, accuracy = drawable(as_number(line.variant.get(PARAMETER))), mean(line, "accuracy")
        if gamma and accuracy:
            found.append((gamma, accuracy, line))
    return sorted(found, key=lambda one: one[:2])


FIGURE = Figure(
    needs=Needs(metrics=("accuracy", "sparsity"), parameter=PARAMETER),
    plot=_plot,
    title="Sparsity, and accuracy relative to that at gamma = 1, against gamma - 1 of the auxiliary function",
)
