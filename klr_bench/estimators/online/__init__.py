"""Online kernel learners that only insert support vectors; many can learn in one pass."""
