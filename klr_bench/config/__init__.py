"""Read and check the configuration of a run."""
