"""What a long fit prints with `verbose`: where it stands, about once a second."""

from __future__ import annotations

import time

PAUSE_S = 1.0
"""Seconds between two lines with verbose=1; with more there is one for each call."""
TOLD = ("n_support", "nonzero_fraction", "objective", "duality_gap")
"""What is told of what an estimator keeps at a checkpoint, in this order."""


def telling(estimator, callback):
    """Return a callback that prints where the fit of a verbose estimator stands, and then asks `callback`."""
    if not estimator.verbose:
        return callback
    begun = told = time.monotonic()

    def call(model, t):
        nonlocal told
        now = time.monotonic()
        if now - told >= PAUSE_S or estimator.verbose > 1:
            told, kept = now, model.progress()
            numbers = "".join(f", {name} {kept[name]:.4g}" for name in TOLD if name in kept)
            print(f"[{type(model).__name__}] n_iter {model.n_iter_}, {now - begun:.1f} s{numbers}", flush=True)  # noqa: T201
        return callback is not None and callback(model, t)

    return call
