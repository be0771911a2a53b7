"""A user's paper: positions of its lines, substituted data, and lines that are refused."""

from pathlib import Path

import pytest

from klr_bench.cli import main
from tests.report.folders import record, write

PAPER = """\
title: My paper
authors: Me
venue: Here
year: 2026
reference: Me (2026)
tables:
  1: {title: Results, experiments: [my_experiment]}
stand_ins: {checkerboard: digits}
"""
TABLES = """\
table,dataset,algorithm,params,metric,mean,std,unit,label
1,moons,,,n_train,80,,count,Two moons
1,moons,nc,,accuracy,85.8,0.4,percent,Baseline
1,moons,oskl,"{""G"": 4}",accuracy,85.5,0.5,percent,Mine
1,moons,oskl,"{""G"": 4}",fit_time_s,2.5,,min,Mine
1,digits,nc,,accuracy,99.0,,percent,Baseline
"""
CONFIG = {
    "experiment": "my_experiment",
    "datasets": {"moons": {"label": "Moons"}, "checkerboard": {"label": "Checkerboard"}},
    "algorithms": {"nc": {"label": "NC"}, "oskl": {"label": "OSKL", "estimator": {"G": 4}}},
}


def write_own_paper(root: Path, name: str, paper_yaml: str = PAPER, comment: str = "") -> tuple[Path, Path]:
    """Write a paper, an experiment, and its results as results/<name>; return the folder and the experiment."""
    paper, experiment = root / "configs" / "paper" / "mine", root / "configs" / "experiment" / "my_experiment.yaml"
    for folder in (paper, experiment.parent):
        folder.mkdir(parents=True)
    (paper / "paper.yaml").write_text(paper_yaml, encoding="utf-8")
    (paper / "tables.csv").write_text(TABLES, encoding="utf-8")
    experiment.write_text(f"# @package _global_\n{comment}", encoding="utf-8")
    sizes = {"n_train": 80, "n_test": 20, "n_features": 2}
    rows = [
        record("nc", "", 0, dataset="moons", accuracy=0.86, fit_time_s=1.0, **sizes),
        record("oskl", "", 0, dataset="moons", accuracy=0.9, fit_time_s=60.0, params={"G": 4}, **sizes),
        record("nc", "", 0, key="c", dataset="checkerboard", accuracy=0.5, **sizes),
    ]
    write(root / "results" / name, rows, CONFIG)
    return paper, experiment


def test_a_paper_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    paper, experiment = write_own_paper(tmp_path, "a_name_of_its_own")
    assert main(["report", "experiment=a_name_of_its_own"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "NC 1/1 86.0 +0.2~° " in text
    assert "paper 85.8 ± 0.4" in text
    assert "OSKL 1/1 90.0‡ +4.5* 1.00 2.5x paper 85.5 ± 0.5 2.5" in text
    assert "paper: mine, table 1. diff: our value minus the paper's" in text
    assert "Moons: 80 training rows, 20 test rows, 2 features. In table 1, Two moons has 80 training rows." in text
    assert "Checkerboard replaces the paper's digits" in text
    assert "NC 1/1 50.0 paper 99.0" in text
    (paper / "tables.csv").write_text(TABLES.replace("moons,nc", "moons,ncc"), encoding="utf-8")
    assert main(["report", "experiment=a_name_of_its_own"]) == 2
    assert "tables.csv, line 3: algorithm: unknown value 'ncc'. Did you mean 'nc'?" in capsys.readouterr().err
    (paper / "tables.csv").write_text(TABLES.replace('""G""', '""bugdet""'), encoding="utf-8")
    assert main(["report", "paper=mine"]) == 2
    assert "tables.csv, line 4: unknown key 'params.bugdet'. Known: G, R, coef0" in capsys.readouterr().err
    experiment.write_text("# @package _global_\nsweep: {oskl: {budget: [9]}}\n", encoding="utf-8")
    assert main(["report", "paper=mine"]) == 2
    assert "unknown key 'params.bugdet'. Did you mean 'budget'?" in capsys.readouterr().err
    (paper / "tables.csv").write_text(TABLES.replace('""G""', '""budget""'), encoding="utf-8")
    assert main(["report", "paper=mine"]) == 0
