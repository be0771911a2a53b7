"""LaTeX tables have what an author asks for, and fit on the pages of articles of one and two columns."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import pytest

from klr_bench.cli import main
from klr_bench.config.locations import config_dir
from klr_bench.report.paper_pages import documents_of
from klr_bench.report.render import Placing, document, table_files, texts_of
from klr_bench.report.writing import ORIENTATIONS
from tests.report.folders import REFERENCE, reproduction, table

CLASSES = {"one column": r"\documentclass{article}", "two columns": r"\documentclass[twocolumn]{article}"}
PAPER = r"""%s
\usepackage[T1]{fontenc}\usepackage{array,booktabs,rotating}
\begin{document}
%s
\bibliographystyle{plain}\bibliography{references}
\end{document}
"""
FAULTS = re.compile(r"^Table of (.*)|(Overfull .*|.*Float too large.*|LaTeX Warning: .*undefined.*|! .*)", re.MULTILINE)
RUN = [path.parent.name for path in sorted(REFERENCE.glob("*/records.csv"))]
REPRODUCED = [path.parent.name for path in sorted((config_dir() / "paper").glob("*/paper.yaml"))]


built = cache(table)


def files_of(name: str, placing: Placing | None = None) -> dict[str, str]:
    results = built(REFERENCE / name)
    return table_files(results, document(results), ["tex"], placing)


@cache
def all_files() -> dict[str, dict[str, str]]:
    papers = {name: texts_of(documents_of(reproduction(name)), "tables", ["tex"]) for name in REPRODUCED}
    return {name: files_of(name) for name in RUN} | papers


def tex(name: str, placing: Placing | None = None) -> str:
    return files_of(name, placing)["table.tex"]


def faults(tables: Mapping[str, str], references: Iterable[str], head: str, folder: Path) -> list[str]:
    """Return what pdflatex reports of an article with these tables, each on pages of its own."""
    if shutil.which("pdflatex") is None:
        assert os.environ.get("CI") != "true", "pdflatex is missing: apt-get install texlive-latex-recommended"
        pytest.skip("there is no pdflatex")
    text = "\n".join(rf"\clearpage\typeout{{Table of {name}}}{content}" for name, content in tables.items())
    (folder / "paper.tex").write_text(PAPER % (head, text), encoding="utf-8")
    (folder / "references.bib").write_text("\n".join(references), encoding="utf-8")
    latex = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper"]
    for command in (latex, ["bibtex", "paper"], latex, latex):
        process = subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=300)
        assert process.returncode == 0, process.stdout.decode(errors="replace")[-2000:]
    found, name = [], ""
    for place, fault in FAULTS.findall((folder / "paper.log").read_text(encoding="latin-1")):
        name = place or name
        found += [f"{name}: {fault}"] if fault else []
    return found


@pytest.mark.parametrize("head", CLASSES.values(), ids=CLASSES)
@pytest.mark.exhaustive
def test_all_tables_fit_on_the_pages_of_an_article(head: str, tmp_path: Path) -> None:
    tables = {name: texts[min(texts, key=lambda file: file.endswith(".bib"))] for name, texts in all_files().items()}
    references = (texts["references.bib"] for texts in all_files().values() if "references.bib" in texts)
    assert faults(tables, dict.fromkeys(references), head, tmp_path) == []


@pytest.mark.parametrize("head", CLASSES.values(), ids=CLASSES)
def test_tables_fit_in_each_orientation(head: str, tmp_path: Path) -> None:
    placings = {name: Placing(r"Of $\lambda$", "tab:one", "Best in bold.", name) for name in ORIENTATIONS}
    tables = {
        f"{run} as {name}": tex(run, placing)
        for run in ("oskl_magic", "l1_mnist49")
        for name, placing in placings.items()
    }
    if "twocolumn" not in head:
        tables = {name: text for name, text in tables.items() if not name.endswith(" column")}
    tables["reference"] = r"As Table~\ref{tab:one} shows \cite{zhang2013icml}."
    assert faults(tables, [files_of("oskl_magic")["references.bib"]], head, tmp_path) == []


def test_an_author_chooses_caption_label_note_and_place() -> None:
    text = tex("klr_figure5", Placing(r"Of $\lambda$", "tab:t", "A note.", "landscape"))
    captions, labels = re.findall(r"\\caption\{(.*)\}", text), re.findall(r"\\label\{(.*)\}", text)
    assert len(captions) == text.count(r"\begin{sidewaystable*}") == text.count(" A note.}") > 1
    assert all(caption.startswith(r"Of $\lambda$") for caption in captions)
    assert len(set(captions)) == len(captions) == len(set(labels)) == len(labels)
    assert labels[:2] == ["tab:t", "tab:t-2"]


def test_columns_are_those_that_are_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["report", "experiment=oskl_magic", f"results_dir={REFERENCE}", f"output={tmp_path}"]
    assert main([*arguments, "format=md,pdf", "columns=n_support,accuracy"]) == 0
    (head,) = (line for line in (tmp_path / "table.md").read_text().splitlines() if line.startswith("| MAGIC"))
    heads = [text.strip() for text in head.strip("|").split("|")]
    expected = ["MAGIC", "ok", "Support vectors", "Accuracy (%)"]
    assert [head for head in heads if head not in ("diff", "ratio")] == expected
    assert {path.read_bytes()[:5] for path in tmp_path.glob("*.pdf")} == {b"%PDF-"}
    capsys.readouterr()
    for wrong, message in (
        (["columns=acuracy"], "Did you mean 'accuracy'?"),
        (["columns=objective"], "no record of oskl_magic has objective"),
        (["format=tex", "orientation=colum"], "Did you mean 'column'?"),
        (["caption=MAGIC"], "add tex to format="),
    ):
        assert main([*arguments, *wrong]) == 2
        assert message in capsys.readouterr().err
    assert main([*arguments, "format=md", "columns=ece"]) == 0, "also what the run did not ask for"


def test_the_caption_is_short_and_everything_else_is_in_the_note() -> None:
    text = tex("oskl_magic", Placing())
    (caption,) = re.findall(r"\\caption\{(.*)\}", text)
    assert len(caption) < 240
    assert caption.endswith(r"\cite{zhang2013icml}.")
    assert "resizebox" not in text
    assert "Omitted for lack of space: spread of times, ok" in text
    assert text.partition(r"\bottomrule")[0].count(r"\midrule") == 5, "one per algorithm"
    assert "spread of times, ok, " in tex("oskl_magic", Placing(orientation="column"))
