"""`perftrack bisect`: what it refuses, and what it answers from measurements that are all stored."""

from pathlib import Path

import msgspec
import pytest

from perftrack import stats
from perftrack.errors import IncompleteError, StoppedError, UsageError
from perftrack.judge.value import Finding, Interval
from perftrack.measure.methods import default_method
from perftrack.model import (
    Accuracy,
    Case,
    Device,
    JobResult,
    Measurement,
    Run,
    RunOptions,
    Status,
    Traffic,
    Verdict,
)
from perftrack.pipeline.bisect import Request, bisect
from perftrack.pipeline.following import cancel, watch
from perftrack.pipeline.reports import report_of
from perftrack.report import bisect as shown
from perftrack.report.layout import Look
from perftrack.report.words import BISECTED
from perftrack.revision import Repository
from perftrack.store import Store

SUITE = """
from perftrack.declare import benchmark


def build(x, **_):
    return (lambda: None), x


@benchmark(
    variants={"unfused": build, "fused": build},
    reference=lambda x, **_: x,
    axes={"n": [4]},
    traffic=lambda n, **_: {"reads": 8 * n, "writes": 8 * n},
)
def nothing(rng, n):
    '''Nothing.'''
    return rng.normal((n,), "float64")
"""


class Listener:
    """Nothing is to be heard."""

    def say(self, text):
        raise AssertionError(text)


def ask(repo, tmp_path, case, span, talk=None, **more):
    database = str(tmp_path / "perf.db")
    bisect(Request(start=repo.root, case=case, span=span, database=database, **more), talk or Listener())


@pytest.fixture
def two(repo):
    suites = {"bench/one.py": SUITE, "bench/two.py": SUITE}
    repo.commit("first", {"pyproject.toml": '[tool.perftrack]\nsuites = ["bench"]\n', **suites})
    repo.commit("second", {"README.md": "words"})
    return repo


@pytest.mark.parametrize(
    ("case", "span", "more", "said"),
    [
        ("nothing[n=4]", "HEAD", {}, "write GOOD..BAD"),
        ("nothing[n=4]", "..HEAD", {}, "write GOOD..BAD"),
        ("nothing[n=4]", "HEAD~1...HEAD", {}, "write GOOD..BAD"),
        ("nothing[n=4]", "HEAD..HEAD~1", {}, "does not have HEAD behind it"),
        ("nothing[n=4]", "HEAD..", {}, "both are"),
        ("nothing[n=4]", "HEAD~1..nowhere", {}, "unknown revision 'nowhere'"),
        ("nothing[n=4]", "HEAD~1..HEAD", {"rounds": 1}, "--rounds is 1"),
        ("nothing[n=4]", "HEAD~1..HEAD", {}, "write one::nothing[n=4]"),
        ("one::nothing[n=4]", "HEAD~1..HEAD", {"variant": "unfused", "error": True}, "whose error is not judged"),
        ("one::nothing", "HEAD~1..HEAD", {}, "declares no case 'one::nothing'"),
        ("one::nothing[n=4]", "HEAD~1..HEAD", {"variant": "other"}, "there is unfused, fused"),
    ],
)
def test_a_question_without_an_answer_is_refused_in_a_sentence(two, tmp_path: Path, case, span, more, said):
    with pytest.raises(UsageError) as raised:
        ask(two, tmp_path, case, span, **more)
    assert said in str(raised.value)


def test_commits_are_those_of_the_first_parents(repo):
    good = repo.commit("good")
    repo.git("checkout", "-q", "-b", "side")
    repo.commit("on the side", {"side.txt": "1"})
    repo.git("checkout", "-q", "main")
    own = repo.commit("own", {"own.txt": "1"})
    repo.git("merge", "-q", "--no-ff", "-m", "merge", "side")
    last = repo.commit("last")
    shas = Repository.discover(repo.root).between(good, "HEAD")
    assert shas == [good, own, repo.git("rev-parse", "HEAD~1"), last]


