"""The protocol over an engine whose clock is scripted, for what real hardware does not do on request."""

import dataclasses
import itertools
import time
from contextlib import nullcontext

import msgspec
import numpy as np
import pytest

from perftrack.declare import benchmark
from perftrack.measure.cpu import CpuEngine
from perftrack.measure.engine import Block, Cost, DeviceLostError, Loop, State
from perftrack.measure.host import identify_cpu
from perftrack.measure.protocol import measure, mix_of
from perftrack.measure.subject import Subject
from perftrack.model import Job, Method, Status, Traffic

METHOD = Method(blocks=10, warmup_s=0.0, max_warmup_s=0.0, sets=2)


class ScriptedEngine:
    """NumPy computes, but clock, canary and throttle reasons come from scripts, one entry a block."""

    backend = "cpu"
    xp = np
    headroom = 1.05

    def __init__(
        self,
        canary=(1.0,),
        reasons=(frozenset(),),
        starved=(False,),
        ceiling=1e30,
        clocks=((),),
        kept="",
        mode="loop",
    ):
        self.cache_bytes = 1024
        self.rotation_bytes = 1 << 16
        self.busy_s = 0.0
        self._canary = itertools.cycle(canary)
        self._reasons = itertools.cycle(reasons)
        self._starved = itertools.cycle(starved)
        self._clocks = itertools.cycle(clocks)
        self._ceiling = ceiling
        self.kept = kept
        self.lost = False
        self.intruders = ""
        self.orders = []
        self.rests = []
        self.mode = mode
        self.held = 0
        self.free = 1 << 32

    active = staticmethod(nullcontext)

    def synchronize(self):
        if self.lost:
            raise DeviceLostError("cudaErrorIllegalAddress: an illegal memory access was encountered", 700)

    def forget(self):
        return self.kept

    def free_bytes(self):
        return self.free

    def held_bytes(self):
        return self.held

    def release(self):
        pass

    lacks = CpuEngine.lacks
    resources = CpuEngine.resources

    def cost(self, rotation):
        return Cost(1e-3)

    def issuers(self, rotations, costs, issue):
        return self.mode, [Loop(rotation, cost) for rotation, cost in zip(rotations, costs, strict=True)]

    def time_block(self, entries, canary_at, rests_s=()):
        self.orders.append([issuer for issuer, _ in entries])
        self.rests.append(rests_s)
        elapsed = []
        for issuer, times in entries:
            issuer.issue(times)
            elapsed.append(1e-3 * times)
        if canary_at is None:
            return Block(tuple(elapsed), 0.0)
        return Block(tuple(elapsed), next(self._canary), next(self._starved), next(self._clocks))

    def state(self):
        return State(1980.0, next(self._reasons))

    def intrusion(self):
        return self.intruders

    def ceiling(self, reads, *, again=False):
        return self._ceiling


def twice(x, n):
    out = np.empty_like(x)
    return lambda: np.multiply(x, 2, out=out), out


def declared(**variants):
    @benchmark(
        variants={"unfused": twice, "fused": twice, **variants},
        reference=lambda x, n: x * 2,
        axes={"n": [4096]},
        traffic=lambda n: {"reads": 4 * n, "writes": 4 * n},
    )
    def doubled(rng, n):
        """Double."""
        return rng.normal(n, "float32")

    return doubled


def carry_out(engine, method=METHOD, reference=None, **variants):
    made = declared(**variants)
    if reference is not None:
        made = dataclasses.replace(made, reference=reference)
    (case,) = made.cases("suite", "cpu")
    job = Job(case=case, device_class="cpu", round=1)
    return measure(
        job, {"head": Subject("head", made)}, engine, identify_cpu(), method, seed=0, notify=lambda what: None
    )


def test_a_quiet_device_gives_ok_and_no_bad_blocks():
    engine = ScriptedEngine()
    result = carry_out(engine).result
    assert result.status is Status.OK
    assert result.bad_blocks == ()
    assert result.clock_mhz == (1980.0,) * 10
    assert len(result.canary_s) == 10
    for one in result.measurements:
        assert one.samples_s == (pytest.approx(1e-3),) * 20
        assert one.calls_per_sample == 25  # 0.5 s over 10 blocks of two samples


def test_a_device_that_somebody_else_uses_makes_no_verdict():
    engine = ScriptedEngine()
    engine.intruders = "another process computes on it (pid 5)"
    outcome = carry_out(engine)
    assert outcome.result.status is Status.INFRA
    assert outcome.result.message == f"{outcome.result.device_uuid} is not free any more: {engine.intruders}"
    assert outcome.intrusion == engine.intruders


def test_a_block_is_a_random_order_and_its_reverse():
    engine = ScriptedEngine()
    carry_out(engine)
    timed = engine.orders[-10:]
    assert all(order == order[::-1] for order in timed)
    assert len({tuple(map(id, order)) for order in timed}) == 2


