"""What the figures share: what one declares and needs, lines of a table, curves, looks, axes and panels."""
