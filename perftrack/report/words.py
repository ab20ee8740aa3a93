"""How numbers and verdicts are said, the same in text and Markdown. One unit for every time: µs."""

from collections import Counter
from collections.abc import Sequence

from perftrack.judge.life import State
from perftrack.judge.value import Interval
from perftrack.model import Accuracy, Cause, Run, Verdict
from perftrack.report.fusion import NO_GAIN
from perftrack.report.value import AccuracyRow, CardUse, DeviceLine, Report, Row

NOT_KNOWN = "-"

UNFUSED_MOVED = (Cause.UNFUSED_FASTER, Cause.UNFUSED_SLOWER)
"""The variant did not change, its speedup did."""

WORSE = (Verdict.SLOWER, Verdict.FAILED, Verdict.WRONG, Verdict.MISSING, Verdict.UNSTABLE)
"""Than a lost accuracy that the tolerance allows."""

BISECTED = "the good end of a bisection"
"""How the base of a bisection's runs was found."""

LEFT_BY = "the level left by run"
"""Ends the note on the base of a look back, before the first digits of the run that it belongs to."""

FOOTER = (
    "Left of -> is the base. Slower and faster are per cent of the base time. "
    "Speedup = baseline variant's time / variant's time: above 1 the variant wins."
)

FOOTER_WITHOUT_BASE = (
    "Speedup = baseline variant's time / variant's time: above 1 the variant wins. It has two factors: vector, the "
    "baseline's time / that of the same steps, each well made, and fusion, those steps' time / the variant's (no gain: "
    "below 1.05x, loss: below 0.95x). GB/s counts each distinct byte once; copy: % of the best copy of the same "
    "process (* the data fit the cache); model: % of the gain that the saved bytes promise."
)

SUITES = "suites: geometric means over the cases that do not fit the cache, of the candidate declared first"

ROWS = 10
"""Rows that are told at length, the worst ones."""

CARDS = 8
"""Cards that are told one by one."""


def microseconds(seconds: float | None) -> str:
    """Three to five digits: `2.48`, `127.4`, `12345`."""
    if seconds is None:
        return NOT_KNOWN
    value = seconds * 1e6
    return f"{value:.{2 if value < 9.995 else 1 if value < 999.95 else 0}f}"


def times(value: float | None) -> str:
    """`2.31x`."""
    return NOT_KNOWN if value is None else f"{value:.2f}x"


def share(value: float | None) -> str:
    """`97 %`."""
    return NOT_KNOWN if value is None else f"{100 * value:.0f} %"


def percent(value: float) -> str:
    """`0.04 %`, `0.4 %`, and `2 %` where nothing follows the point."""
    return f"{_hundredths(value, 2 if 0 < value < 0.00095 else 1)}".removesuffix(".0") + " %"


def gigabytes(bytes_per_s: float | None) -> str:
    """10^9 bytes a second."""
    return NOT_KNOWN if bytes_per_s is None else f"{bytes_per_s / 1e9:.0f}"


def moved(before: str, after: str) -> str:
    """`2.31x -> 1.94x`, or what is known of it."""
    known = [one for one in (before, after) if one != NOT_KNOWN]
    return " -> ".join(known if len(known) < 2 else (before, after)) or NOT_KNOWN


def effect(ratio: float) -> str:
    """Of a head ÷ base time ratio: `3.1 % slower`."""
    size = _hundredths(abs(ratio - 1))
    return "0.0 %" if size == "0.0" else f"{size} % {'slower' if ratio > 1 else 'faster'}"


def change(interval: Interval, confidence: str) -> str:
    """`10.0 % slower (95 % interval 9.8 to 10.2 %)`; bounds on both sides of 1 name their direction."""
    if interval.low > 1:
        bounds = f"{_hundredths(interval.low - 1)} to {_hundredths(interval.high - 1)} %"
    elif interval.high < 1:
        bounds = f"{_hundredths(1 - interval.high)} to {_hundredths(1 - interval.low)} %"
    else:
        bounds = f"{effect(interval.low)} to {effect(interval.high)}"
    return f"{effect(interval.point)} ({confidence} interval {bounds})"


def evidence(row: Row) -> str:
    """What was seen: the change, the limit, what could have been seen, in how many rounds."""
    if row.change is None:
        return row.message
    parts = [change(row.change, "99 %" if row.confirmed else "95 %"), f"limit {percent(row.min_effect)}"]
    if row.detectable is not None:
        parts.append(f"visible from {percent(row.detectable)}")
    parts.append(f"{row.rounds} {'fresh ' if row.confirmed else ''}round{'' if row.rounds == 1 else 's'}")
    return ", ".join(parts)


