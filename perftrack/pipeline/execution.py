"""One run being carried out: admit devices, measure, judge, look twice at suspects, store."""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from types import MappingProxyType
from typing import Literal

import msgspec

from perftrack.declare import NEVER_GATED
from perftrack.errors import IncompleteError, PoolError, StoppedError, StoreAwayError, StoreError
from perftrack.judge.confirm import EARLY_ROUNDS, FAMILY_ALPHA, NO_TIME, Key, key, settle, suspects, unclear
from perftrack.judge.paired import compare
from perftrack.judge.summary import summarize
from perftrack.judge.value import Finding, Summary
from perftrack.model import Case, Device, Job, JobResult, Method, Run, Side, Verdict
from perftrack.pipeline import plan
from perftrack.pipeline.past import History, Told, moved_devices
from perftrack.pipeline.plan import Pair
from perftrack.pipeline.talk import Talk
from perftrack.pipeline.trees import Trees
from perftrack.pool.client import Joined, Note, Pool, Progress
from perftrack.report.words import counted, goes_on
from perftrack.store import Spool, Store

Identity = tuple[str, str, str]
"""Suite, case key and device class."""

Known = AbstractSet[tuple[str, str, str, str]]
"""Suite, case key, device class and digest of the method of what needs no measuring."""

_ASK_S = 2.0
"""Between looks whether somebody has cancelled the run."""


