"""Reports that one looks into: one self-contained HTML file, or a small static site that shares its script.

`content` says what is on a page, `data` holds the tables and plots that its script shows, `html` makes HTML of both,
and `write` makes files of it.  Pages load nothing: they hold all data, and no text of a name, label or message becomes
markup or script.
"""