def goes_on(run: Run) -> str:
    """What goes on with a run that was broken off."""
    if run.base_note == BISECTED:
        return "the same `perftrack bisect` command"
    if run.options.sweep is not None:
        return f"`perftrack sweep {run.options.sweep.name}`"
    if LEFT_BY in run.base_note:
        return f"`perftrack submit --resume {run.base_note.rpartition(' ')[2]}`"
    return f"`perftrack submit --resume {run.uid[:8]}`"


def counted(number: int, noun: str) -> str:
    """`1 result`, `2 results`."""
    return f"{number} {noun}" + ("" if number == 1 else "s")


def numbers(row: Row) -> str:
    """Both times and the speedups, base -> head; empty where nothing was timed."""
    own = moved(microseconds(row.base_s), microseconds(row.head_s))
    baseline = moved(microseconds(row.baseline_base_s), microseconds(row.baseline_head_s))
    speedup = moved(times(row.speedup_base), times(row.speedup_head)) + factors(row)
    named = ((f"{row.variant} {own} µs", own), (f"{row.baseline} {baseline} µs", baseline))
    parts = [text for text, value in (*named, (f"speedup {speedup}", speedup)) if value != NOT_KNOWN]
    return ", ".join(dict.fromkeys(parts))


def factors(row: Row) -> str:
    """Of the head's speedup, ` (vectorisation 1.05x, fusion 1.85x)`; empty without `steps` to tell them apart."""
    if row.fusion_gain is None or row.vectorisation is None:
        return ""
    whose = "head: " if row.speedup_base is not None else ""
    return f" ({whose}vectorisation {times(row.vectorisation)}, fusion {times(row.fusion_gain)})"


def gain_note(row: Row) -> str:
    """Where fusion does not help: `no gain`, or `loss` where it makes the variant slower than its steps."""
    if row.fusion_gain is None or row.fusion_gain >= NO_GAIN:
        return ""
    return "no gain" if row.fusion_gain > 1 / NO_GAIN else "loss"


def error(value: float | None) -> str:
    """A relative error: `2.1e-07`, and `0` where there is none."""
    return NOT_KNOWN if value is None else f"{value:.1e}" if value else "0"


def accuracy(row: AccuracyRow) -> str:
    """`less accurate: relative L2 error against float64 2.1e-07 -> 8.8e-07 (4.2 times), within the tolerance`."""
    before, after = sorted((row.error_base, row.error_head))
    word = "times" if row.accuracy is Accuracy.LESS else "times less"
    size = f" ({after / before:.1f} {word})" if before else ""
    errors = moved(error(row.error_base), error(row.error_head))
    return f"{in_words(row)}: relative L2 error against float64 {errors}{size}, within the tolerance"


def in_words(row: AccuracyRow) -> str:
    """`less accurate`."""
    return row.accuracy.value.replace("-", " ")


def baseline_errors(row: AccuracyRow) -> str:
    """`unfused 1.1e-07 -> 1.1e-07`; empty where they are not known."""
    if row.baseline_error_base is None or row.baseline_error_head is None:
        return ""
    return f"{row.baseline} {error(row.baseline_error_base)} -> {error(row.baseline_error_head)}"


def more_accurate(report: Report) -> list[str]:
    """One phrase for each variant that became more accurate, at most three, then how many more."""
    rows = [row for row in report.accuracy if row.accuracy is Accuracy.MORE]
    said = [
        f"{row.variant} of {row.case} on {row.device_class}, error {error(row.error_base)} -> {error(row.error_head)}"
        for row in rows[:3]
    ]
    return said + ([f"and {len(rows) - 3} more"] if len(rows) > 3 else [])


def counts(report: Report, without: Sequence[Row | AccuracyRow] = ()) -> str:
    """`1 slower, 119 same; 1 less accurate`, `without` those shown already; what nothing has is left out.

    What changed its accuracy has a verdict on its time as well.
    """
    shown = Counter(row.verdict for row in without if isinstance(row, Row))
    rows = {verdict.value: count - shown[verdict] for verdict, count in report.counts.items()}
    less = report.less_accurate - sum(isinstance(row, AccuracyRow) for row in without)
    errors = {"less accurate": less, "more accurate": report.more_accurate}
    said = (", ".join(f"{count} {word}" for word, count in kind.items() if count) for kind in (rows, errors))
    return "; ".join(filter(None, said)) or "nothing"


