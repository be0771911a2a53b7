"""Classifiers of other libraries with the same kernel, features or objective."""
