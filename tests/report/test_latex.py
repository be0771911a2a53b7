"""LaTeX tables have what an author asks for, and compile into a paper of two columns without a line too long."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from klr_bench.cli import main
from klr_bench.report.render import Placing, document, table_files
from klr_bench.report.writing import ORIENTATIONS
from tests.report.folders import REFERENCE, table

PAPER = r"""\documentclass[twocolumn]{article}
\usepackage[T1]{fontenc}\usepackage{array,booktabs,rotating}
\begin{document}
As Table~\ref{tab:one} shows.
%s
\begin{thebibliography}{1}\bibitem{zhang2013icml} A. \bibitem{zhang2012aaai} B. \bibitem{qin2011} C.
\end{thebibliography}
\end{document}
"""


def tex(name: str, placing: Placing) -> str:
    built = table(REFERENCE / name)
    return table_files(built, document(built), ["tex"], placing)["table.tex"]


@pytest.mark.parametrize(
    ("name", "orientation"), [*zip(["oskl_magic", "l1_mnist49", "klr_figure5"], ORIENTATIONS, strict=True)]
)
def test_tables_compile_into_a_paper(name: str, orientation: str, tmp_path: Path) -> None:
    if shutil.which("pdflatex") is None:
        assert os.environ.get("CI") != "true", "pdflatex is missing: apt-get install texlive-latex-recommended"
        pytest.skip("there is no pdflatex")
    placing = Placing(caption=r"Of $\lambda$", label="tab:one", note="Best in bold.", orientation=orientation)
    (tmp_path / "paper.tex").write_text(PAPER % tex(name, placing), encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    for _ in range(2):
        process = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, timeout=120)
        assert process.returncode == 0, process.stdout.decode(errors="replace")[-2000:]
    log = (tmp_path / "paper.log").read_text(encoding="latin-1")
    wide = [float(points) for points in re.findall(r"Overfull \\hbox \(([\d.]+)pt too wide\)", log)]
    assert max(wide, default=0.0) < 1.0
    assert "undefined references" not in log


def test_an_author_chooses_caption_label_note_and_place() -> None:
    text = tex("klr_figure5", Placing(r"Of $\lambda$", "tab:t", "A note.", "landscape"))
    captions, labels = re.findall(r"\\caption\{(.*)\}", text), re.findall(r"\\label\{(.*)\}", text)
    assert len(captions) == text.count(r"\begin{sidewaystable}") == text.count(r"\footnotesize A note.") > 1
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
