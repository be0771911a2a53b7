"""Kernel values of blocks of rows in cache-sized tiles, and what is solved with them."""
