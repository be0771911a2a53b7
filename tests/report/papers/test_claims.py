"""Claims of a paper: a comparison for each pair of columns that is meant, and a verdict with three outcomes."""

from pathlib import Path
from typing import Any

import pytest

from klr_bench.config.locations import folders
from klr_bench.errors import KlrBenchError
from klr_bench.parsing import parse
from klr_bench.report.load import read_results
from klr_bench.report.measured import Measured, measure
from klr_bench.report.papers.benchmark import DATASETS, Benchmark
from klr_bench.report.papers.claims import FAILS, HOLDS, NOT_JUDGED, OWN_TABLE, UNDECIDED, JudgedClaim, judge
from klr_bench.report.papers.model import Claim
from klr_bench.report.papers.reading import paper_files
from tests.report.folders import record, reproduction, write

CONFIG: dict[str, Any] = {
    "repeats": 4,
    "datasets": {"digits": {"label": "Digits", "split": {"official": True}}},
    "algorithms": {"nc": {"label": "NC"}, "oskl": {"label": "OSKL"}, "dcd": {"label": "DCD"}},
    "sweep": {"oskl": {"G": [1, 2, 10]}},
}
ACCURACY = {1: 0.9, 2: 0.88, 10: 0.85}
COUNT = {1: 100, 2: 50, 10: 60}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Measured]:
    """Return two experiments on one data set: NC has 0.9 and 200, OSKL less; each scatters differently."""
    root, rows = tmp_path_factory.mktemp("results"), []
    for repeat, away in enumerate((-1, 1, -1, 1)):
        of_nc = {"accuracy": 0.9, "n_support": 200 + 3 * away, "last_accuracy": 0.8 + 0.01 * away}
        rows.append(record("nc", "", repeat, dataset="digits", **of_nc))
        for G in ACCURACY:
            of_oskl = {"accuracy": ACCURACY[G] + 0.0001 * G * away, "n_support": COUNT[G] + away}
            rows.append(record("oskl", f"G={G}", repeat, dataset="digits", **of_oskl))
    other = [record("dcd", "", 0, dataset="digits", accuracy=0.95)]
    folders = write(root / "mine", rows, CONFIG), write(root / "other", other, CONFIG)
    return {folder.name: measure(read_results(folder)) for folder in folders}


def judged(measured: dict[str, Measured], *statements: dict[str, Any], **claim: Any) -> JudgedClaim:
    content = {"says": "So it is.", "where": "section 1", "experiments": ["mine"], "statements": list(statements)}
    return judge(parse(Claim, content | claim), measured)


OSKL, NC = {"algorithms": ["oskl"]}, {"algorithms": ["nc"]}


def of_G(*values: int) -> dict[str, Any]:
    return OSKL | {"params": {"G": [*values]}}


def statement_of(of: dict[str, Any], metric: str, relation: str, than: Any = None, **more: Any) -> dict[str, Any]:
    right = {"than": than} if isinstance(than, dict) else {} if than is None else {"value": than}
    return {"metric": metric, "of": of, "relation": relation, **right, **more}


@pytest.mark.parametrize(
    ("statement", "verdict", "count"),
    [
        (statement_of(OSKL, "n_support", "below", NC), HOLDS, "3 of 3"),
        (statement_of(OSKL, "n_support", "above", NC), FAILS, "0 of 3"),
        (statement_of(NC, "n_support", "at least", OSKL, times=1.9), HOLDS, "3 of 3"),
        (statement_of(NC, "n_support", "at least", OSKL, times=2), UNDECIDED, "2 of 3, 1 undecided"),
        (statement_of(NC, "n_support", "at least", OSKL, times=2.1), FAILS, "2 of 3"),
        (statement_of(OSKL, "accuracy", "above", NC), FAILS, "0 of 3, 1 undecided"),
        (statement_of(of_G(1), "accuracy", "above", NC), UNDECIDED, "0 of 1, 1 undecided"),
        (statement_of(OSKL, "accuracy", "at least", NC, within=0.03), FAILS, "2 of 3"),
        (statement_of(OSKL, "accuracy", "at least", NC, within=0.06), HOLDS, "3 of 3"),
        (statement_of(OSKL, "accuracy", "below", along="G"), HOLDS, "2 of 2"),
        (statement_of(OSKL, "n_support", "below", along="G"), FAILS, "1 of 2"),
        (statement_of(OSKL, "accuracy", "above", 0.87), FAILS, "2 of 3"),
        (statement_of(OSKL, "accuracy", "at most", OSKL, same=["G"]), NOT_JUDGED, "-"),
        (statement_of(NC, "last_accuracy", "below", NC, than_metric="accuracy"), HOLDS, "1 of 1"),
        (statement_of(NC, "last_accuracy", "above", NC, than_metric="accuracy", spread=True), HOLDS, "1 of 1"),
        (statement_of({"algorithms": ["pegasos"]}, "accuracy", "above", 0.1), NOT_JUDGED, "-"),
        (statement_of(of_G(1), "accuracy", "above", of_G(2, 10)), HOLDS, "2 of 2"),
    ],
)
def test_a_statement_is_a_comparison_of_each_pair(
    measured: dict[str, Measured], statement: dict[str, Any], verdict: str, count: str
) -> None:
    claim = judged(measured, statement)
    assert (claim.verdict, claim.count()) == (verdict, count)
    assert verdict[1:] in claim.sentence()


