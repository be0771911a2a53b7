"""What all classifiers share: validation, kernels, rows, losses, threads, compilation."""
