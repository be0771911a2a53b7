"""scripts/benchmark, whose parts take too long for a test, can be imported."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_an_unknown_part_prints_the_parts() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "benchmark"), "nothing"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 2, done.stderr
    assert "passes  passes of NystroemKLR" in done.stdout
