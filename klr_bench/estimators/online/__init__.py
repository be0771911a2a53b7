"""Online kernel learners that only insert: one engine, one short file per algorithm, many learners in one pass."""
