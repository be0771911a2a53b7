"""Online learners with a budget, which replace support vectors or project onto them."""
