"""Online kernel learners with unlimited support vectors; several learners can share a pass."""
