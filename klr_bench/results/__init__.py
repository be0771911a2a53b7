"""Results of experiments: cell files, the tables built from them, and their content keys."""
