"""Classifiers that follow scikit-learn's conventions and do not depend on experiments."""
