"""Hide from klr_bench what Windows lacks: Python imports this file at its start if its folder is in PYTHONPATH."""

import builtins
import io
import os
import signal
import sys
import types

MODULES = ("resource", "fcntl", "pwd", "grp", "termios")
NAMES = {
    *("SIGALRM", "SIGKILL", "SIGHUP", "SIGUSR1", "alarm", "setitimer", "pause", "pthread_kill"),
    *("nice", "fork", "killpg", "setsid", "getuid", "geteuid", "getloadavg", "uname", "sched_getaffinity", "mkfifo"),
    *("O_NONBLOCK", "O_NOFOLLOW", "O_DIRECTORY", "O_CLOEXEC", "posix_fadvise", "fchmod", "WNOHANG"),
}
"""Attributes of `os` and `signal`."""

import_module, open_file = builtins.__import__, io.open


def is_ours(frame: types.FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).partition(".")[0] == "klr_bench"


class Hidden(types.ModuleType):
    """Module without the attributes in NAMES, as seen from klr_bench."""

    def __getattribute__(self, name):
        if name in NAMES and is_ours(sys._getframe(1)):
            raise AttributeError(name)
        return super().__getattribute__(name)


def import_visible(name, *args, **kwargs):
    if name in MODULES and is_ours(sys._getframe(1)):
        raise ModuleNotFoundError(name)
    return import_module(name, *args, **kwargs)


def open_visible(file, *args, **kwargs):
    """Open a file for pathlib; psutil, which reads other sources on Windows, uses the builtin function."""
    if str(file).startswith("/proc/"):
        raise FileNotFoundError(2, "No such file or directory", str(file))
    return open_file(file, *args, **kwargs)


if __name__ == "sitecustomize":  # tests import the constants only
    for module in (os, signal):
        module.__class__ = Hidden
    builtins.__import__ = import_visible
    io.open = open_visible
