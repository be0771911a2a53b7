"""Linear classifiers: confidence-weighted and other online learners, batch learners, and feature selection."""
