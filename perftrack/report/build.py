"""From a run's summaries and findings to its report: rows, order, counts, coverage, exit code."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from perftrack import stats
from perftrack.declare import NEVER_GATED
from perftrack.judge.confirm import NO_TIME
from perftrack.judge.life import Kind, Regression, State, case_of
from perftrack.judge.value import FLAKY, Finding, Summary
from perftrack.model import Accuracy, Backend, Case, Device, Method, Revision, Run, Status, Verdict
from perftrack.report import commands, standing, words
from perftrack.report.fusion import suite_lines
from perftrack.report.value import AccuracyRow, Answer, CardUse, DeviceLine, Remembered, Report, Row

MIN_COVERAGE = 0.95
"""Share of the expected (case, variant) pairs of each device class that must have an answer."""

_ORDER = (
    Verdict.SLOWER,
    Verdict.FAILED,
    Verdict.WRONG,
    Verdict.MISSING,
    Verdict.UNSTABLE,
    Verdict.AMBIGUOUS,
    Verdict.FASTER,
    Verdict.SAME,
    Verdict.NEW,
    Verdict.REMOVED,
)
"""Worst first; red rows and explained speedup changes are lifted out of it."""

_ANSWERED = (Status.OK, Status.WRONG, Status.FAILED, Status.INVALID)
_FAULTS = {Status.WRONG: Verdict.WRONG, Status.FAILED: Verdict.FAILED, Status.INVALID: Verdict.FAILED}

_Pair = tuple[str, str, str, str]
"""(suite, case key, device class, variant)."""


def build(
    run: Run,
    cases: Sequence[Case],
    devices: Sequence[Device],
    summaries: Sequence[Summary],
    findings: Sequence[Finding],
    *,
    incomplete: Iterable[str] = (),
    use: Iterable[CardUse] = (),
    regressions: Sequence[Regression] = (),
    now_us: int = 0,
) -> Report:
    """The report of `run`. `cases` are those the head declares, on the backends of `devices`; `use` is by card.

    RED (exit 1) with any confirmed slowdown or any variant that newly fails or is wrong, but for what `regressions`
    (those the run says something of, as they stand at `now_us`) have as acknowledged, invalid or infra. Else
    INCOMPLETE (exit 4) for the reasons in `incomplete` (what the caller knows: no base although one was asked for, a
    suite that cannot be imported), or when nothing was measured, a device class has less than 95 % of its answers,
    something is missing or flaky, a suspect was not measured again, or the run was interrupted. Else GREEN (exit 0).

    An error that grew within the tolerance changes neither: it is a row of `accuracy`.
    """
    known = standing.remembered(regressions, run, now_us)
    content = _Content(run, cases, devices, summaries, findings, {one.uuid: one for one in use}, known)
    return _report(run, devices, content, tuple(incomplete), standing.fixed(regressions, run, now_us))


def _report(
    run: Run, devices: Sequence[Device], content: "_Content", incomplete: tuple[str, ...], fixed: tuple[str, ...]
) -> Report:
    rows = sorted(content.rows(), key=_severity)
    accuracy = sorted(content.accuracy_rows(), key=_size_of_error)
    lines = tuple(content.device_line(name, rows) for name in dict.fromkeys(one.device_class for one in devices))
    reasons = (*incomplete, *_reasons(run, lines, rows))
    verdict: Answer = "RED" if any(row.red for row in rows) else "INCOMPLETE" if reasons else "GREEN"
    counted = Counter(row.verdict for row in rows)
    return Report(
        verdict=verdict,
        exit_code={"GREEN": 0, "RED": 1, "INCOMPLETE": 4}[verdict],
        reasons=reasons,
        run=run.uid,
        repo=run.repo,
        head=run.head.label,
        head_sha=run.head.sha,
        head_subject=run.head.subject,
        base=run.base.label if run.base else None,
        base_sha=run.base.sha if run.base else None,
        base_note=run.base_note,
        counts={verdict: counted[verdict] for verdict in Verdict},
        devices=lines,
        rows=tuple(rows),
        accuracy=tuple(accuracy),
        less_accurate=sum(row.accuracy is Accuracy.LESS for row in accuracy),
        more_accurate=sum(row.accuracy is Accuracy.MORE for row in accuracy),
        fixed=fixed,
        skipped=content.skipped(),
        problems=(*run.problems, *content.yardstick_problems()),
        methods=tuple(
            _method(backend, method)
            for backend, method in sorted(run.options.methods.items())
            if any(device.backend == backend for device in devices)
        ),
    )


def _severity(row: Row) -> tuple[object, ...]:
    """Sort key: red, then by verdict, of which what is flaky or moved by its baseline first, then the size of it."""
    ratio = row.change.point if row.change else 1.0
    explained = row.verdict is Verdict.SAME and row.cause in words.UNFUSED_MOVED
    place = _ORDER.index(row.verdict) - (0.5 if explained or _flaky(row) else 0)
    return (not row.red, place, -max(ratio, 1 / ratio), row.suite, row.case, row.device_class, row.variant)


def _size_of_error(row: AccuracyRow) -> tuple[object, ...]:
    """Sort key: less accurate first, then by how many times; from an error of 0 it is infinitely many."""
    before, after = sorted((row.error_base, row.error_head))
    times = after / before if before else float("inf")
    return (row.accuracy is not Accuracy.LESS, -times, row.suite, row.case, row.device_class, row.variant)


def _reasons(run: Run, lines: Sequence[DeviceLine], rows: Sequence[Row]) -> list[str]:
    reasons: list[str] = []
    if run.state == "interrupted":
        reasons.append(f"interrupted; {words.goes_on(run)} measures the rest")
    if not any(line.measured for line in lines):
        reasons.append("nothing was measured")
    else:
        reasons += [
            f"only {line.measured} of {line.expected} variants answered on {line.device_class}"
            for line in lines
            if line.expected and line.coverage < MIN_COVERAGE
        ]
    missing = sum(row.verdict is Verdict.MISSING for row in rows)
    if missing:
        reasons.append(f"{missing} missing")
    left = sum(NO_TIME in row.message for row in rows)
    if left:
        reasons.append(f"{words.counted(left, 'suspect')} {NO_TIME}")
    if flaky := sum(_flaky(row) for row in rows):
        reasons.append(f"{flaky} flaky: failed or wrong in some rounds, fine in others")
    suspected = sum(row.verdict is Verdict.SLOWER and not row.confirmed and NO_TIME not in row.message for row in rows)
    if suspected:
        reasons.append(f"{suspected} suspected of being slower, not confirmed by fresh rounds")
    return reasons


def _flaky(row: Row) -> bool:
    return row.verdict is Verdict.AMBIGUOUS and row.message.startswith(FLAKY)


def _method(backend: Backend, method: Method) -> str:
    return f"{backend}: {method.name} ({method.timer} timer, {method.cache} cache, version {method.version})"


@dataclass(frozen=True)
class _Content:
    """What a report is made from."""

    run: Run
    cases: Sequence[Case]
    devices: Sequence[Device]
    summaries: Sequence[Summary]
    findings: Sequence[Finding]
    use: Mapping[str, CardUse]
    known: Mapping[standing.Key, tuple[Remembered, ...]]

    def rows(self) -> list[Row]:
        """One for each finding; without a base also for each candidate that was measured."""
        head = {_pair(one): one for one in self.summaries if one.side == "head"}
        found = {_pair(one): self._from_finding(one, head.get(_pair(one))) for one in self.findings}
        if self.run.base is None:
            for pair, summary in head.items():
                if pair not in found and self._candidate(summary) and summary.status is not Status.SKIPPED:
                    found[pair] = self._from_summary(summary)
        return list(found.values())

    def accuracy_rows(self) -> list[AccuracyRow]:
        """One for each finding that says so."""
        errors = {(*_pair(one), one.side): one.error_l2 for one in self.summaries}
        made: list[AccuracyRow] = []
        for one in self.findings:
            if one.accuracy is not Accuracy.NONE and one.error_head is not None and one.error_base is not None:
                suite, key, device_class, variant = _pair(one)
                baseline = self._baseline(suite, key)
                made.append(
                    AccuracyRow(
                        suite=suite,
                        case=key,
                        device_class=device_class,
                        variant=variant,
                        baseline=baseline,
                        accuracy=one.accuracy,
                        error_head=one.error_head,
                        error_base=one.error_base,
                        baseline_error_head=errors.get((suite, key, device_class, baseline, "head")),
                        baseline_error_base=errors.get((suite, key, device_class, baseline, "base")),
                        regressions=self._known(one, Kind.LESS_ACCURATE),
                        next=self._next(suite, key, device_class),
                    )
                )
        return made

    def device_line(self, device_class: str, rows: Sequence[Row]) -> DeviceLine:
        """Coverage counts the head's pairs; a newly skipped variant is expected, one that is skipped is not."""
        cards = [one for one in self.devices if one.device_class == device_class]
        mine = [row for row in rows if row.device_class == device_class]
        head = {
            (one.suite, one.case_key, one.variant): one
            for one in self.summaries
            if one.side == "head" and one.device_class == device_class
        }
        states = {pair: one.status for pair, one in head.items()}
        missing = {(row.suite, row.case, row.variant) for row in mine if row.verdict is Verdict.MISSING}
        present = {(row.suite, row.case) for row in mine if row.verdict is not Verdict.REMOVED}
        gone = {(row.suite, row.case) for row in mine} - present
        declared = [
            (case.suite, case.key, variant)
            for case in self.cases
            if case.backend == cards[0].backend and (case.suite, case.key) not in gone
            for variant in case.variants
        ]
        expected = missing.union(pair for pair in declared if states.get(pair) is not Status.SKIPPED)
        return DeviceLine(
            device_class=device_class,
            backend=cards[0].backend,
            cards=tuple(one.uuid for one in cards),
            nodes=tuple(dict.fromkeys(one.node for one in cards)),
            measured=sum(states.get(pair) in _ANSWERED for pair in expected),
            expected=len(expected),
            suites=suite_lines((case for case in self.cases if case.backend == cards[0].backend), head),
            use=tuple(self.use[one.uuid] for one in cards if one.uuid in self.use),
            **_together(mine),
        )

    def skipped(self) -> tuple[str, ...]:
        """One sentence for each variant and reason, with the number of cases."""
        reasons = Counter(
            (one.variant, one.device_class, one.message)
            for one in self.summaries
            if one.side == "head" and one.status is Status.SKIPPED
        )
        return tuple(
            f"{variant} on {device_class}: {message} ({count} {'case' if count == 1 else 'cases'})"
            for (variant, device_class, message), count in sorted(reasons.items())
        )

    def yardstick_problems(self) -> list[str]:
        """Baselines and steps without a time: no verdict hangs on them, but speedups do."""
        reported = {_pair(one) for one in self.findings}
        return [
            f"{one.variant} of {one.case_key} on {one.device_class} is {one.status.value}"
            + (f": {one.message}" if one.message else "")
            for one in self.summaries
            if one.side == "head"
            and not self._candidate(one)
            and one.status not in (Status.OK, Status.SKIPPED)
            and _pair(one) not in reported
        ]

    def _candidate(self, summary: Summary) -> bool:
        return summary.variant not in (*NEVER_GATED, self._baseline(summary.suite, summary.case_key))

    def _baseline(self, suite: str, key: str) -> str:
        return self._baselines.get((suite, key), "unfused")

    @cached_property
    def _baselines(self) -> dict[tuple[str, str], str]:
        """Where trees declare a case differently, what the first says."""
        return {(case.suite, case.key): case.baseline for case in reversed(self.cases)}

    def _known(self, finding: Finding, kind: Kind) -> tuple[Remembered, ...]:
        return self.known.get(standing.Key(case_of(finding), finding.device_class, kind), ())

    def _from_finding(self, finding: Finding, summary: Summary | None) -> Row:
        known = self._known(finding, Kind(finding.verdict.value)) if finding.red else ()
        return Row(
            suite=finding.suite,
            case=finding.case_key,
            device_class=finding.device_class,
            variant=finding.variant,
            baseline=self._baseline(finding.suite, finding.case_key),
            verdict=finding.verdict,
            cause=finding.cause,
            red=finding.red and (not known or any(one.state is State.OPEN for one in known)),
            confirmed=finding.confirmed,
            message=finding.message,
            head_s=finding.head_s,
            base_s=finding.base_s,
            baseline_head_s=finding.baseline_head_s,
            baseline_base_s=finding.baseline_base_s,
            speedup_head=finding.speedup_head,
            speedup_base=finding.speedup_base,
            change=finding.change,
            min_effect=finding.min_effect,
            detectable=finding.detectable,
            rounds=finding.rounds,
            why=finding.why,
            regressions=known,
            next=self._next(finding.suite, finding.case_key, finding.device_class),
            **_achieved(summary),
        )

    def _from_summary(self, summary: Summary) -> Row:
        verdict = Verdict.UNSTABLE if summary.status is Status.UNSTABLE else Verdict.NEW
        verdict = Verdict.MISSING if summary.status is Status.INFRA else _FAULTS.get(summary.status, verdict)
        return Row(
            suite=summary.suite,
            case=summary.case_key,
            device_class=summary.device_class,
            variant=summary.variant,
            baseline=self._baseline(summary.suite, summary.case_key),
            verdict=verdict,
            red=summary.status in _FAULTS,
            message=summary.message,
            head_s=summary.time_s,
            baseline_head_s=summary.baseline_s,
            speedup_head=summary.speedup.point if summary.speedup else None,
            rounds=summary.rounds,
            next=self._next(summary.suite, summary.case_key, summary.device_class),
            **_achieved(summary),
        )

    def _next(self, suite: str, key: str, device_class: str) -> str:
        head, base = self.run.head, self.run.base
        return commands.measure_again(
            suite,
            key,
            device_class,
            head=None if head.dirty else _short(head),
            base=_short(base) if base else None,
        )


