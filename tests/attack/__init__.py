"""Attacks: input that is wrong, extreme, damaged or hostile, made from the declared keys, formats and public classes.

Each ends in one message of at most five lines with exit status 2, in a row of results with the reason, or in the right
result: never in a traceback, a hang, a silent wrong number, or code that was not meant to run.

A list of attacks runs whole.  A test marked `drawn(share)` runs with that share of ``--attacks`` seeds (1,000).
"""
