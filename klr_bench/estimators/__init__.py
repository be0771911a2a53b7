"""The classifiers, with the conventions of scikit-learn: they know nothing of experiments and reports."""
