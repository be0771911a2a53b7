"""Interactive reports: a self-contained HTML file, or a static site with shared scripts.

`content` collects the content of a page, `html` writes it as a file, and `site` writes a static site.  Pages load
nothing from elsewhere: they hold all data, and no text of a name, label or message becomes markup or script.
"""
