"""Solvers for sparse kernel logistic regression, compatible with scikit-learn.

The public names are listed in `__init__.pyi`.  They are imported when they are first used, so that the command line
starts quickly.
"""

import lazy_loader

from klr_bench.version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__.append("__version__")