def _pair(one: Finding | Summary) -> _Pair:
    return (one.suite, one.case_key, one.device_class, one.variant)


def _short(revision: Revision) -> str:
    return revision.sha[:12]


def _achieved(summary: Summary | None) -> dict[str, Any]:
    if summary is None:
        return {}
    return {
        "speedup_interval": summary.speedup,
        "vectorisation": summary.vectorisation.point if summary.vectorisation else None,
        "fusion_gain": summary.fusion_gain.point if summary.fusion_gain else None,
        "fusion_efficiency": summary.fusion_efficiency,
        "bandwidth_bytes_per_s": summary.bandwidth_bytes_per_s,
        "utilization": summary.utilization,
        "cached": summary.cached,
    }


def _together(rows: Sequence[Row]) -> dict[str, Any]:
    """Geometric means over the rows; where there is a base, over the rows that have both sides."""
    head = [row.speedup_head for row in rows if row.speedup_head is not None]
    both = [
        (row.speedup_head, row.speedup_base)
        for row in rows
        if row.speedup_head is not None and row.speedup_base is not None
    ]
    shown = [one for one, _ in both] if both else head
    detectable = [row.detectable for row in rows if row.detectable is not None]
    return {
        "speedup_head": stats.geometric_mean(shown) if shown else None,
        "speedup_base": stats.geometric_mean([other for _, other in both]) if both else None,
        "speedups": len(shown),
        "candidates": sum(row.verdict is not Verdict.REMOVED for row in rows),
        "detectable": stats.median(detectable) if detectable else None,
        "detectable_worst": max(detectable, default=None),
    }
