"""What the solvers share: kernels, rows, expansions, features, losses, compiled code, the base class of two classes."""
