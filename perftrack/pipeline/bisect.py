"""`perftrack bisect`: commits between a good and a bad one, each measured beside the good one, until one is left."""

import math
import secrets
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from perftrack import config, stats
from perftrack.declare import NEVER_GATED
from perftrack.errors import IncompleteError, StoppedError, UsageError
from perftrack.judge import bisect as search
from perftrack.judge import life
from perftrack.judge.accuracy import FACTOR
from perftrack.judge.bisect import Answer
from perftrack.judge.life import Kind
from perftrack.judge.value import Interval, spell
from perftrack.measure.methods import default_method, quick_method
from perftrack.model import Case, Revision, Run, RunOptions
from perftrack.pipeline.bisect_answers import Question, Seen
from perftrack.pipeline.execution import Execution
from perftrack.pipeline.outside import carry_out
from perftrack.pipeline.synthetic import refuse
from perftrack.pipeline.talk import Talk
from perftrack.pipeline.trees import Compared, Trees, export
from perftrack.report.bisect import BisectReport, Tested
from perftrack.report.words import BISECTED, counted
from perftrack.revision import Repository
from perftrack.store import Store, default_url


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the user typed after `perftrack bisect`."""

    start: Path
    case: str
    """A whole key, or `suite::key`."""
    span: str
    """`GOOD..BAD`; the step may go either way."""
    variant: str = ""
    """A candidate, or the baseline variant; empty: the candidate with the clearest step."""
    error: bool = False
    """Look for a step of the error against float64, not of the time."""
    rounds: int | None = None
    """Of the ends; None: as many as confirm a suspicion."""
    device: str = ""
    parallel: bool = False
    """All devices of the class measure a commit at once, a round each."""
    quick: bool = False
    database: str | None = None
    address: str | None = None


def bisect(request: Request, talk: Talk) -> BisectReport:
    """Find the commit that made the step between the ends of `span`, in first-parent order.

    What is stored is not measured again, so that a search that was broken off goes on where it was. UsageError for a
    case, a variant or commits that are not there; IncompleteError where the ends do not differ beyond their noise, or
    one of them cannot be measured.
    """
    repository = Repository.discover(request.start)
    settings = config.resolve(repository.root)
    rounds = settings.confirm_rounds if request.rounds is None else request.rounds
    if rounds < search.FEWEST_ROUNDS:
        raise UsageError(
            f"--rounds is {rounds}; a step is told from its noise in {search.FEWEST_ROUNDS} rounds at least"
        )
    shas = repository.between(*_ends(request.span))
    make = quick_method if request.quick else default_method
    options = RunOptions(
        device=request.device,
        rounds=rounds,
        confirm_rounds=0,
        suite_paths=settings.suites,
        methods={"cuda": make("cuda"), "cpu": make("cpu")},
        case_timeout_s=settings.case_timeout,
        seed=secrets.randbits(32),
    )
    url = config.database_url(request.database, settings) or default_url()
    with Store.open(url) as store, tempfile.TemporaryDirectory(prefix="perftrack-") as scratch:
        refuse(store)
        return _Bisection(request, repository, store, talk, Path(scratch), options, shas).report()


def _ends(span: str) -> tuple[str, str]:
    good, dots, bad = span.partition("..")
    if not dots or not good or bad.startswith("."):
        raise UsageError(f"{span!r} is no pair of commits: write GOOD..BAD, for example v1.2..HEAD")
    return good, bad or "HEAD"


def _expression(suite: str, key: str, known: Sequence[Case]) -> str:
    """`-k` for one case. A key without axes is a part of other keys, which need not be measured too."""
    longer = [one.key for one in known if one.suite == suite and len(one.key) > len(key)]
    others = {"".join(name.partition("[")[:2]) for name in longer if name.lower().startswith(key.lower())}
    return " and not ".join(f"{suite}::{name}" for name in (key, *sorted(others)))


class _LacksCaseError(UsageError):
    """A commit that cannot be collected, or does not declare the case."""


@dataclass
class _Bisection:
    request: Request
    repository: Repository
    store: Store
    talk: Talk
    scratch: Path
    options: RunOptions
    shas: list[str]
    question: Question = field(init=False)
    tested: dict[int, Tested] = field(default_factory=dict)

    def report(self) -> BisectReport:
        """Both ends, then commit by commit."""
        last = len(self.shas) - 1
        good, bad = self._revision(0), self._revision(last)
        self.question = asked = self._case()
        self.talk.say(f"good    {good.label} {good.subject}")
        self.talk.say(f"bad     {bad.label} {bad.subject}, {counted(last, 'commit')}")
        ends, run_uid = self._end(bad)
        interval = ends.change
        if not self.request.error or interval is None:
            interval = Interval(*stats.ratio_interval(ends.ratios, search.CONFIDENCE))
        self._check(ends, interval, good, bad)
        rounds = 1 if self.request.error else search.rounds_needed(ends.ratios)
        self.options = msgspec.structs.replace(self.options, rounds=rounds, device=ends.device_class)
        self.question = replace(self.question, variant=ends.variant)
        self.talk.say(f"step    {self._spell(interval.point)}: {rounds} rounds a commit between the ends")
        self.tested[last] = self._tested(bad, "bad", ends, run_uid)
        answers = self._search(ends, interval.point)
        left = search.culprits(len(self.shas), answers)
        before, after = search.bracket(len(self.shas), answers)
        return BisectReport(
            suite=asked.suite,
            case=asked.key,
            variant=ends.variant,
            device_class=ends.device_class,
            of="error" if self.request.error else "time",
            good=good.label,
            bad=bad.label,
            commits=last,
            step=interval,
            rounds=self.options.rounds,
            found=tuple(self.tested[place] for place in left),
            before=self.tested.get(before),
            change=self._change(after) / self._change(before),
            tested=tuple(self.tested[place] for place in sorted(self.tested)),
        )

    def _change(self, place: int) -> float:
        """Of a measured commit from the good end, which is 1."""
        change = self.tested[place].change if place else None
        return change.point if change else 1.0

    def _spell(self, ratio: float) -> str:
        return life.size(Kind.LESS_ACCURATE if self.request.error else Kind.SLOWER, ratio)

    def _search(self, ends: Seen, step: float) -> dict[int, Answer]:
        answers: dict[int, Answer] = {}
        while (place := search.next_place(len(self.shas), answers)) is not None:
            self.tested[place] = one = self._look(self._revision(place), ends, step)
            answers[place] = one.answer
            said = self._spell(one.change.point) if one.change else one.message
            self.talk.say(f"{one.answer:<7} {one.commit} {one.subject}: {said}")
        return answers

    def _revision(self, place: int) -> Revision:
        return self.repository.revision(self.shas[place])

    def _case(self) -> Question:
        """About the case at the good end; from here on the options are for it alone."""
        named, _, key = self.request.case.rpartition("::")
        trees = self._export(self._revision(0))
        known = trees.cases("head")
        found = sorted({one.suite for one in known if one.key == key and named in {"", one.suite}})
        where = trees.head.label
        if not found:
            broken = f"; {trees.problems[0]}" if trees.problems else ""
            raise UsageError(
                f"{where} declares no case {self.request.case!r}: give a whole key, as a report prints it{broken}"
            )
        if len(found) > 1:
            raise UsageError(f"the suites {', '.join(found)} of {where} have a case {key!r}: write {found[0]}::{key}")
        self._check_variant([one for one in known if (one.suite, one.key) == (found[0], key)])
        self.options = msgspec.structs.replace(
            self.options, suites=(found[0],), expression=_expression(found[0], key, known)
        )
        return Question(found[0], key, self.request.variant, self.request.error)

    def _check_variant(self, cases: Sequence[Case]) -> None:
        names = dict.fromkeys(name for one in cases for name in one.variants if name not in NEVER_GATED)
        if self.request.variant and self.request.variant not in names:
            raise UsageError(f"--variant {self.request.variant!r} is none of this case: there is {', '.join(names)}")
        if self.request.error and self.request.variant == cases[0].baseline:
            raise UsageError(f"--variant {self.request.variant!r} is the baseline, whose error is not judged")

    def _end(self, bad: Revision) -> tuple[Seen, str]:
        """What the bad end says of the variant that was asked for, else of that with the clearest step; and its run."""
        found, run_uid = self._measure(bad)
        wanted = [one for one in found if self.request.variant in {"", one.variant}]
        timed = [one for one in wanted if self.question.is_enough(one)]
        if not timed:
            why = next((one.why for one in wanted), "it was not measured")
            what = "error" if self.request.error else "time"
            again = "" if self.question.is_answered(self.store, run_uid) else "; the same command measures it again"
            raise IncompleteError(f"{bad.label} has no {what} that could be compared with the good end's: {why}{again}")
        if len(classes := sorted({one.device_class for one in timed})) > 1:
            raise UsageError(f"{self.question.key} ran on {', '.join(classes)}: choose one with -d")
        if self.request.error:
            return max(timed, key=lambda one: (one.is_step, abs(math.log(one.ratios[0])))), run_uid
        return min(timed, key=lambda one: stats.ratio_p_value(one.ratios)), run_uid

    def _check(self, ends: Seen, interval: Interval, good: Revision, bad: Revision) -> None:
        sides = f"{bad.label} and {good.label} do not differ in"
        key = self.question.key
        if self.request.error and not ends.is_step:
            raise IncompleteError(
                f"{sides} the error of {key} {ends.variant}: {self._spell(interval.point)}, and it takes "
                f"{FACTOR:g} times, and more than the rounding of the result, to be a step"
            )
        if not self.request.error and not search.is_step(ends.ratios):
            low, high = (spell(bound) for bound in (interval.low, interval.high))
            raise IncompleteError(
                f"{sides} {key} {ends.variant} beyond the noise: "
                f"{spell(interval.point)}, 99 % interval {low} to {high} in {len(ends.ratios)} rounds; there is no "
                f"step to look for, unless --rounds {2 * len(ends.ratios)} shows one"
            )

    def _look(self, revision: Revision, ends: Seen, step: float) -> Tested:
        """What one commit between the ends says."""
        try:
            seen, run_uid = self._measure(revision)
        except StoppedError:
            raise
        except (_LacksCaseError, IncompleteError) as error:
            return self._skipped(revision, str(error))
        same = (ends.variant, ends.device_class)
        found = next((one for one in seen if (one.variant, one.device_class) == same), None)
        if found is None or not self.question.is_enough(found):
            return self._skipped(revision, found.why if found else f"no variant {ends.variant}", run_uid)
        answer = search.classify(stats.geometric_mean(found.ratios), step)
        return self._tested(revision, answer, found, run_uid)

    def _skipped(self, revision: Revision, why: str, run_uid: str = "") -> Tested:
        return Tested(
            commit=revision.label,
            sha=revision.sha,
            subject=revision.subject,
            answer="skipped",
            message=why,
            run=run_uid,
        )

    def _tested(self, revision: Revision, answer: Answer, found: Seen, run_uid: str) -> Tested:
        return Tested(
            commit=revision.label,
            sha=revision.sha,
            subject=revision.subject,
            answer=answer,
            change=found.change,
            rounds=self.options.rounds if self.request.error else len(found.ratios),
            run=run_uid,
        )

    def _export(self, revision: Revision, base: Revision | None = None) -> Trees:
        compared = Compared(self.repository, revision, base, BISECTED)
        return export(compared, self.options.suite_paths, self.scratch)

    def _with_case(self, revision: Revision, good: Revision) -> Trees:
        try:
            trees = self._export(revision, good)
        except UsageError as error:
            raise _LacksCaseError(str(error)) from error
        suite, key = self.question.suite, self.question.key
        if not any((one.suite, one.key) == (suite, key) for one in trees.cases("head")):
            raise _LacksCaseError(trees.collected["head"].problems.get(suite, f"{revision.label} has no case {key}"))
        return trees

    def _measure(self, revision: Revision) -> tuple[list[Seen], str]:
        """What a commit beside the good end says, stored or new, and its run."""
        good = self._revision(0)
        run = self._stored(revision, good)
        if run is None or run.state != "complete":
            trees = self._with_case(revision, good)
            run = run or self._new_run(revision, good, trees)
            self.talk.say(
                f"measure {revision.label} {revision.subject}, {run.options.rounds} rounds, run {run.uid[:8]}"
            )
            execution = Execution(run, trees, self.store, self.talk, spread=self.request.parallel)
            carry_out(execution, self.request.address)
        else:
            self.talk.say(f"stored  {revision.label} {revision.subject}, run {run.uid[:8]}")
        return self.question.seen(self.store, run.uid), run.uid

    def _stored(self, revision: Revision, good: Revision) -> Run | None:
        """The newest run of this very question that was interrupted or is an answer."""
        for entry in self.store.runs(repo=self.repository.name):
            run = entry.run
            same = run.head.sha == revision.sha and not run.head.dirty and run.base and run.base.sha == good.sha
            same = same and msgspec.structs.replace(run.options, seed=self.options.seed) == self.options
            if same and (run.state != "complete" or self.question.is_answered(self.store, run.uid)):
                return run
        return None

    def _new_run(self, revision: Revision, good: Revision, trees: Trees) -> Run:
        return Run(
            uid=secrets.token_hex(16),
            repo=self.repository.name,
            head=revision,
            base=good,
            base_note=trees.base_note,
            options=self.options,
            started_us=time.time_ns() // 1000,
            problems=trees.problems,
        )
