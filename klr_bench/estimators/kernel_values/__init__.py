"""Kernel values of blocks of rows, computed in cache-sized tiles, and what is solved with them."""
