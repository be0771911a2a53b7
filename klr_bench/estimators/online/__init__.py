"""Online kernel learners without a budget, many of which can be trained in one pass."""
