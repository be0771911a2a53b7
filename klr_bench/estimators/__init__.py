"""Classifiers that follow scikit-learn's conventions, independent of experiments and reports."""
