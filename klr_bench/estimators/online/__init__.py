"""Online kernel learners that only insert: one engine, one short file an algorithm, many learners in one pass."""
