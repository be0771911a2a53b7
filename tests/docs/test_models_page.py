"""The Python code of docs/your_data/models.md runs, as far as its libraries are installed."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.conftest import ROOT

PAGE = ROOT / "docs" / "your_data" / "models.md"


@pytest.mark.filterwarnings("ignore")
def test_the_code_runs_and_models_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    scope: dict[str, object] = {}
    printed = []
    for block in blocks:
        if "import mlflow" in block and find_spec("mlflow") is None:
            continue
        exec(compile(block, PAGE.name, "exec"), scope)
        printed.append(capsys.readouterr().out)
    assert len(blocks) == 6
    assert printed[1] == "0.0\n"
    assert re.fullmatch(r"\[.*\]\n", printed[2])
    assert max(float(output.split()[-1]) for output in printed[3:5]) < 1e-5