def test_a_share_of_the_comparisons_may_be_enough(measured: dict[str, Measured]) -> None:
    statement = statement_of(OSKL, "n_support", "below", along="G")
    assert judged(measured, statement, share=0.5).verdict == HOLDS
    assert judged(measured, statement, share=0.51).verdict == FAILS
    equal = statement_of(OSKL, "accuracy", "below", NC)
    assert [judged(measured, equal, share=share).verdict for share in (0.66, 0.67)] == [HOLDS, UNDECIDED]


def test_a_spread_needs_two_runs(measured: dict[str, Measured]) -> None:
    statement = statement_of({"algorithms": ["dcd"]}, "accuracy", "above", 0.01, spread=True)
    assert judged(measured, statement, experiments=["other"]).verdict == NOT_JUDGED
    statement = statement_of(of_G(10), "accuracy", "above", 0.0001, spread=True)
    assert judged(measured, statement).verdict == HOLDS


def test_one_run_decides_only_large_differences(measured: dict[str, Measured]) -> None:
    """DCD has one run with 95 %: one point is not enough, and its spread is unknown."""
    dcd = {"algorithms": ["dcd"]}
    margins = {0.965: FAILS, 0.955: UNDECIDED, 0.945: UNDECIDED, 0.935: HOLDS}
    for value, verdict in margins.items():
        statement = statement_of(dcd, "accuracy", "above", value)
        assert judged(measured, statement, experiments=["other"]).verdict == verdict


@pytest.mark.parametrize(
    ("oskl", "nc", "verdict"),
    [
        ({"fit_time_s": 1.0}, {"fit_time_s": 9.0, "status": "timeout"}, HOLDS),
        ({"fit_time_s": 20.0}, {"fit_time_s": 9.0, "status": "timeout"}, UNDECIDED),
        ({"fit_time_s": 9.0, "status": "timeout"}, {"fit_time_s": 1.0}, FAILS),
        ({"fit_time_s": 9.0, "status": "timeout"}, {"fit_time_s": 20.0}, UNDECIDED),
        ({"fit_time_s": 9.0, "status": "timeout"}, {"fit_time_s": 20.0, "status": "timeout"}, UNDECIDED),
        ({"fit_time_s": 20.0}, {"fit_time_s": 9.0}, FAILS),
    ],
)
def test_a_time_limit_is_a_lower_bound(tmp_path: Path, oskl: dict[str, Any], nc: dict[str, Any], verdict: str) -> None:
    """A fit that it ended is slower than one that ended sooner, and perhaps than one that ended later."""
    rows = [
        record(name, variant, repeat, dataset="digits", **values)
        for name, variant, values in (("nc", "", nc), ("oskl", "G=1", oskl))
        for repeat in (0, 1)
    ]
    both = {"mine": measure(read_results(write(tmp_path / "mine", rows, CONFIG)))}
    assert judged(both, statement_of(OSKL, "fit_time_s", "below", NC)).verdict == verdict


@pytest.mark.parametrize("failed", ["nc", "oskl", None])
def test_a_claim_on_a_method_that_failed_is_undecided(tmp_path: Path, failed: str | None) -> None:
    rows = [
        record(name, variant, 0, dataset="digits", **({"status": "error"} if name == failed else values))
        for name, variant, values in (("nc", "", {"n_support": 9}), ("oskl", "G=1", {"n_support": 5}))
    ]
    both = {"mine": measure(read_results(write(tmp_path / "mine", rows, CONFIG)))}
    statements = [
        statement_of({"algorithms": [left]}, "n_support", "below", {"algorithms": [right]})
        for left, right in (("oskl", "nc"), ("dcd", "nc"))
    ]
    small = statement_of({"algorithms": [{"nc": "oskl"}.get(failed or "", "nc")]}, "n_support", "below", 100)
    found = judged(both, small, *statements)
    assert (found.verdict, found.n_incomparable) == ((UNDECIDED, 1) if failed else (HOLDS, 0))


