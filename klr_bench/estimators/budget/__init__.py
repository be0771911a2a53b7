"""Online learners with a budget of support vectors: one engine that replaces them, one that projects onto them."""
