"""Building blocks of the solvers: kernels, row storage, losses, compilation, what all classifiers share."""
