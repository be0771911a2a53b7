"""Published numbers and claims of papers, compared with measured results."""
