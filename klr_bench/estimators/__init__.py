"""Classifiers with scikit-learn's interface, usable without the experiment runner."""
