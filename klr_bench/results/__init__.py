"""Results as rows: one file per finished cell, the tables made from them, and the keys that tell what is finished."""
