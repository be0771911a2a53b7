"""Sentences below a published table: settings, causes, power, spreads and orders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from klr_bench.metrics.labels import METRICS
from klr_bench.report.labels import pluralize, title_of
from klr_bench.report.paper_texts import calibration_sentences, measured_text, position_text, published_text
from klr_bench.report.papers.claims import MOST_LISTED
from klr_bench.report.papers.evidence import orders
from klr_bench.report.papers.match import Match
from klr_bench.report.papers.model import Cause
from klr_bench.report.papers.reproduction import Reproduction, selection_sentence
from klr_bench.report.papers.verdicts import CALIBRATED_MARK, Kind, NotCompared, Verdict

CAUSE_OUTCOMES = {True: "Holds", None: "Undecided", False: "Does not hold"}
TIMES = "Times were measured on other machines and are not compared."


def selections(reproduction: Reproduction, experiments: Iterable[str]) -> list[str]:
    """Return sentences on parameter selection, and on settings calibrated to a figure."""
    entries = (*reproduction.paper.tables.values(), *reproduction.paper.figures.values())
    by_sentence: dict[str, dict[str, None]] = {}
    for name in experiments:
        if name in reproduction.measured:
            chosen = [entry.calibrated for entry in entries if entry.calibrated and name in entry.experiments]
            sentences = [selection_sentence(reproduction.measured[name].manifest)]
            sentences += [f"{CALIBRATED_MARK} {setting}" for setting in chosen]
            for sentence in filter(None, sentences):
                by_sentence.setdefault(sentence, {})[name] = None
    return [f"{', '.join(names)}: {sentence}" for sentence, names in by_sentence.items()]


def causes_of(reproduction: Reproduction, number: str) -> list[tuple[Cause, list[Match]]]:
    """Return the causes of differences in a table, each with the numbers that it explains."""
    explained = [match for match in reproduction.matches_by_table[number] if match.verdict is Verdict.EXPLAINED]
    distinct = {cause.because: cause for cause in reproduction.paper.causes}
    causes = [(cause, [match for match in explained if match.reason == text]) for text, cause in distinct.items()]
    return [(cause, matches) for cause, matches in causes if matches]


def remarks(reproduction: Reproduction, number: str) -> list[str]:
    """Return the sentences below a table, which end with what is not compared."""
    matches = reproduction.matches_by_table[number]
    results = [match for match in matches if match.printed.algorithm and match.not_compared is None]
    compared = dict.fromkeys(match.experiment for match in results)
    unexplained = [match for match in matches if match.verdict is Verdict.UNEXPLAINED]
    sentences = [*calibration_sentences(matches), *selections(reproduction, compared)]
    sentences += [*size_sentences(reproduction, number), *power_sentences(matches)]
    sentences += [*spread_sentences(matches), *order_sentences(matches)]
    times, other_data, unavailable, not_run = (
        [match for match in matches if match.not_compared is reason]
        for reason in NotCompared
        if reason not in (NotCompared.OTHER_METHOD, NotCompared.CHANGED)
    )
    sentences += [f"Differs, unexplained: {pairs(unexplained)}"] if unexplained else []
    sentences += attempts(unexplained)
    places = dict.fromkeys((match.dataset_label, match.printed.dataset, match.reason) for match in other_data)
    for ours, published, command in places:
        sentences.append(
            f"{published}: measured on other data ({ours}), so the values are not compared."
            + (f" On the data of the paper: {command}" if command else "")
        )
    if times:
        sentences.append(TIMES)
    if unlike := [match for match in times if match.entry and not match.entry.alike]:
        sentences.append(f"Measured on a busy machine, or not on the main machine of the experiment: {_named(unlike)}.")
    for what, group in (("Unavailable", unavailable), ("Not run", not_run)):
        for reason in dict.fromkeys(match.reason for match in group):
            named = _named([match for match in group if match.reason == reason])
            sentences.append(f"{what}: {named}. {reason}".rstrip())
    return sentences


def size_sentences(reproduction: Reproduction, number: str) -> list[str]:
    """Return a sentence for each data set with compared results whose size differs."""
    compared = [match for match in reproduction.matches if match.not_compared is None]
    printed = [match.printed for match in compared]
    datasets = {line.dataset for line in printed if line.algorithm and line.table == number}
    facts = [match for match in compared if not match.printed.algorithm and match.printed.dataset in datasets]
    return [
        f"{position_text(fact)}: {measured_text(fact)}, but {published_text(fact.printed)} in table "
        f"{fact.printed.table}; the results are compared nevertheless."
        for fact in facts
        if not fact.agrees
    ]


def attempts(unexplained: Sequence[Match]) -> list[str]:
    """Return a sentence for each cause that is not shown, and each attempt, with its numbers."""
    groups: dict[tuple[bool, str], list[Match]] = {}
    for match in unexplained:
        if match.cause is not None:
            groups.setdefault((match.cause.is_shown, match.cause.cause.because), []).append(match)
    sentences = []
    for (is_shown, because), matches in groups.items():
        word, link = ("Tried", "See") if is_shown else ("Possible cause that is not shown", "Examined by")
        what = "; ".join(map(position_text, matches))
        experiments = dict.fromkeys(name for match in matches if match.cause for name in match.cause.cause.shown_by)
        examined = f"{link} {', '.join(experiments)}."
        sentences.append(f"{word}, for {what}: {because} {examined} {evidence_of(matches)}")
    return sentences


def evidence_of(matches: Sequence[Match]) -> str:
    """Return the comparisons of shown causes, and those that other causes fail, as text."""
    causes = [match.cause for match in matches if match.cause is not None]
    by_word: dict[str, dict[str, None]] = {}
    for cause in causes:
        for comparison in cause.comparisons if cause.is_shown else cause.failed:
            by_word.setdefault(CAUSE_OUTCOMES[comparison.holds], {})[comparison.text()] = None
    parts = []
    for word, texts in by_word.items():
        more = f"; and {len(texts) - MOST_LISTED} more" if len(texts) > MOST_LISTED else ""
        parts.append(f"{word}: {'; '.join([*texts][:MOST_LISTED])}{more}.")
    missing = dict.fromkeys(name for cause in causes for name in cause.missing)
    parts += [f"Not run: {', '.join(missing)}."] if missing else []
    if any(cause.n_impossible and not cause.missing for cause in causes):
        parts.append("The results lack a comparison that it requires.")
    return " ".join(parts)


def power_sentences(matches: Sequence[Match]) -> list[str]:
    """Return with how many other methods the numbers of each metric would also agree."""
    others: dict[str, list[Match]] = {}
    for match in matches:
        if match.others and match.others.compared and match.kind in (Kind.RESULT, Kind.IDENTITY):
            others.setdefault(match.printed.metric, []).append(match)
    return [
        f"Power, {title_of(METRICS[metric])}: the published numbers would also agree with "
        f"{sum(match.others.agreeing for match in group if match.others):,} of "
        f"{sum(match.others.compared for match in group if match.others):,} results of other methods with the same "
        "data set and settings."
        for metric, group in others.items()
        if any(match.kind is Kind.RESULT for match in group)
    ]


def spread_sentences(matches: Sequence[Match]) -> list[str]:
    """Return how many published standard deviations are compatible with ours; list the others."""
    sentences = []
    for inferred, which in ((False, "Standard deviations"), (True, "Inferred standard deviations")):
        tested = [
            match for match in matches if match.spread_agrees is not None and match.has_inferred_spread is inferred
        ]
        if tested:
            differing = [match for match in tested if not match.spread_agrees]
            count = f"{len(tested) - len(differing)} of {len(tested)} are compatible with ours (F test, 5 % level)"
            sentences.append(f"{which}: {count}{f'; the others: {pairs(differing)}' if differing else '.'}")
    return sentences


def order_sentences(matches: Sequence[Match]) -> list[str]:
    """Return how many pairs of methods are in the published order, per metric and data set."""
    return [
        f"In the published order, {title_of(METRICS[group.metric])}, {group.dataset}"
        f"{f' (measured data: {group.measured_on})' if group.why is NotCompared.OTHER_DATA else ''}: "
        f"{order.sentence()}."
        for group, order in orders(matches).items()
    ]


def pairs(matches: Sequence[Match]) -> str:
    """Return a list of measured and published numbers as text."""
    texts = (
        f"{position_text(match)}: {measured_text(match)} against {published_text(match.printed)}" for match in matches
    )
    return "; ".join(texts) + "."


def _named(matches: Sequence[Match]) -> str:
    names = dict.fromkeys(", ".join(dict.fromkeys([match.printed.dataset, match.printed.label])) for match in matches)
    return f"{pluralize(len(matches), 'number')} ({'; '.join(names)})"
