"""Online kernel learners without a limit on support vectors; many can share one pass."""
