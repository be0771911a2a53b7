"""What is measured of a fit, and how each number is called, compared and printed."""