KEY = "nothing[n=4]"
CASE = Case(
    suite="one", benchmark="nothing", key=KEY, backend="cpu", params={"n": 4}, variants=("unfused", "fused"),
    traffic=Traffic(read_bytes=32, write_bytes=32), min_effect=0.02,
)  # fmt: skip
CPU = Device(uuid="CPU-a", name="EPYC", backend="cpu", device_class="EPYC-2c", node="n", memory_bytes=1)
RESULT = JobResult(
    suite="one", case_key=KEY, device_class=CPU.device_class, round=1, attempt=1, status=Status.OK,
    device_uuid=CPU.uuid, measurements=(Measurement(side="head", variant="fused", status=Status.OK),),
)  # fmt: skip
ENDS = (1.10, 1.11, 1.09, 1.10, 1.10)


class Quiet:
    def __init__(self):
        self.said = []

    def say(self, text):
        self.said.append(text)


def line(repo, count, suite=SUITE):
    """A repository of so many commits after the good one, whose ids come back, the good one first."""
    files = {"pyproject.toml": '[tool.perftrack]\nsuites = ["bench"]\n', "bench/one.py": suite}
    return [repo.commit(f"commit {number}", files if not number else None) for number in range(count + 1)]


def rounds_of(count):
    return [msgspec.structs.replace(RESULT, round=number) for number in range(1, 1 + count)]


def store_runs(repo, tmp_path, shas, said, rounds, *, finding_of=None, jobs_of=None, cases=(CASE,)):
    """Runs as a search leaves them: `said` has for a place the ratios of its rounds, or why there are none."""
    repository = Repository.discover(repo.root)
    with Store.open(str(tmp_path / "perf.db")) as store:
        for place, ratios in said.items():
            between = place < len(shas) - 1
            count = rounds if between else 5
            options = RunOptions(
                suites=("one",), expression=f"one::{cases[-1].key}", rounds=count,
                device=CPU.device_class if between else "", confirm_rounds=0, suite_paths=("bench",), seed=place,
                methods={name: default_method(name) for name in ("cuda", "cpu")},
            )  # fmt: skip
            run = Run(
                uid=f"{place + 1:032x}", repo=repository.name, head=repository.revision(shas[place]),
                base=repository.revision(shas[0]), base_note="", options=options, started_us=place + 1,
            )  # fmt: skip
            store.begin_run(run)
            for case in cases:
                told = ratios if case is cases[-1] else (2.0,) * count
                for job in jobs_of(told) if jobs_of else rounds_of(count):
                    store.add_job(run.uid, case, msgspec.structs.replace(job, case_key=case.key), CPU)
            broken = isinstance(ratios, str)
            finding = Finding(
                suite="one", case_key=cases[-1].key, device_class=CPU.device_class, variant="fused",
                verdict=Verdict.FAILED if broken else Verdict.AMBIGUOUS, message=ratios if broken else "",
                ratios=() if broken else ratios,
                change=None if broken else Interval(*stats.ratio_interval(ratios)),
            )  # fmt: skip
            findings = finding_of(finding, ratios) if finding_of else [finding]
            store.finish_run(run.uid, state="complete", finished_us=1, summaries=[], findings=findings)


def search(repo, tmp_path, shas, case=KEY, **more):
    talk = Quiet()
    database = str(tmp_path / "perf.db")
    request = Request(start=repo.root, case=case, span=f"{shas[0]}..{shas[-1]}", database=database, **more)
    return bisect(request, talk), talk.said


def test_a_step_is_found_between_stored_commits_and_none_is_measured_again(repo, tmp_path):
    shas = line(repo, 8)
    steps = {4: (1.004, 1.003, 1.002, 1.003), 6: (1.09, 1.10, 1.11, 1.10), 5: (1.08, 1.09, 1.10, 1.09)}
    store_runs(repo, tmp_path, shas, {**steps, 8: ENDS}, rounds=2)
    report, said = search(repo, tmp_path, shas)
    assert [one.subject for one in report.found] == ["commit 5"]
    assert (report.before.subject, report.rounds, report.commits) == ("commit 4", 2, 8)
    assert report.change == pytest.approx(1.09 / 1.003, rel=1e-3)
    assert [one.answer for one in report.tested] == ["good", "bad", "bad", "bad"]
    assert sum(text.startswith("stored") for text in said) == 4
    text = shown.text(report, Look(width=160))
    assert text.startswith(f"FOUND  {shas[5][:7]}: 8.7 % slower  commit 5")
    assert "10.0 % slower at" in text


