"""Confidence-weighted linear learners: a Gaussian over the weights, updated example by example or by the batch."""
