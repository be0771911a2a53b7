"""Reading and checking of the configuration of a run."""
