"""Text files larger than memory, read in chunks of rows."""
