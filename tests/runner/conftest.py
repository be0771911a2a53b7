"""Reference records shared by several test modules."""

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
