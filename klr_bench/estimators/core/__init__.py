"""Building blocks of the solvers: kernels, row storage, feature maps, losses, compilation."""
