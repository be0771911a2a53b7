"""Captions of tables, which explain the values and their comparisons."""

from __future__ import annotations

from klr_bench.metrics.labels import METRICS
from klr_bench.report.labels import join_names, line_label
from klr_bench.report.measured import BUSY, TIMES, UNKNOWN, Machine
from klr_bench.report.paper_texts import calibration_sentences
from klr_bench.report.papers.reading import FACTS
from klr_bench.report.papers.scoreboard import mark_sentences
from klr_bench.report.papers.verdicts import NotCompared
from klr_bench.report.render.document import ALIKE, BEST
from klr_bench.report.significance import LEVEL, MOST_DEVIATIONS
from klr_bench.report.table import Block, Table

SENTENCES = {
    "settled_s": "Time to final accuracy: seconds of training after which the test accuracy stays at most 0.5 "
    "percentage points below its final value, for fits that ended before the time limit.",
    "late_gain": "Late gain: the final test accuracy minus that at the last checkpoint in the first half of the fit.",
    "early_gain": "Early gain: the test accuracy at the last checkpoint in the first half of the fit minus that at the "
    "first checkpoint.",
    "near_optimal_s": "Time to 1 % above the smallest objective of all fits with the same data set, repeat and lambda.",
    "first_nonzero": "Initially non-zero: the share of non-zero coefficients at the first checkpoint.",
    "mean_nonzero": "Non-zero on average: the mean share of non-zero coefficients over the checkpoints.",
    "prototype_shift": "Prototype shift: the root mean square distance by which the prototypes move from one "
    "checkpoint to the next, divided by the root mean square distance of the training rows from their mean.",
    "coefficient_shift": "Coefficient shift: the same for the coefficients, divided by their root mean square.",
    "loss_over_bound": "Loss / bound: the largest ratio of the cumulative loss to its bound, over the checkpoints.",
    "support_over_bound": "Support vectors / bound: the largest ratio of the two, over the checkpoints.",
    "setup_time_s": "Before the pass: the training time minus the time of the pass over the examples.",
}
"""Explanations of metrics, by name."""


def caption(table: Table) -> list[str]:
    """Return the sentences of the caption of a table."""
    lines = [line for block in table.blocks for line in block.lines]
    counts = "" if table.columns else " (ok: successful repeats / requested repeats)"
    spread = f"Mean ± standard deviation over the repeats{counts}."
    entries = [entry for line in lines for entry in line.entries.values()]
    single = "One repeat, so no standard deviation." if any(entry.n for entry in entries) else "No repeat has a value."
    sentences = [spread if any(entry.std is not None for entry in entries) else single]
    matches = [match for block in table.blocks for match in block.matches]
    is_compared = any(match.is_comparable for match in matches)
    sentences += _sources(table, is_compared=is_compared) if matches else []
    if table.changes:
        unjudged = (
            "; the published values are for other settings, so there are no differences or marks" if matches else ""
        )
        sentences.append(f"Changed settings: {', '.join(table.changes)}{unjudged}.")
    sentences += [*table.selection, *_best(table)]
    sentences += [
        f"{block.label} replaces the paper's {block.stands_for}; the published values are for different data, so there "
        "are no differences or marks."
        for block in table.blocks
        if block.stands_for and block.matches
    ]
    if any(line.timed_out for line in lines):
        sentences.append("If no repeat finished within the time limit, the values are those at the limit.")
    if table.metrics.keys() & TIMES:
        sentences += _times(table, is_compared=is_compared)
    sentences += [sentence for name, sentence in SENTENCES.items() if name in table.metrics]
    for name, baseline in table.baselines.items():
        if name in table.metrics:
            metric, operation = table.metrics[name], "divided by" if name.endswith("_ratio") else "minus"
            compared = METRICS[metric.compares].title.lower()
            sentences.append(f"{metric.title}: the {compared} {operation} that of {baseline}, repeat by repeat.")
    sentences += map(_sizes, table.blocks)
    if table.absent:
        sentences.append(f"No results yet: {', '.join(table.absent)}.")
    return [sentence for sentence in sentences if sentence]


def failures_of(block: Block) -> list[str]:
    """Return sentences on failed or missing repeats; methods with the same words share one."""
    labels: dict[str, list[str]] = {}
    for line in block.lines:
        parts = [
            f"{status} (repeat {', '.join(map(str, repeats))}){f': {message}' if message else ''}"
            for status, repeats, message in line.failures
        ]
        parts += [f"{line.n_missing} not run so far"] if line.n_missing else []
        if parts:
            words = f"{line.n_ok} of {line.n_repeats} repeats ok; {'; '.join(parts)}"
            labels.setdefault(words, []).append(line_label(line))
    return [f"{join_names(names)}: {words}" for words, names in labels.items()]


