"""Fixtures that several test files use."""

import os
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

from klr_bench.config.datasets import read_dataset
from klr_bench.datasets.compression import SUFFIXES
from klr_bench.datasets.download import files as files_of

settings.register_profile("no clock", deadline=None)
settings.load_profile("no clock")

os.environ.pop("COLUMNS", None)  # pytest-xdist sets it in its workers

ROOT = Path(__file__).resolve().parents[1]
MIRROR = Path(os.environ.get("KLR_BENCH_MIRROR") or ROOT.parent / "shared" / "data").resolve()
needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
OPTIONAL = ("catboost", "celer", "lightgbm")
"""Libraries of the extra `peers` that the extra `test` lacks; tests that compare with them are skipped without them."""
WAITING = ("test_dask.py", "test_executors.py", "test_kills.py", "test_interruptions.py")
"""Files with few tests that wait for other processes; they start first, because the last file runs alone."""
READS_REFERENCES = re.compile(r'"results" / "reference"|\bREFERENCE\b|\breproduction\(')
OF_REFERENCES = [
    path.relative_to(ROOT / "tests").as_posix()
    for path in sorted((ROOT / "tests").rglob("test_*.py"))
    if READS_REFERENCES.search(path.read_text(encoding="utf-8"))
]
"""Tests that read results/reference, which an sdist does not contain."""
collect_ignore = [] if (ROOT / "results" / "reference").is_dir() else OF_REFERENCES


def pytest_addoption(parser: pytest.Parser) -> None:
    seed = os.environ.setdefault("EXHAUSTIVE_SEED", str(random.SystemRandom().randrange(10**6)))  # for xdist's workers
    parser.addoption("--attacks", type=int, default=1000, help="number of drawn attacks in tests/attack (1000)")
    parser.addoption("--exhaustive", type=float, default=0.0, help="share of the tests marked exhaustive that run (0)")
    parser.addoption("--exhaustive-seed", type=int, default=seed, help="seed that draws that share (a random one)")


def pytest_report_header(config: pytest.Config) -> str:
    share, seed = config.option.exhaustive, config.option.exhaustive_seed
    return f"exhaustive tests: a share of {share:g}, drawn with --exhaustive-seed={seed}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if collect_ignore:
        terminalreporter.write_line(f"Without results/reference these are left out: {', '.join(collect_ignore)}")
    if missing := [name for name in OPTIONAL if find_spec(name) is None]:
        terminalreporter.write_line(f"Without {', '.join(missing)} tests are skipped: pip install klr-bench[peers]")


def pytest_configure(config: pytest.Config) -> None:
    """Make pytest-xdist keep the order below instead of starting with the files of most tests."""
    config.option.loadscopereorder = False


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Draw the exhaustive tests, and start with the files that take longest, judged by names and numbers of tests."""
    left_out = {item for item in items if item.get_closest_marker("exhaustive") and not is_drawn(item.nodeid, config)}
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = [item for item in items if item not in left_out]
    sizes = Counter(item.path for item in items)
    items.sort(key=lambda item: (item.path.name not in WAITING, -sizes[item.path], str(item.path)))


def is_drawn(name: str, config: pytest.Config) -> bool:
    """Return True if an exhaustive test is in the share that runs, which its name and the seed determine."""
    return random.Random(f"{config.option.exhaustive_seed} {name}").random() < config.option.exhaustive


@pytest.fixture(scope="session", autouse=True)
def one_blas_thread() -> Iterator[None]:
    """Limit matrix products to one thread, because waiting BLAS threads slow down a busy machine."""
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="session")
def mirror() -> Path:
    """Return the folder with real data; tests that read it are marked with `mirror` and the data sets."""
    return MIRROR


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test of real data that the mirror does not have; with CI=true it fails."""
    names = [name for marker in item.iter_markers("mirror") for name in marker.args]
    if not (missing := missing_files(names, MIRROR)):
        return
    reason = (
        f"no {', '.join(missing)} in the data mirror {MIRROR}: set KLR_BENCH_MIRROR to a folder laid out "
        "<dataset>/<file>[.xz|.gz|.bz2]"
    )
    if os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def missing_files(names: Iterable[str], folder: Path) -> list[str]:
    """Return the files of data sets that a mirror does not have, neither plain nor compressed."""
    files = [file.name for name in names for file in files_of(read_dataset(name, [ROOT / "configs"]))]
    return [name for name in files if not any((folder / f"{name}{end}").is_file() for end in ("", *SUFFIXES))]


@pytest.fixture(scope="module")
def short_search() -> Iterator[None]:
    """Let `KLR` and `PartitionedKLR` search among two kernel widths and two penalties."""
    from klr_bench.estimators.batch import grid, selection  # import numba, which few tests need

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grid, "WIDTHS", (0.5, 1.0))
        patch.setattr(selection, "LAMS", (1e-2, 1e-3))
        yield
