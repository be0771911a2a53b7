"""Linear classifiers: online learners, batch learners and feature selection."""
