"""The records that several files of tests compare theirs with."""

import pandas as pd
import pytest

from tests.runner.test_interruptions import Workplace


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """The records of a run that nobody disturbed."""
    place = Workplace(tmp_path_factory.mktemp("undisturbed"))
    place.finish()
    assert len(place.events("end")) == 3 * 4 + 2 * 2 * 4  # cells, and the selection of one of them
    return place.records()
