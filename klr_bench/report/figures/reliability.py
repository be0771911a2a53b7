"""The share of positive test rows against the predicted probability, bin by bin.

The rows of all repeats are counted together; the area of a marker is their share of the test rows, and bins with fewer
than LEAST rows are left out.
"""

from __future__ import annotations

from klr_bench.report.figures.core.figure import Figure, Inputs, Needs
from klr_bench.report.figures.core.plot import Axis, Facet, Plot, Series, curve_of, fits_of, looks_of, mean
from klr_bench.report.labels import line_label

LEAST = 20
PREDICTED, OBSERVED = Axis("predicted", "Predicted probability"), Axis("positive", "Observed share")


def _plot(inputs: Inputs) -> Plot | None:
    records = inputs.records[inputs.records["status"] == "ok"]
    counted = inputs.reliability.merge(records[["key", "dataset", "algorithm", "variant"]], on="key")
    counted["predicted"] *= counted["n"]
    counted["positive"] *= counted["n"]
    curves = {tuple(column): rows for column, rows in counted.groupby(["dataset", "algorithm", "variant"], sort=False)}
    blocks = [block for block in inputs.table.blocks if any(block.dataset == column[0] for column in curves)]
    lines = [line for block in blocks for line in block.lines if mean(line, "ece") is not None]
    looks, fits = looks_of({curve_of(line): line_label(line) for line in lines}, dashed=True), fits_of(inputs)
    facets = []
    for block in blocks:
        series = []
        for curve, look in looks.items():
            rows = curves.get((block.dataset, *curve))
            bins = rows.groupby("bin")[["n", "predicted", "positive"]].sum() if rows is not None else None
            if bins is None or (bins["n"] < LEAST).all():
                continue
            bins = bins[bins["n"] >= LEAST]
            keys = [str(row["key"]) for row in fits.get((block.dataset, *curve), [])]
            one = Series(curve, look, connected=True, sizes=(14 + 70 * bins["n"] / bins["n"].sum()).tolist())
            for n, predicted, positive in bins.itertuples(index=False):
                one.add(predicted / n, positive / n, keys, f"{look.label}, {n:,.0f} test rows")
            series.append(one)
        if series:
            facets.append(Facet(block.label, OBSERVED, series))
    return Plot(PREDICTED, facets, diagonal=True) if facets else None


FIGURE = Figure(
    needs=Needs(metrics=("ece",), bins=True),
    plot=_plot,
    title="The share of positive test rows against the predicted probability, bin by bin",
    comes_with="ece",
)
