"""Definition and computation of the metrics of fitted classifiers."""
