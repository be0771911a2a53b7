"""The version of klr-bench, which all modules can import."""

__version__ = "0.1.0"
