"""Estimators whose fits are logged, delayed or made to fail.  FITS_LOG is the path of the log."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from klr_bench import KernelPerceptron


class Watched(KernelPerceptron):
    """Estimator that logs the start and end of each fit.

    Fits from the number in the file FITS_LOG + ".hold" on wait until the number changes or the file is removed.  The
    file FITS_LOG + ".pace" contains the seconds that each fit takes.
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
    """Estimator with a parameter `gamma` but without `kernel`."""

    def __init__(self, gamma=1.0, random_state=None):
        super().__init__(gamma=gamma, random_state=random_state)

    _parameter_constraints = {}  # noqa: RUF012


class OfTwoClasses(KernelPerceptron):
    """Estimator that declares support for two classes only."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


class Deadly(Watched):
    """Estimator that kills its process, as the system does when memory runs out."""

    def fit(self, X, y, callback=None):
        if len(y) > 4:
            self.log("start", len(y))
            os.kill(os.getpid(), signal.SIGKILL)
        return super().fit(X, y)


class Failing(Watched):
    """Estimator whose fits fail unless the file FITS_LOG + ".mended" exists."""

    def fit(self, X, y, callback=None):
        if not Path(os.environ["FITS_LOG"] + ".mended").exists():
            message = "this learner is broken"
            raise RuntimeError(message)
        return super().fit(X, y)


class Rehearsed(Watched):
    """Estimator with a slow rehearsal, which sets choice=7."""

    def rehearse(self, X, y):
        time.sleep(0.4)
        return type(self)(self.tag, 7, gamma=self.gamma, random_state=self.random_state)