def test_a_commit_that_fails_leaves_a_range_and_a_step_down_is_found_too(repo, tmp_path):
    shas = line(repo, 4)
    faster = tuple(1 / ratio for ratio in ENDS)
    store_runs(repo, tmp_path, shas, {2: "it crashed", 1: (1.0, 1.001), 3: (0.91, 0.90), 4: faster}, rounds=2)
    report, _ = search(repo, tmp_path, shas)
    assert [(one.subject, one.answer) for one in report.found] == [("commit 2", "skipped"), ("commit 3", "bad")]
    text = shown.text(report, Look(width=160))
    assert text.startswith(f"RANGE  one of 2 commits up to {shas[3][:7]}: 9.5 % faster")
    assert "it crashed" in text


def test_a_step_inside_the_noise_is_refused_with_both_figures(repo, tmp_path):
    shas = line(repo, 2)
    store_runs(repo, tmp_path, shas, {2: (1.10, 0.95, 1.03, 1.20, 0.99)}, rounds=2)
    with pytest.raises(
        IncompleteError, match=r"beyond the noise: 5\.\d % slower, 99 % interval .* faster to .* slower"
    ):
        search(repo, tmp_path, shas)


def test_an_end_that_fails_is_told(repo, tmp_path):
    shas = line(repo, 2)
    store_runs(repo, tmp_path, shas, {2: "illegal address"}, rounds=2)
    with pytest.raises(IncompleteError, match=r"no time that could be compared with the good end's: illegal address$"):
        search(repo, tmp_path, shas)


def with_error(finding, ratios):
    """The errors of both sides instead of times."""
    lost = Accuracy.LESS if ratios[0] >= 1.5 else Accuracy.NONE
    error = ratios[0] * 1e-7
    return [msgspec.structs.replace(finding, ratios=(), change=None, error_head=error, error_base=1e-7, accuracy=lost)]


def test_a_step_of_the_error_is_found_in_one_round_a_commit(repo, tmp_path):
    shas = line(repo, 4)
    said = {2: (1.0, 1.0), 3: (40.0, 40.0), 4: (41.0, 41.0)}
    store_runs(repo, tmp_path, shas, said, rounds=1, finding_of=with_error)
    report, _ = search(repo, tmp_path, shas, error=True)
    assert ([one.subject for one in report.found], report.of, report.rounds) == (["commit 3"], "error", 1)
    text = shown.text(report, Look(width=160))
    assert text.startswith(f"FOUND  {shas[3][:7]}: 40.0 times the error  commit 3")
    assert "41.0 times the error at" in text


def test_equal_errors_are_no_step(repo, tmp_path):
    shas = line(repo, 2)
    store_runs(repo, tmp_path, shas, {2: (1.2, 1.2)}, rounds=1, finding_of=with_error)
    with pytest.raises(
        IncompleteError, match=r"do not differ in the error of nothing\[n=4\] fused: 1.2 times the error"
    ):
        search(repo, tmp_path, shas, error=True)


def rounds_of_baseline(ratios):
    """Jobs in which the baseline variant of the good end takes 1 us."""
    return [
        msgspec.structs.replace(
            RESULT,
            round=number,
            measurements=tuple(
                Measurement(side=side, variant="unfused", status=Status.OK, samples_s=(time,), blocks=(0,))
                for side, time in (("head", ratio * 1e-6), ("base", 1e-6))
            ),
        )
        for number, ratio in enumerate(ratios, start=1)
    ]