def test_a_few_bad_blocks_are_flagged_and_repeated():
    result = carry_out(ScriptedEngine(canary=[1.0] * 8 + [1.05] * 2)).result
    assert result.status is Status.OK
    assert result.bad_blocks == (8, 9)
    assert len(result.canary_s) == 12


@pytest.mark.parametrize(
    "script",
    [
        {"canary": [1.0, 1.0, 1.5, 1.0, 1.5]},
        {"reasons": [frozenset(), frozenset({"hw_thermal"})]},
        {"starved": [True, False]},
    ],
)
def test_too_many_bad_blocks_are_unstable_and_never_ok(script):
    result = carry_out(ScriptedEngine(**script)).result
    assert result.status is Status.UNSTABLE
    assert f"{len(result.bad_blocks)} of {len(result.canary_s)} blocks were disturbed" in result.message
    assert len(result.canary_s) <= 15  # repeated, but not for ever
    assert {one.status for one in result.measurements} == {Status.UNSTABLE}


def test_a_power_cap_in_most_blocks_is_the_works_own_steady_state():
    capped = carry_out(ScriptedEngine(reasons=[frozenset({"sw_power_cap"})])).result
    assert capped.status is Status.OK
    assert capped.throttle_reasons == ("sw_power_cap",)
    once = carry_out(ScriptedEngine(reasons=[frozenset(), frozenset({"sw_power_cap"})] + [frozenset()] * 30)).result
    assert once.bad_blocks == (0,)


CAPPED = frozenset({"sw_power_cap"})


def test_work_that_meets_the_power_limit_rests_twice_as_long_as_it_works():
    engine = ScriptedEngine(reasons=[CAPPED] + [frozenset()] * 30, mode="backlog")
    result = carry_out(engine).result
    assert {one.mode for one in result.measurements} == {"backlog_rested"}
    assert {one.calls_per_sample for one in result.measurements} == {3}  # of 1 ms; longer ones meet the limit again
    assert engine.rests[0] == ()
    assert engine.rests[-1] == (pytest.approx(6e-3),) * 4
    assert len(result.canary_s) == 10
    assert result.throttle_reasons == ()
    calm = carry_out(ScriptedEngine(mode="backlog")).result
    assert {one.mode for one in calm.measurements} == {"backlog"}


def test_what_was_timed_before_the_power_limit_was_met_is_forgotten():
    engine = ScriptedEngine(reasons=[frozenset()] * 5 + [CAPPED] + [frozenset()] * 60, mode="backlog")
    result = carry_out(engine).result
    assert result.status is Status.OK
    assert result.bad_blocks == ()
    assert len(result.canary_s) == 10
    for one in result.measurements:
        assert one.mode == "backlog_rested"
        assert len(one.samples_s) == len(one.blocks) == 20


def test_a_limit_that_rests_do_not_help_against_is_the_steady_state():
    result = carry_out(ScriptedEngine(reasons=[CAPPED], mode="backlog")).result
    assert result.status is Status.OK
    assert result.throttle_reasons == ("sw_power_cap",)
    assert {one.mode for one in result.measurements} == {"backlog_rested"}


ALIKE = (1980.0, 1975.0, 1980.0, 1970.0)
APART = (1980.0, 1500.0, 1500.0, 1980.0)


def test_a_block_whose_samples_ran_at_unlike_clocks_is_repeated():
    result = carry_out(ScriptedEngine(clocks=[ALIKE] * 9 + [APART] + [ALIKE] * 9)).result
    assert result.status is Status.OK
    assert result.bad_blocks == (9,)
    assert len(result.canary_s) == 11


def test_candidates_that_always_run_at_unlike_clocks_do_not_disturb_each_other():
    result = carry_out(ScriptedEngine(clocks=[APART])).result
    assert (result.status, result.bad_blocks) == (Status.OK, ())


def test_the_measured_clock_goes_before_the_one_that_is_polled():
    result = carry_out(ScriptedEngine(clocks=[ALIKE])).result
    assert result.clock_mhz == (1977.5,) * 10
    assert {one.clock_mhz for one in result.measurements} <= {1970.0, 1972.5, 1975.0, 1977.5, 1980.0}
    result = carry_out(ScriptedEngine(clocks=[ALIKE, (None,) * 4])).result
    assert result.clock_mhz == (1980.0,) * 10
    assert all(one.clock_mhz for one in result.measurements)
    result = carry_out(ScriptedEngine(clocks=[(None,) * 4])).result
    assert {one.clock_mhz for one in result.measurements} == {None}


def test_what_an_earlier_case_left_in_the_cache_is_forgotten_or_the_environment_says_so():
    known = identify_cpu().environment
    assert carry_out(ScriptedEngine()).result.environment == known
    result = carry_out(ScriptedEngine(kept="cudaErrorUnsupportedLimit")).result
    assert result.environment.entries == {**known.entries, "l2_persisting": "kept: cudaErrorUnsupportedLimit"}
    assert result.status is Status.OK


