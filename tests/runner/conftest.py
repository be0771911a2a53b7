"""Reference records and a dask client, shared by several test modules."""

from typing import Any

import pandas as pd
import pytest

from tests.runner.test_interruptions import Workplace


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """Return the records of an uninterrupted run."""
    place = Workplace(tmp_path_factory.mktemp("undisturbed"))
    place.finish()
    assert len(place.events("end")) == 3 * 4 + 2 * 2 * 4  # cells, and the selection fits of one algorithm
    return place.records()


@pytest.fixture(scope="module")
def client() -> Any:
    import distributed  # a slow import

    shared = {"threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(n_workers=2, **shared) as cluster, distributed.Client(cluster) as client:
        yield client
