"""Building blocks of the solvers: kernels, rows, features, losses and compiled code."""
