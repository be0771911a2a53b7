"""From a table of values to text: all print names of variants and all numbers are spelled here."""

from klr_bench.report.render.csv import comma_separated
from klr_bench.report.render.latex import latex
from klr_bench.report.render.markdown import markdown
from klr_bench.report.render.terminal import show

__all__ = ["WRITERS", "show"]

WRITERS = {"md": markdown, "tex": latex, "csv": comma_separated}
"""What makes the file of a table, by its suffix."""