def headline(report: Report) -> str:
    """The verdict in one sentence, without the verdict's own word."""
    if report.verdict == "RED":
        classes = dict.fromkeys(row.device_class for row in report.rows if row.red)
        where = next(iter(classes)) if len(classes) == 1 else f"{len(classes)} device classes"
        return f"{_red(report)} on {where}" + ("" if any(map(_is_new, report.rows)) else ", none of them new")
    if report.verdict == "INCOMPLETE":
        return "; ".join(report.reasons)
    if report.base is None:
        return f"first measurement, nothing to compare with: {counts(report)}"
    said = ", ".join(f"{count} {state.value}" for state, count in silenced(report).items())
    return f"nothing red: {said}; {counts(report)}" if said else f"no confirmed slowdown: {counts(report)}"


def silenced(report: Report) -> Counter[State]:
    """Rows that would be red but for what people said of them, by that."""
    rows = [row for row in report.rows if row.regressions and not row.red]
    return Counter(one.state for row in rows for one in row.regressions[-1:])


def against(report: Report) -> str:
    """`7e3f9a1 against b81c0d4`."""
    return f"{report.head} against {report.base}" if report.base else report.head


def device(line: DeviceLine) -> str:
    """Coverage, common movement and sharpness of one device class, without its name."""
    cards = f" on {len(line.cards)} cards" if len(line.cards) > 1 else ""
    parts = [f"{line.measured} of {line.expected} variants measured{cards}"]
    if line.speedups:
        mean = moved(times(line.speedup_base), times(line.speedup_head))
        of = f" of {line.candidates}" if line.candidates else ""
        parts.append(f"geometric mean speedup {mean} over {line.speedups}{of}")
    if line.detectable is not None and line.detectable_worst is not None:
        parts.append(
            f"changes visible from {percent(line.detectable)} (median), {percent(line.detectable_worst)} (worst)"
        )
    return ", ".join(parts)


def cards(line: DeviceLine) -> str:
    """`2 cards: GPU-29e7… 24 jobs busy 79 %, …`; empty for one card. Many are told by their range."""
    if len(line.use) < 2:
        return ""
    if len(line.use) <= CARDS:
        return f"{len(line.use)} cards: " + ", ".join(map(_card, line.use))
    jobs = [one.jobs for one in line.use]
    shares = sorted(one.busy_share for one in line.use if one.busy_share is not None)
    busy = f", busy {share(shares[0])} to {share(shares[-1])}" if shares else ""
    return f"{len(line.use)} cards: {min(jobs)} to {max(jobs)} jobs each{busy}"


def _card(use: CardUse) -> str:
    busy = "" if use.busy_share is None else f" busy {share(use.busy_share)}"
    return f"{use.uuid[:8]}… {use.jobs} job{'' if use.jobs == 1 else 's'}{busy}"


def attention(report: Report) -> list[Row | AccuracyRow]:
    """What is worth its lines, worst first: a lost accuracy comes after what is slower, broken or not measured."""
    rows = [row for row in report.rows if needs_attention(row)]
    worse = [row for row in rows if row.red or row.verdict in WORSE]
    less = [row for row in report.accuracy if row.accuracy is Accuracy.LESS]
    return [*worse, *less, *rows[len(worse) :]]


def changed(report: Report) -> bool:
    """Whether anything is worth a comment: red, incomplete, faster, another accuracy, or a speedup that moved."""
    moved = (row.verdict is Verdict.FASTER or row.cause in UNFUSED_MOVED for row in report.rows)
    return report.verdict != "GREEN" or bool(report.accuracy) or any(moved)


def needs_attention(row: Row) -> bool:
    """Whether the row is worth its lines: all but what did not move and what has nothing to be compared with."""
    if row.verdict is Verdict.SAME:
        return row.cause in UNFUSED_MOVED or bool(row.message)
    return row.verdict not in (Verdict.NEW, Verdict.REMOVED) or bool(row.message)


def _is_new(row: Row) -> bool:
    """Red, and not altogether of regressions of earlier commits."""
    return row.red and not (row.regressions and all(one.since for one in row.regressions))


def _red(report: Report) -> str:
    reds = [row.verdict for row in report.rows if row.red]
    newly = "" if report.base is None else "newly "
    slower = reds.count(Verdict.SLOWER)
    parts = [f"{slower} confirmed slowdown{'' if slower == 1 else 's'}"] if slower else []
    parts += [
        f"{reds.count(verdict)} {newly}{word}"
        for verdict, word in ((Verdict.FAILED, "failing"), (Verdict.WRONG, "wrong"))
        if verdict in reds
    ]
    return ", ".join(parts)


def _hundredths(value: float, digits: int = 1) -> str:
    """Per cent without the sign; two rounds that differ can have bounds beyond all sense."""
    return f"{100 * value:.{digits}f}" if value < 100 else "over 9999"
