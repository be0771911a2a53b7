"""Comparison of two runs that share methods.

The runs may differ in seeds, version, machine or experiment.
"""
