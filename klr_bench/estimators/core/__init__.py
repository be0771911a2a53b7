"""What the solvers share: kernels, rows, expansions, features, losses, compiled code, the base for two classes."""
