"""Online learners with a budget: one engine that replaces support vectors, one that projects onto them."""
