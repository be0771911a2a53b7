"""Learners that the runner's tests watch and hold up: failing, deadly.  FITS_LOG names the file that counts fits."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from klr_bench import KernelPerceptron


class Watched(KernelPerceptron):
    """Writes a line at the start and at the end of each fit, and waits in between where a test holds it.

    FITS_LOG + ".hold" has a number: the fits from that one on wait for as long as it says so.  FITS_LOG + ".pace" has
    the seconds that each takes, if it is there.
    """

    def __init__(self, tag=0, choice=0, kernel="rbf", gamma=None, random_state=None):
        super().__init__(kernel=kernel, gamma=gamma, random_state=random_state)
        self.tag = tag
        self.choice = choice

    _parameter_constraints = {}  # noqa: RUF012

    def log(self, event, n):
        with Path(os.environ["FITS_LOG"]).open("a") as file:
            file.write(f"{event} {os.getpid()} {self.tag} {n} {self.random_state}\n")

    def wait(self):
        number = Path(os.environ["FITS_LOG"]).read_text().count("start")
        with suppress(FileNotFoundError):
            while number >= int(Path(os.environ["FITS_LOG"] + ".hold").read_text()):
                time.sleep(0.01)
        with suppress(FileNotFoundError):
            time.sleep(float(Path(os.environ["FITS_LOG"] + ".pace").read_text()))

    def fit(self, X, y, callback=None):
        if len(y) > 4:  # not the warm-up
            self.log("start", len(y))
            self.wait()
        super().fit(X, y, callback=callback)
        if len(y) > 4:
            self.log("end", len(y))
        return self


class OneKernel(KernelPerceptron):
    """Has a gamma and no choice of a kernel."""

    def __init__(self, gamma=1.0, random_state=None):
        super().__init__(gamma=gamma, random_state=random_state)

    _parameter_constraints = {}  # noqa: RUF012


class OfTwoClasses(KernelPerceptron):
    """Says that it takes two classes only."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


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


class Rehearsed(Watched):
    """Takes a second to find that choice=7 is the one to fit."""

    def rehearse(self, X, y):
        time.sleep(1)
        return type(self)(self.tag, 7, gamma=self.gamma, random_state=self.random_state)


class Rapt(KernelPerceptron):
    """Holds Python's lock for some seconds of its fit, as compiled code may do."""

    def __init__(self, seconds=20, kernel="rbf", gamma=None, random_state=None):
        super().__init__(kernel=kernel, gamma=gamma, random_state=random_state)
        self.seconds = seconds

    _parameter_constraints = {}  # noqa: RUF012

    def fit(self, X, y):
        if len(y) > 4:
            ctypes.PyDLL(None).sleep(self.seconds)
        return super().fit(X, y)


class Doomed(Deadly):
    """Kills the process that fits it where its choice is 1, and holds Python's lock for a minute where it is 2."""

    def fit(self, X, y):
        if self.choice == 1:
            return super().fit(X, y)
        if self.choice == 2 and len(y) > 4:
            ctypes.PyDLL(None).sleep(60)
        return Watched.fit(self, X, y)
