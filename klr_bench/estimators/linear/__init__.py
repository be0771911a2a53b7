"""Linear learners: online with a covariance of the weights, in whole batches, with selected features."""
