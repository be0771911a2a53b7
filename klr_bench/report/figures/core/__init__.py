"""Code shared by all figures: requirements, plots, colors, axes and panels."""
