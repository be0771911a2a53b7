"""Learners that the runner's tests watch: slow, failing, deadly.  FITS_LOG names the file that counts their fits."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from klr_bench import KernelPerceptron


class Watched(KernelPerceptron):
    """Writes a line at the start and at the end of each fit, and takes its time in between."""

    def __init__(self, seconds=0.2, tag=0, kernel="rbf", gamma=None, random_state=None):
        super().__init__(kernel=kernel, gamma=gamma, random_state=random_state)
        self.seconds = seconds
        self.tag = tag

    _parameter_constraints = {}  # noqa: RUF012

    def log(self, event, n):
        with Path(os.environ["FITS_LOG"]).open("a") as file:
            file.write(f"{event} {os.getpid()} {self.tag} {n} {self.random_state}\n")

    def fit(self, X, y, callback=None):
        if len(y) > 4:  # not the warm-up
            self.log("start", len(y))
            time.sleep(self.seconds)
        super().fit(X, y, callback=callback)
        if len(y) > 4:
            self.log("end", len(y))
        return self


class Deadly(Watched):
    """Kills the process that fits it, as the system does when memory runs out."""

    def fit(self, X, y, callback=None):
        if len(y) > 4:
            self.log("start", len(y))
            os.kill(os.getpid(), signal.SIGKILL)
        return super().fit(X, y)


class Failing(Watched):
    """Raises at every fit, unless the file FITS_LOG + ".mended" exists."""

    def fit(self, X, y, callback=None):
        if not Path(os.environ["FITS_LOG"] + ".mended").exists():
            message = "this learner is broken"
            raise RuntimeError(message)
        return super().fit(X, y)
