"""Results: one file per finished cell, tables made from these files, and keys."""