@pytest.mark.parametrize("load", [0.0, 0.5])
def test_times_of_a_busy_machine_are_not_compared_with_a_constant(tmp_path: Path, load: float) -> None:
    rows = [record("nc", "", 0, dataset="digits", fit_time_s=9.0, load=load)]
    both = {"mine": measure(read_results(write(tmp_path / "mine", rows, CONFIG)))}
    assert judged(both, statement_of(NC, "fit_time_s", "below", 10.0)).n_incomparable == bool(load)


def test_columns_of_two_experiments_on_one_data_set_are_compared(measured: dict[str, Measured]) -> None:
    statement = {"metric": "accuracy", "of": {"algorithms": ["dcd"]}, "relation": "above", "than": OSKL}
    assert judged(measured, statement, experiments=["mine", "other"]).count() == "3 of 3"
    assert judged(measured, statement, experiments=["mine", "other"], datasets=["magic"]).verdict == NOT_JUDGED
    here = statement | {"than": OSKL | {"experiments": ["other"]}}
    assert judged(measured, here, experiments=["mine", "other"]).verdict == NOT_JUDGED


@pytest.mark.parametrize(("relation", "verdict"), [("below", HOLDS), ("above", FAILS)])
def test_methods_are_compared_across_data_sets_by_their_difficulty(tmp_path: Path, relation: str, verdict: str) -> None:
    """Digits have the smaller log loss: the columns of MAGIC are compared with those of Digits, not the other way."""
    rows = [
        record("oskl", f"G={G}", 0, key=f"{name}-{G}", dataset=name, sparsity=sparsity + G / 100, log_loss=loss)
        for name, sparsity, loss in (("digits", 0.9, 0.1), ("magic", 0.5, 0.3))
        for G in (1, 2)
    ]
    datasets = {"datasets": {"digits": {"label": "Digits"}, "magic": {"label": "MAGIC"}}}
    both = {"mine": measure(read_results(write(tmp_path / "mine", rows, CONFIG | datasets)))}
    claim = judged(both, statement_of(OSKL, "sparsity", relation, OSKL, across="log_loss", same=["G"]))
    assert (claim.verdict, len(claim.comparisons)) == (verdict, 2)
    assert "MAGIC: OSKL G=1 51.0 % against OSKL G=1 on Digits 91.0 %" in claim.sentence()


def test_the_sentence_has_the_numbers_or_why_there_is_none(measured: dict[str, Measured]) -> None:
    statement = {"metric": "accuracy", "of": OSKL, "relation": "at least", "than": NC, "within": 0.03}
    assert judged(measured, statement, experiments=["mine", "absent"]).sentence() == (
        "So it is. (section 1) Does not hold here: 2 of 3 comparisons. Against it: Digits: OSKL G=10 85.0 % against "
        "NC 90.0 %. Not run: absent."
    )
    assert judged(measured, open="It is too vague.").sentence().endswith("Not judged. It is too vague.")
    assert judged(measured, experiments=["absent"]).sentence().endswith("Not judged. Not run: absent.")


@pytest.mark.parametrize("changes", [{}, {"host": "there"}, {"load": 0.2}])
def test_times_are_compared_only_where_they_can_be(tmp_path: Path, changes: dict[str, Any]) -> None:
    here = {"dataset": "digits", "host": "here", "cpu": "A CPU", "load": 0.0, "n_train": 80, "n_test": 20}
    rows = [record("nc", "", 0, fit_time_s=9.0, **here), record("oskl", "G=1", 0, fit_time_s=1.0, **here | changes)]
    statement = {"metric": "fit_time_s", "of": OSKL, "relation": "below", "than": NC}
    found = judged({"mine": measure(read_results(write(tmp_path / "mine", rows, CONFIG)))}, statement)
    assert (found.verdict, found.count()) == ((NOT_JUDGED, "-") if changes else (HOLDS, "1 of 1"))
    assert ("Skipped: 1 comparisons of times from different machines" in found.sentence()) == bool(changes)
    of_sizes = {"metric": "n_train", "of": OSKL, "relation": "at least", "than": NC}
    both = judged({"mine": measure(read_results(tmp_path / "mine"))}, of_sizes, statement)
    assert both.verdict == (UNDECIDED if changes else HOLDS)


