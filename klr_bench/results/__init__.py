"""Results as rows: a file for each finished cell, tables made from these, and keys that tell what is finished."""