def test_the_baseline_is_followed_too_where_it_is_named(repo, tmp_path):
    shas = line(repo, 4)
    said = {2: (1.0, 1.001), 3: (0.95, 0.951), 4: (0.95, 0.951, 0.949, 0.95, 0.95)}
    store_runs(repo, tmp_path, shas, said, rounds=2, jobs_of=rounds_of_baseline)
    report, _ = search(repo, tmp_path, shas, variant="unfused")
    assert ([one.subject for one in report.found], report.variant) == (["commit 3"], "unfused")
    assert report.step.point == pytest.approx(0.95, rel=1e-3)


class MeasuringError(Exception):
    """The search would begin to measure."""


class Told:
    def say(self, text):
        if text.startswith("measure "):
            raise MeasuringError(text.split(",")[0])


def measures(repo, tmp_path, shas, **more):
    """What a search measures first, as it is said."""
    with pytest.raises(MeasuringError) as raised:
        ask(repo, tmp_path, KEY, f"{shas[0]}..{shas[-1]}", talk=Told(), **more)
    return str(raised.value)


class Cancelling:
    def say(self, text):
        if text.startswith("measure "):
            raise StoppedError("cancelled")


def test_a_search_that_is_cancelled_ends(repo, tmp_path):
    shas = line(repo, 4)
    store_runs(repo, tmp_path, shas, {4: ENDS}, rounds=2)
    with pytest.raises(StoppedError, match="cancelled"):
        ask(repo, tmp_path, KEY, f"{shas[0]}..{shas[-1]}", talk=Cancelling())


def lost(*statuses):
    """Jobs whose rounds the machine ended so."""
    return lambda _: [
        msgspec.structs.replace(one, status=status, message="no usable device is left", measurements=())
        if status is not Status.OK
        else one
        for one, status in zip(rounds_of(len(statuses)), statuses, strict=True)
    ]


def unmeasured(finding, _):
    return [msgspec.structs.replace(finding, verdict=Verdict.MISSING, ratios=(), change=None)]


@pytest.mark.parametrize(
    ("statuses", "more"),
    [
        (5 * [Status.INFRA], {}),
        ([*(4 * [Status.OK]), Status.INFRA], {"error": True}),
        (5 * [Status.INFRA], {"variant": "unfused"}),
    ],
)
def test_an_end_of_which_the_machine_lost_rounds_is_measured_anew(repo, tmp_path, statuses, more):
    shas = line(repo, 1)
    store_runs(repo, tmp_path, shas, {1: ENDS}, rounds=2, finding_of=unmeasured, jobs_of=lost(*statuses))
    assert measures(repo, tmp_path, shas, **more) == f"measure {shas[1][:7]} commit 1"


def test_so_is_a_commit_between_the_ends_that_the_machine_disturbed_but_none_that_fails(repo, tmp_path):
    def disturbed(finding, ratios):
        return [msgspec.structs.replace(finding, verdict=Verdict.UNSTABLE) if ratios == "disturbed" else finding]

    shas = line(repo, 8)
    said = {3: (1.0, 1.002), 4: "it crashed", 5: (1.0, 1.001), 6: "disturbed", 8: ENDS}
    store_runs(repo, tmp_path, shas, said, rounds=2, finding_of=disturbed)
    assert measures(repo, tmp_path, shas) == f"measure {shas[6][:7]} commit 6"


def test_the_baseline_is_measured_anew_once_its_samples_have_expired(repo, tmp_path):
    shas = line(repo, 2)
    faster = (0.95, 0.951, 0.949, 0.95, 0.95)
    store_runs(repo, tmp_path, shas, {1: (1.0, 1.001), 2: faster}, rounds=2, jobs_of=rounds_of_baseline)
    assert search(repo, tmp_path, shas, variant="unfused")[0].found[0].subject == "commit 2"
    with Store.open(str(tmp_path / "perf.db")) as store:
        assert store.expire(9).runs == 2
    assert measures(repo, tmp_path, shas, variant="unfused") == f"measure {shas[2][:7]} commit 2"
    report, said = search(repo, tmp_path, shas, variant="fused")
    assert report.step.point == pytest.approx(0.95, rel=1e-3), "its findings are kept"
    assert not [text for text in said if text.startswith("measure")]


