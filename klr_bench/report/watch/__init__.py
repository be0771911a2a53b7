"""A page that shows a run while it goes on, served on this machine from nothing but the files of its results folder.

`watched` reads the folder, `words` says how the run stands, `table` spells the table as HTML, `page` puts a header on
top of it, `server` answers browsers, and `beside` does so in a process beside a run.
"""