class Execution:
    """One run being measured: what the stages share.

    With a `history` what it tells of the head is suspected too, and `told` has its answers. `suspected`, of a run of no
    first rounds, is what its fresh rounds are for; `alpha` is the share of false confirmations among all it suspects.
    `known`: what is left out, since another run has measured it. `until`: when to stop, by the monotonic clock.
    """

    def __init__(
        self,
        run: Run,
        trees: Trees,
        store: Store,
        talk: Talk,
        *,
        history: History | None = None,
        suspected: Sequence[Finding] = (),
        alpha: float = FAMILY_ALPHA,
        spread: bool = False,
        known: Known = frozenset(),
        until: float = math.inf,
    ) -> None:
        self.run, self.trees, self.store, self.talk = run, trees, store, talk
        self.history, self.suspected, self.alpha = history, list(suspected), alpha
        self.spread, self.known, self.until = spread, known, until
        self.told: dict[Key, Told] = {}
        self.findings: list[Finding] = []
        self.summaries: list[Summary] = []
        self.devices: list[Device] = []
        self.problems = list(run.problems)
        self.spool, self.away = Spool(store, run.uid, goes_on=goes_on(run)), False
        self._begun, self._asked_s = False, time.monotonic()
        self._keep_owning: Callable[[], None] = lambda: None

    def measure(self, address: str | None) -> bool:
        """All rounds on all devices, then the verdict, stored; False where everything is known and there is no run.

        StoppedError where somebody cancelled the run or its time is up: what was measured is kept, as after Ctrl-C.
        """
        try:
            with self.store.own(self.run.uid) as self._keep_owning:
                if not self._take_up():
                    return False
                with self._pool(address) as pool:
                    if not self._all_rounds(pool):
                        return False
                self.finish()
                return True
        except (KeyboardInterrupt, SystemExit, StoppedError):  # the second is SIGTERM
            if self._begun:
                self._interrupt()
            raise
        except PoolError as error:
            if not self._begun:
                raise
            self._interrupt()
            raise PoolError(f"{error}; what was measured is kept: {goes_on(self.run)} goes on") from error

    def _take_up(self) -> bool:
        """What another sweep began of this run since it was planned is gone on with; False where it is complete."""
        if self.run.options.sweep is None or (state := self.store.state(self.run.uid)) is None:
            return True
        self.run = self.store.load_run(self.run.uid).run
        self.problems = list(self.run.problems)
        return state != "complete"

    def _pool(self, address: str | None) -> Pool:
        options = self.run.options
        return Pool(
            address=address,
            want=options.device,
            trees=self.trees.archives,
            suite_paths=options.suite_paths,
            methods=options.methods,
            seed=options.seed,
            case_timeout_s=options.case_timeout_s,
            gives_way=options.sweep is not None,
        )

    def _all_rounds(self, pool: Pool) -> bool:
        """False where everything is known."""
        self._admit(pool)
        if (pairs := self._begin()) is None:
            return False
        first_rounds = range(1, self.run.options.rounds + 1)
        turns = plan.other_devices_first(pairs, self.devices, {}) if self.spread else {}
        self._run_jobs(pool, "measure", self._left(pairs, first_rounds, turns))
        findings = self.suspected or self._judge(pairs, first_rounds)
        if self.history is not None:
            self._ask_history(pairs, heads := self._summaries(pairs, first_rounds))
            self.problems += [text for text in moved_devices(self.told, heads) if text not in self.problems]
        self.findings = self._confirm(pool, pairs, findings)
        self.summaries = self._summaries(pairs, range(1, first_rounds.stop + self.run.options.confirm_rounds))
        return True

    def _interrupt(self) -> None:
        """Another process that goes on with it by now says itself how it ends."""
        try:
            self._keep_owning()
        except StoreError:
            return
        self._finish("interrupted", [], [])

    def recall(self) -> None:
        """Take up what somebody else measured and stored of this run, and ask its history as `measure` does."""
        stored = self.store.load_run(self.run.uid)
        self.run, self.devices, self.problems = stored.run, stored.devices, list(stored.run.problems)
        self.findings, self.summaries = stored.findings, stored.summaries
        self._ask_history(plan.pairs(self.trees, self.run.options, self.devices), self.summaries)

    def finish(self) -> None:
        """Store the answers; again, where they have changed."""
        self._finish("complete", self.summaries, self.findings)

    def _begin(self) -> list[Pair] | None:
        """Plan the run and store that it began, or goes on; None where everything is known."""
        pairs, options = plan.pairs(self.trees, self.run.options, self.devices), self.run.options
        if not pairs and not self.trees.problems:
            raise IncompleteError(self._nothing())
        unknown = [pair for pair in pairs if not self._is_known(pair)]
        if pairs and not unknown:
            return None
        planned = plan.jobs(unknown, range(1, options.rounds + 1), set())
        self.run = msgspec.structs.replace(self.run, expected_jobs=len(planned))
        if not self.store.begin_run(self.run):
            self.store.reopen(self.run.uid)
        self._begun = True
        self._replay()
        return unknown

    def _is_known(self, pair: Pair) -> bool:
        method = self.run.options.methods.get(pair.case.backend, Method()).of(pair.case)
        return (*pair.identity, method.digest) in self.known

    def _left(
        self,
        pairs: Sequence[Pair],
        rounds: Iterable[int],
        turns: Mapping[Identity, Sequence[str]] = MappingProxyType({}),
    ) -> list[Job]:
        """The jobs of these rounds that are not done, with numbers of attempts that are not taken."""
        done, tried = self.store.done_jobs(self.run.uid), self.store.last_attempts(self.run.uid)
        return plan.jobs(pairs, rounds, done, turns, tried)

    def _admit(self, pool: Pool) -> None:
        for report in pool.devices():
            if report.problem:
                self.problems.append(f"device {report.device.uuid} left out: {report.problem}")
                self.talk.say(f"problem {self.problems[-1]}")
            else:
                self.devices.append(report.device)
        if not self.run.options.device and all(device.backend == "cpu" for device in self.devices):
            self.talk.say("device  no GPU in the pool: measuring on the CPU (-d cpu asks for it)")
        for name in dict.fromkeys(device.device_class for device in self.devices):
            count = sum(device.device_class == name for device in self.devices)
            self.talk.say(f"device  {name}" + (f" × {count}" if count > 1 else ""))

    def _nothing(self) -> str:
        classes = ", ".join(sorted({device.device_class for device in self.devices}))
        return f"no selected case can run on {classes}: the suites declare none for this backend"

    def _run_jobs(self, pool: Pool, title: str, jobs: Sequence[Job]) -> None:
        if not jobs:
            return
        cases = {(job.case.suite, job.case.key, job.device_class): job.case for job in jobs}
        self.store.declare(cases.values())
        costs = self.store.costs(self.run.repo)
        expected = [
            msgspec.structs.replace(job, expected_s=len(job.sides) * costs.get(job.identity[:3], 0.0)) for job in jobs
        ]
        waiting = {job.identity for job in jobs}
        self.talk.stage(title, len(jobs))
        try:
            for event in pool.run(expected):
                if isinstance(event, Progress):
                    self.talk.working(f"{event.what} {event.case_key}")
                elif isinstance(event, Note):
                    self.problems.append(event.text)
                    self.talk.say(event.text)
                elif isinstance(event, Joined):
                    self.devices.append(event.report.device)
                    self.talk.say(
                        f"device  {event.report.device.device_class} has joined, on {event.report.device.node}"
                    )
                else:
                    self._keep(event, cases)
                    identity = (event.suite, event.case_key, event.device_class, event.round)
                    if identity in waiting:
                        waiting.discard(identity)
                        self.talk.advance()
                self._heed()
        finally:
            self.talk.end()
        self._replay()

    def _replay(self) -> None:
        """What was kept while the database was away goes in before anything is asked of it."""
        self._keep_owning()
        if count := self.spool.replay():
            self.talk.say(f"stored  {counted(count, 'job')} kept while the database was away")
        self.away = False

    def _heed(self) -> None:
        """StoppedError where the run shall not go on, StoreError where another process goes on with it."""
        self._keep_owning()
        now = time.monotonic()
        if now > self.until:
            raise StoppedError(f"run {self.run.uid[:8]} was stopped: its time is used up")
        if self.away or now - self._asked_s < _ASK_S:
            return
        self._asked_s = now
        with suppress(StoreAwayError):
            if self.store.state(self.run.uid) == "interrupted":
                raise StoppedError(f"run {self.run.uid[:8]} was cancelled; what was measured is kept")

    def _keep(self, result: JobResult, cases: dict[Identity, plan.Case]) -> None:
        case = cases[result.suite, result.case_key, result.device_class]
        alike = [device for device in self.devices if device.device_class == result.device_class]
        device = next((one for one in alike if one.uuid == result.device_uuid), alike[0])
        stored = self.spool.add(case, result, device)
        if not stored and not self.away:
            self.talk.say(f"problem {self.spool.problem}; finished jobs are kept in {self.spool.path} meanwhile")
        self.away = not stored

    def _grouped(self, rounds: range) -> dict[tuple[str, str, str], list[JobResult]]:
        groups: dict[tuple[str, str, str], list[JobResult]] = {}
        for result in self.store.jobs(self.run.uid):
            if result.round in rounds:
                groups.setdefault((result.suite, result.case_key, result.device_class), []).append(result)
        return groups

    def _judge(self, pairs: Sequence[Pair], rounds: range) -> list[Finding]:
        groups = self._grouped(rounds)
        broken = self.trees.collected["head"].problems
        found: list[Finding] = []
        for pair in pairs:
            if pair.head is None and pair.case.suite in broken:
                found.extend(_unimportable(pair, broken[pair.case.suite]))
            else:
                results = groups.get(pair.identity, [])
                found.extend(compare(pair.head, pair.base, results, device_class=pair.device_class))
        return found

    def _ask_history(self, pairs: Sequence[Pair], summaries: Sequence[Summary]) -> None:
        if self.history is not None and self.run.base is not None and self.run.options.confirm_rounds:
            cases = {pair.identity: pair.head for pair in pairs if pair.head is not None}
            self.told = self.history.ask(summaries, cases)

    def _confirm(self, pool: Pool, pairs: Sequence[Pair], findings: list[Finding]) -> list[Finding]:
        """Look again at suspects, in fresh rounds only; for what is broken one will do, unless it is fine there."""
        options = self.run.options
        if not options.confirm_rounds:
            return findings
        rounds = range(options.rounds + 1, options.rounds + 1 + options.confirm_rounds)
        told = [name for name, one in self.told.items() if one.stands_out]
        chosen = suspects(findings, told)
        timed: dict[Identity, bool] = {}
        for one in chosen:
            identity = key(one)[:3]
            timed[identity] = timed.get(identity, False) or one.verdict not in (Verdict.FAILED, Verdict.WRONG)
        by_identity = {pair.identity: pair for pair in pairs}
        suspected = [by_identity[one] for one in timed if one in by_identity]
        again = self._in_time(suspected, {one: len(rounds) if timed[one] else 1 for one in timed})
        if left := {pair.identity for pair in suspected}.difference(pair.identity for pair in again):
            findings = self._left_out(findings, {key(one) for one in chosen if key(one)[:3] in left})
        if not again:
            return findings
        doubtful = [pair for pair in again if timed[pair.identity]]
        broken = [pair for pair in again if not timed[pair.identity]]
        if doubtful:
            self.talk.say(f"confirm {len(doubtful)} of {len(pairs)} cases in up to {len(rounds)} fresh rounds")
        if broken:
            self.talk.say(f"confirm {len(broken)} of {len(pairs)} cases that failed or were wrong in a fresh round")
        first = self._grouped(range(1, rounds[0]))
        turns = plan.other_devices_first(again, self.devices, {k: v[-1].device_uuid for k, v in first.items()})
        early = rounds[:EARLY_ROUNDS]
        jobs = [*self._left(doubtful, early, turns), *self._left(broken, early[:1], turns)]
        self._run_jobs(pool, "confirm", jobs)
        looked = settle(findings, self._judge(again, early), told, alpha=self.alpha)
        unsure = unclear(looked, {key(one) for one in chosen})
        more = [pair for pair in doubtful if pair.identity in unsure]
        more += self._as_often(again, broken, unsure, rounds)
        self._run_jobs(pool, "confirm", self._left(more, rounds, turns))
        return settle(findings, self._judge(again, rounds), told, alpha=self.alpha)

    def _as_often(
        self, again: Sequence[Pair], broken: Sequence[Pair], unsure: AbstractSet[Identity], rounds: Sequence[int]
    ) -> list[Pair]:
        """Of what was broken and then fine, what there is time for in all fresh rounds, beside the rest of `again`."""
        fine = [pair for pair in broken if pair.identity in unsure]
        if not fine or len(rounds) == 1:
            return []
        once = {pair.identity for pair in broken} - unsure
        wanted = [*(pair for pair in again if pair not in fine), *fine]
        times = {pair.identity: 1 if pair.identity in once else len(rounds) for pair in wanted}
        fit = {pair.identity for pair in self._in_time(wanted, times)}
        fine = [pair for pair in fine if pair.identity in fit]
        if fine:
            self.talk.say(f"confirm {counted(len(fine), 'case')} that failed or were wrong and are fine now, again")
        return fine

    def _in_time(self, suspected: Sequence[Pair], rounds: Mapping[Identity, int]) -> list[Pair]:
        """Of the suspects, most urgent first, those that the second look has time for."""
        known = self.store.costs(self.run.repo)
        costs = {pair.identity: (2 if pair.base else 1) * known.get(pair.identity, 0.0) for pair in suspected}
        first = self._grouped(range(1, 1 + self.run.options.rounds))
        costs |= {identity: min(job.wall_s for job in jobs) for identity, jobs in first.items()}
        wanted = [(pair, rounds[pair.identity]) for pair in suspected]
        return plan.within(self.run.options.confirm_s, wanted, costs, self.devices)

    def _left_out(self, findings: Iterable[Finding], left: AbstractSet[Key]) -> list[Finding]:
        """The findings, where some suspects are not looked at again and stay what they are."""
        note = f"{NO_TIME}: {self.run.options.confirm_s / 60:g} minutes (`confirm-minutes`) hold no more"
        self.talk.say(f"confirm {counted(len(left), 'suspect')} {note}")
        return [
            msgspec.structs.replace(one, message="; ".join(filter(None, (one.message, note))))
            if key(one) in left
            else one
            for one in findings
        ]

    def _summaries(self, pairs: Sequence[Pair], rounds: range) -> list[Summary]:
        groups = self._grouped(rounds)
        made: list[Summary] = []
        for pair in pairs:
            device = next(d for d in self.devices if d.device_class == pair.device_class)
            sides: list[tuple[Side, Case | None]] = [("head", pair.head), ("base", pair.base)]
            for side, case in sides:
                if case is not None and pair.head is not None:
                    made.extend(summarize(case, side, groups.get(pair.identity, []), device))
        return made

    def _finish(
        self, state: Literal["complete", "interrupted"], summaries: Sequence[Summary], findings: Sequence[Finding]
    ) -> None:
        self.store.finish_run(
            self.run.uid,
            state=state,
            finished_us=time.time_ns() // 1000,
            summaries=summaries,
            findings=findings,
            problems=tuple(self.problems),
        )


def _unimportable(pair: Pair, problem: str) -> list[Finding]:
    """Base declares the case and head's suite no longer imports: newly failed, every candidate of it."""
    case = pair.case
    return [
        Finding(
            suite=case.suite,
            case_key=case.key,
            device_class=pair.device_class,
            variant=variant,
            verdict=Verdict.FAILED,
            message=problem,
            newly=True,
            min_effect=case.min_effect,
        )
        for variant in case.variants
        if variant != case.baseline and variant not in NEVER_GATED
    ]
