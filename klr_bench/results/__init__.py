"""Results of experiments: cell files, the tables built from them, and cache keys."""
