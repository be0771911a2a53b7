"""Online kernel learners that keep at most a given number of support vectors."""