def test_building_lasts_until_the_first_launch_has_ended():
    def compiles_late(x, n):
        out, compiled = np.empty_like(x), []

        def launch():
            if not compiled:
                time.sleep(0.05)
            compiled.append(1)
            np.multiply(x, 2, out=out)

        time.sleep(0.05)
        return launch, out

    def broken(x, n):
        raise ValueError("no")

    result = carry_out(ScriptedEngine(), late=compiles_late, broken=broken).result
    by_name = {one.variant: one for one in result.measurements}
    assert by_name["late"].build_s >= 0.1
    assert by_name["fused"].build_s > 0
    assert by_name["broken"].build_s is None


def test_faster_than_the_ceiling_is_invalid():
    result = carry_out(ScriptedEngine(ceiling=1e6)).result
    assert {one.status for one in result.measurements} == {Status.INVALID}
    assert result.status is Status.OK


def test_a_lost_context_ends_the_job_and_blames_the_one_that_lost_it():
    engine = ScriptedEngine()

    def deadly(x, n):
        def launch():
            engine.lost = True

        return launch, np.empty_like(x)

    outcome = carry_out(engine, deadly=deadly)
    assert outcome.cuda_error == 700
    assert outcome.result.status is Status.FAILED
    assert outcome.result.message.startswith("head deadly: cudaErrorIllegalAddress")
    by_name = {one.variant: one for one in outcome.result.measurements}
    assert by_name["deadly"].status is Status.FAILED
    assert by_name["fused"].status is Status.SKIPPED
    assert "deadly" in by_name["fused"].message


def test_a_failing_baseline_leaves_the_others_measured():
    def broken(x, n):
        raise ValueError("no")

    result = carry_out(ScriptedEngine(), unfused=broken).result
    by_name = {one.variant: one for one in result.measurements}
    assert by_name["unfused"].status is Status.FAILED
    assert by_name["fused"].status is Status.OK


def test_a_variant_that_remembers_its_answers_breaks_after_timing():
    def lazy(x, n):
        out, answers = np.empty_like(x), []

        def launch():
            answers.append(1)
            if len(answers) < 5:
                np.multiply(x, 2, out=out)

        return launch, out

    result = carry_out(ScriptedEngine(), lazy=lazy).result
    by_name = {one.variant: one for one in result.measurements}
    assert by_name["lazy"].status is Status.WRONG
    assert by_name["lazy"].samples_s == ()


def test_a_slow_case_is_cut_to_its_time_but_keeps_ten_blocks():
    class Slow(ScriptedEngine):
        def cost(self, rotation):
            return Cost(0.5)

        def time_block(self, entries, canary_at, rests_s=()):
            block = super().time_block(entries, canary_at, rests_s)
            return Block(tuple(0.5 * times for _, times in entries), block.canary_s)

    result = carry_out(Slow(), Method(warmup_s=0.0, max_warmup_s=0.0, case_s=3.0)).result
    assert len(result.canary_s) == 10
    assert {one.calls_per_sample for one in result.measurements} == {1}


@pytest.mark.parametrize(
    ("reads", "writes", "mix"), [(1, 1, 1), (3, 1, 3), (7, 2, 3), (100, 1, 8), (1, 0, 8), (1, 4, 0), (2, 3, 1)]
)
def test_the_mix_is_the_nearest_that_is_measured(reads, writes, mix):
    assert mix_of(Traffic(read_bytes=reads * 1024, write_bytes=writes * 1024)) == mix


OF_A_SET = 2 * 3 * 4 * 4096
"""Input and two outputs of `doubled`, and as much for what cannot be seen."""


@pytest.mark.parametrize(("sets_that_fit", "made"), [(60, 8), (12.5, 7), (9.5, 5), (1.5, 2)])
def test_sets_take_half_of_the_memory_unless_two_need_more(sets_that_fit, made):
    engine = ScriptedEngine()
    engine.free = int(sets_that_fit * OF_A_SET)
    assert carry_out(engine, msgspec.structs.replace(METHOD, sets=8)).result.sets == made


def test_memory_that_checking_takes_is_left_free():
    mib = 1 << 20
    engine = ScriptedEngine()

    def reference(x, n):
        engine.held = 100 * mib  # the float64 of everything
        return x * 2

    method = msgspec.structs.replace(METHOD, sets=8)
    engine.free = int((120 * mib + 3.5 * OF_A_SET) / 0.85)
    assert carry_out(engine, method, reference).result.sets == 4
    engine.free, engine.held = 130 * mib, 0
    result = carry_out(engine, method, reference).result
    assert {one.status for one in result.measurements} == {Status.FAILED}
    assert result.measurements[0].message == (
        "memory: a second set of data and its check need 0.12 GiB more, and 0.13 GiB are free of which 85% may be "
        "used; make the case smaller"
    )
