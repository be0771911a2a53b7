"""Content of the distributions, and equal versions in all places."""

import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

import klr_bench
from tests.conftest import ROOT

SCRIPT = runpy.run_path(str(ROOT / "scripts" / "release"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
INSIDE = (
    "klr_bench/__init__.pyi",
    "klr_bench/py.typed",
    "klr_bench/configs/config.yaml",
    "klr_bench/configs/experiment/quickstart.yaml",
    "klr_bench/configs/paper/zhang2013icml/tables.csv",
    "klr_bench/datasets/download.py",
    "klr_bench/report/page/assets/plotly-basic.min.js",
    "klr_bench/report/page/assets/plotly-LICENSE.txt",
    "klr_bench/report/page/templates/document.html",
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the wheel and the sdist of this checkout, by the names of their targets."""
    folder = tmp_path_factory.mktemp("dist")
    found = {}
    for builder in (WheelBuilder(str(ROOT)), SdistBuilder(str(ROOT))):
        found[builder.PLUGIN_NAME] = Path(next(builder.build(directory=str(folder), versions=["standard"])))
    return found


def test_the_wheel_holds_the_package_its_configs_and_nothing_else(built: dict[str, Path]) -> None:
    names, checked_in = zipfile.ZipFile(built["wheel"]).namelist(), SCRIPT["checked_in"]()
    assert SCRIPT["faults_of_wheel"](names, checked_in) == []
    for missing in INSIDE:
        rest = [name for name in names if name != missing]
        assert SCRIPT["faults_of_wheel"](rest, checked_in) == [f"the wheel lacks {missing}"]
    first, *_ = SCRIPT["faults_of_wheel"]([*names, "tests/conftest.py"], checked_in)
    assert first == "the wheel contains tests/conftest.py, which is not in the repository"


@pytest.mark.exhaustive
def test_the_sdist_builds_and_tests_without_results(built: dict[str, Path], tmp_path: Path) -> None:
    held = SCRIPT["members"](built["sdist"])
    assert SCRIPT["faults_of_sdist"](held) == []
    assert {"pyproject.toml", "README.md", "LICENSE", "tests/conftest.py", "scripts/release", *INSIDE[:1]} <= set(held)
    assert SCRIPT["faults_of_sdist"](["results/reference/a.csv", "klr_bench/datasets/download.py"]) == [
        "the sdist contains results/reference/a.csv"
    ]
    with tarfile.open(built["sdist"]) as archive:
        assert sum(member.size for member in archive) < 10 * 2**20
    shutil.unpack_archive(built["sdist"], tmp_path)
    (folder,) = tmp_path.iterdir()
    command = [sys.executable, "-m", "pytest", "--collect-only", "-p", "no:cacheprovider"]
    environment = os.environ | {"PYTHONPATH": ""}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_place_names_the_same_version_and_licence() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    headings = re.findall(r"^## (\d+\.\d+\.\d+)\b", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert "version" in PROJECT["dynamic"]  # read from klr_bench/version.py
    assert [citation["version"], headings[0]] == [klr_bench.__version__] * 2
    assert citation["license"] == PROJECT["license"] == "MIT"
    assert all((ROOT / path).is_file() for path in PROJECT["license-files"])


def test_every_dependency_has_a_least_version() -> None:
    wanted = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dask"]]
    assert len(SCRIPT["least_versions"](wanted)) == len(wanted)
    assert SCRIPT["least_versions"](["numpy>=1.26", "types-PyYAML"]) == ["numpy==1.26"]


def test_the_recipe_for_conda_has_the_version_and_dependencies_of_the_package() -> None:
    recipe = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8"))
    python, unix, *others = recipe["requirements"]["run"]
    assert recipe["context"]["version"] == klr_bench.__version__
    assert f">={recipe['context']['python_min']}" == PROJECT["requires-python"]
    assert [python, unix] == ["python >=${{ python_min }}", "__unix"]
    assert [requirement.replace("-base ", " ").replace(" ", "") for requirement in others] == PROJECT["dependencies"]
    assert recipe["build"]["python"]["entry_points"] == [
        f"{name} = {call}" for name, call in PROJECT["scripts"].items()
    ]
    assert recipe["about"]["license_file"] == PROJECT["license-files"]
    assert recipe["about"]["summary"] == PROJECT["description"]
