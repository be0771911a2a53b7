"""Other libraries' classifiers that share a kernel, features or objective with klr-bench."""