PAPERS = paper_files(folders()[:1])


def test_published_numbers_are_filtered_by_the_experiments_of_their_tables() -> None:
    """Table 6 of Qin et al. has the second stage; table 3, whose rows do not say so, the first."""
    paper = reproduction("qin2011")
    claim = next(claim for claim in paper.claims if "two stages on Fourier features" in claim.claim.says)
    assert [comparison.left for comparison in claim.published if "two_stage true" not in comparison.left] == []
    assert len(claim.published) == 8


@pytest.mark.parametrize("name", PAPERS)
def test_the_claims_of_the_papers_are_judged(name: str) -> None:
    """A claim that is not judged has a reason: its own, or an experiment that was not run."""
    paper = reproduction(name)
    claims = paper.claims
    name_of = {dataset.label: dataset.name for measured in paper.measured.values() for dataset in measured.datasets}
    assert len(claims) >= 4
    for claim in claims:
        assert claim.comparisons or claim.on_other_data or claim.claim.open or claim.missing, claim.claim.says
        datasets = {line.dataset for line in paper.lines} - {*paper.paper.stand_ins}
        benchmark = {label for _, label in DATASETS.values()}
        names = {name_of.get(comparison.dataset, comparison.dataset) for comparison in claim.comparisons} - benchmark
        assert not datasets or claim.claim.any_data or not names - datasets, "a substitute was judged"


@pytest.mark.parametrize("name", PAPERS)
def test_the_papers_own_numbers_fulfill_its_claims(name: str) -> None:
    """One claim of Tan et al. fails on their own table 2: 6.12 against 2.62 s."""
    claims = reproduction(name).claims
    failing = [claim.claim.says for claim in claims if claim.verdict == OWN_TABLE]
    expected = ["BCW is faster than liblinear's DCD"] if name == "tan2016aaai" else []
    assert len(failing) == len(expected), failing
    assert all(says.startswith(start) for says, start in zip(failing, expected, strict=True))


def test_the_nearest_method_of_each_algorithm_is_compared(tmp_path: Path) -> None:
    """OSKL has 30 features: of NC 20 and 40, 40 is nearer as a ratio; DCD has one method only."""
    rows = [
        record("oskl", "G=1", 0, dataset="digits", accuracy=0.9, n_selected=30),
        record("nc", "eta=1", 0, dataset="digits", accuracy=0.5, n_selected=20),
        record("nc", "eta=2", 0, dataset="digits", accuracy=0.8, n_selected=40),
        record("dcd", "", 0, dataset="digits", accuracy=0.7, n_selected=300),
    ]
    all_three = {"mine": measure(read_results(write(tmp_path / "mine", rows, CONFIG)))}
    others = {"algorithms": ["nc", "dcd"]}
    claim = judged(all_three, statement_of(OSKL, "accuracy", "above", others, nearest="n_selected"))
    assert {comparison.right.split(" ")[-2] for comparison in claim.comparisons} == {"80.0", "70.0"}


def test_results_on_other_data_decide_a_claim_on_any_data(measured: dict[str, Measured]) -> None:
    content = {
        "says": "So it is.",
        "where": "here",
        "experiments": ["mine"],
        "statements": [statement_of(NC, "accuracy", "above", 0.5)],
    }
    for any_data, verdict in ((False, NOT_JUDGED), (True, HOLDS)):
        claim = parse(Claim, content | {"any_data": any_data})
        assert judge(claim, measured, own_data=["magic"]).verdict == verdict


ROWS = "part,what,d,seconds,ratio\nconfidence,bcw1,54,0.5,\nconfidence,plain loop of arow over bcw1,54,,4.0\n"


def test_the_loop_of_the_benchmark_is_a_multiple_of_the_time_of_bcw(tmp_path: Path) -> None:
    (tmp_path / "confidence.csv").write_text(ROWS, encoding="utf-8")
    covtype, epsilon = Benchmark(tmp_path / "confidence.csv").datasets
    assert [method.entries["fit_time_s"].mean for method in covtype.methods] == [0.5, 2.0]
    assert not epsilon.methods


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [("0.5", "fast", "expected a number of seconds or a ratio, got 'fast'"), ("ratio", "more", "none called ratio")],
)
def test_a_benchmark_that_is_not_one_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    (tmp_path / "confidence.csv").write_text(ROWS.replace(old, new), encoding="utf-8")
    with pytest.raises(KlrBenchError, match=message):
        assert Benchmark(tmp_path / "confidence.csv").datasets