def _sources(table: Table, *, is_compared: bool) -> list[str]:
    papers = "; ".join(
        f"{source.name}, {'table' if len(source.tables) == 1 else 'tables'} {' and '.join(source.tables)}"
        for source in table.sources
    )
    if not is_compared:
        return [f"paper: {papers}."]
    unit_of = "row" if table.columns else "column"
    legend = f"paper: {papers}. diff: our value minus the paper's, in the unit of the {unit_of}."
    causes = [
        f"[{place}] {cause.because} Shown by {', '.join(cause.shown_by)}."
        for place, cause in enumerate(table.causes, 1)
    ]
    marks = mark_sentences(table.compared_matches)
    inferred = {METRICS[match.printed.metric].title for match in table.compared_matches if match.has_inferred_spread}
    if inferred:
        names = join_names(sorted(name.lower() for name in inferred))
        marks.append(f"The paper does not print the standard deviations of {names}; they follow from others.")
    others = [
        line_label(line)
        for block in table.blocks
        for line in block.lines
        if any(match.not_compared is NotCompared.OTHER_METHOD for match in line.matches.values())
    ]
    if others:
        names = join_names([*dict.fromkeys(others)])
        marks.append(f"Without a verdict, because the paper's number is compared with another method: {names}.")
    return [legend, *marks, *causes, *calibration_sentences(table.compared_matches)]


def _best(table: Table) -> list[str]:
    marks_of = [(block.label, marks) for block in table.blocks for marks in block.marks.values()]
    if not marks_of:
        return []
    missing: dict[str, dict[str, None]] = {}
    no_power: dict[str, dict[str, None]] = {}
    for label, marks in marks_of:
        for reasons, reason in ((missing, marks.missing), (no_power, marks.no_power)):
            if reason:
                reasons.setdefault(reason, {})[label] = None
    best = f"{BEST} (bold): the best mean of a {'metric in its ' if table.columns else ''}column"
    test = (
        f"; {ALIKE}: not significantly different from the best at the {100 * (1 - LEVEL):.0f} % level (paired t test "
        "over the repeats, with Holm's adjustment over all pairs of methods and, if each repeat uses a new split, the "
        "correction of Nadeau and Bengio). Times are not marked"
    )
    is_tested = any(
        mark.place == "alike" or (mark.p is not None and not of_metric.no_power)
        for _, of_metric in marks_of
        for mark in of_metric.lines.values()
    )
    sentences = [f"Not compared with the best on {', '.join(labels)}: {reason}." for reason, labels in missing.items()]
    sentences += [
        f"No {ALIKE} on {', '.join(labels)}: with {reason}, only differences of more than {MOST_DEVIATIONS} standard "
        "deviations would be significant."
        for reason, labels in no_power.items()
    ]
    return [f"{best}{test if is_tested else ''}.", *sentences]


def _times(table: Table, *, is_compared: bool) -> list[str]:
    usual = table.machine if table.measured_on == UNKNOWN else _machine_name(table.measured_on)
    ratio = "; ratio: the paper's time, on its own machine, divided by ours" if is_compared else ""
    sentences = [f"Training times were measured on {usual}{ratio}."] if usual else []
    elsewhere, busy = [], []
    for block in table.blocks:
        for line in block.lines:
            name = f"{line_label(line)} on {block.label}"
            if others := line.conditions.machines - {table.measured_on}:
                elsewhere.append(f"{name} ({', '.join(sorted(map(_machine_name, others)))})")
            if line.conditions.busy:
                busy.append(f"{name} ({100 * (line.conditions.load or 0.0):.1f} %)")
    if elsewhere:
        end = "; they have no ratio" if is_compared else ""
        which = "Times of different machines, which cannot be compared with the others"
        sentences.append(f"{which}{end}: {join_names(elsewhere)}.")
    if busy:
        end = " and have no ratio" if is_compared else ""
        share = f"{100 * BUSY:.0f} %"
        which = f"Other processes used more than {share} of the machine when these fits began: {join_names(busy)}"
        sentences.append(f"{which}; these times cannot be compared{end}.")
    return sentences


def _machine_name(machine: Machine) -> str:
    return ", ".join(filter(None, machine)) or "a machine that the records do not name"


def _sizes(block: Block) -> str:
    if not block.facts or not block.sizes:
        return ""
    ours = ", ".join(FACTS[name][1].format(f"{size:,.0f}") for name, size in block.sizes.items())
    published = [(fact.metric, f"{int(fact.mean):,}" if fact.mean.isdigit() else fact.mean) for fact in block.facts]
    theirs = ", ".join(FACTS[name][1].format(size) for name, size in published)
    return f"{block.label}: {ours}. In table {block.facts[0].table}, {block.facts[0].label} has {theirs}."
