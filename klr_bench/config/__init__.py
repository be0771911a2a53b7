"""Configuration of runs: from YAML files and the command line to checked models."""
