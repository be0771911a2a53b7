"""The live view of a run: a page served on this machine from the files of a results folder alone.

`state` reads the folder, and `server` answers browsers, by itself or in a process beside a run.
"""