@pytest.mark.parametrize("base", [0.0, 1e-9])
def test_a_step_from_no_error_at_all_is_found(repo, tmp_path, base):
    """Whatever is below a quarter of float32's unit of round-off, 2^-26, is alike."""

    def with_error_from_nothing(finding, ratios):
        lost = Accuracy.LESS if ratios[0] > 1 else Accuracy.NONE
        head = ratios[0] * 2**-26 if ratios[0] > 1 else 0.0
        return [
            msgspec.structs.replace(finding, ratios=(), change=None, error_head=head, error_base=base, accuracy=lost)
        ]

    shas = line(repo, 4)
    said = {2: (1.0, 1.0), 3: (40.0, 40.0), 4: (41.0, 41.0)}
    store_runs(repo, tmp_path, shas, said, rounds=1, finding_of=with_error_from_nothing)
    report, _ = search(repo, tmp_path, shas, error=True)
    assert [(one.subject, one.answer) for one in report.tested] == [
        ("commit 2", "good"),
        ("commit 3", "bad"),
        ("commit 4", "bad"),
    ]
    assert ([one.subject for one in report.found], report.step.point, report.change) == (["commit 3"], 41.0, 40.0)


TWINS = """
from perftrack.declare import benchmark


def build(x, **_):
    return (lambda: None), x


declare = benchmark(
    variants={"unfused": build, "fused": build},
    reference=lambda x, **_: x,
    axes={},
    traffic=lambda **_: {"reads": 32, "writes": 32},
)


def copy(rng):
    return rng.normal((4,), "float64")


def Copy(rng):
    return rng.normal((4,), "float64")


copy, Copy = declare(copy), declare(Copy)
"""


@pytest.mark.parametrize("variant", ["", "unfused"])
def test_a_case_is_not_taken_for_another_that_was_measured_with_it(repo, tmp_path, variant):
    """`-k` does not know capitals from small letters."""
    shas = line(repo, 2, TWINS)
    small = msgspec.structs.replace(CASE, benchmark="copy", key="copy", params={})
    large = msgspec.structs.replace(small, benchmark="Copy", key="Copy")
    said = {1: (1.0, 1.001), 2: (1.04, 1.041, 1.039, 1.04, 1.04)}

    def with_a_clearer_one(finding, ratios):
        change = Interval(2.0, 2.0, 2.0)
        return [msgspec.structs.replace(finding, case_key="Copy", ratios=(2.0,) * len(ratios), change=change), finding]

    twins = {"finding_of": with_a_clearer_one, "jobs_of": rounds_of_baseline, "cases": (large, small)}
    store_runs(repo, tmp_path, shas, said, rounds=2, **twins)
    report, _ = search(repo, tmp_path, shas, case="copy", variant=variant)
    assert report.step.point == pytest.approx(stats.geometric_mean(said[2]), rel=1e-6)
    assert (report.case, report.suite, [one.subject for one in report.found]) == ("copy", "one", ["commit 2"])


def test_who_looks_at_a_bisection_that_was_broken_off_is_told_to_give_its_command_again(repo, tmp_path):
    shas = line(repo, 1)
    repository = Repository.discover(repo.root)
    head, base = (repository.revision(sha) for sha in reversed(shas))
    uid = "ab" * 16
    with Store.open(str(tmp_path / "perf.db")) as store:
        store.begin_run(
            Run(
                uid=uid, repo=repository.name, head=head, base=base, base_note=BISECTED, options=RunOptions(),
                started_us=1, expected_jobs=5,
            )
        )  # fmt: skip
        assert cancel(store, uid).endswith("what was measured is kept: the same `perftrack bisect` command")
        with pytest.raises(IncompleteError, match="0 of 5 jobs; the same `perftrack bisect` command finishes it"):
            watch(store, uid, Quiet())
        assert any(
            "the same `perftrack bisect` command measures the rest" in one for one in report_of(store, uid).reasons
        )
