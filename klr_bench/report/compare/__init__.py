"""Compare two runs: other seeds, another version, another machine, or another experiment with the same methods."""
