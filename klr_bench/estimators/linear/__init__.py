"""Linear learners: one pass with a covariance of the weights, whole batches, selected features."""
