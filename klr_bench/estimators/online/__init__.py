"""Online kernel learners with unlimited support vectors; several can be fitted in one pass."""
