"""What is kept of a variant's error and of the two factors of its speedup, on both engines."""

from typing import Any

import numpy as np
import pytest
import store_builders as build

import perftrack
from perftrack.judge.value import Interval
from perftrack.model import Accuracy, Cause, Verdict
from perftrack.store import Store

ROW = ("elementwise", "add[dtype=float32,n=1024]", "EPYC-9654-2c", "fused")


def _measure(store: Store, number: int, summaries: Any, findings: Any = (), **changes: Any) -> str:
    run = build.run(number, **({"head": build.revision(number), "base": None} | changes))
    store.begin_run(run)
    store.add_job(run.uid, build.case(), build.job(), build.device())
    store.finish_run(run.uid, state="complete", finished_us=9, summaries=summaries, findings=findings)
    return run.uid


def test_a_change_of_accuracy_comes_back_and_is_compared(url: str) -> None:
    worse = build.finding(
        verdict=Verdict.SAME,
        cause=Cause.NONE,
        error_head=4e-7,
        error_base=1e-7,
        accuracy=Accuracy.LESS,
        confirmed=False,
    )
    with Store.open(url) as store, perftrack.open(url) as database:
        _measure(store, 6, [build.summary(error_l2=1e-7)])
        uid = _measure(store, 7, [build.summary(error_l2=4e-7)], [worse], base=build.revision(6))
        _measure(store, 8, [build.summary(error_l2=0.0)])
        (back,) = store.load_run(uid).findings
        assert (back.error_head, back.error_base, back.accuracy) == (4e-7, 1e-7, Accuracy.LESS)
        paired = database.compare("0000006", "0000007").loc[ROW]
        assert (str(paired["verdict"]), str(paired["accuracy"])) == ("same", "less-accurate")
        assert (paired["error_l2_base"], paired["error_l2_head"]) == (1e-7, 4e-7)
        assert paired["error_change_pct"] == pytest.approx(300)
        assert database.results()["accuracy"].tolist() == ["", "less-accurate", ""]
        # measured at different times on different data: both figures, no word
        apart = database.compare("0000007", "0000008").loc[ROW]
        assert (apart["error_l2_base"], apart["error_l2_head"], str(apart["accuracy"])) == (4e-7, 0.0, "")
        assert apart["error_change_pct"] == pytest.approx(-100)
        assert np.isnan(database.compare("0000008", "0000007").loc[ROW]["error_change_pct"])


def test_the_vectorisation_of_a_candidate_is_the_speedup_of_its_steps(url: str) -> None:
    def both(side: str, gain: float) -> list[Any]:
        return [
            build.summary(side, "unfused", speedup=None, fusion_gain=None),
            build.summary(side, "steps", speedup=Interval(gain, gain - 0.1, gain + 0.1), fusion_gain=None),
            build.summary(side, "fused"),
            build.failed_summary(side, "graph"),
        ]

    with Store.open(url) as store, perftrack.open(url) as database:
        uid = _measure(store, 7, [*both("head", 1.5), *both("base", 1.25)], base=build.revision(6))
        _measure(store, 8, [build.summary(), build.failed_summary(variant="steps")])
        _measure(store, 9, [build.summary()])
        found = {(one.side, one.variant): one.vectorisation for one in store.load_run(uid).summaries}
        assert found.pop(("head", "fused")) == Interval(1.5, 1.4, 1.6)
        assert found.pop(("base", "fused")) == Interval(1.25, 1.15, 1.35)
        assert set(found.values()) == {None}
        rows = database.results(variant="fused")
        assert rows["vectorisation"].tolist() == pytest.approx([1.25, 1.5, np.nan, np.nan], nan_ok=True)
        assert rows["vectorisation_high"].tolist()[:2] == pytest.approx([1.35, 1.6])
        assert np.isnan(database.results(variant="steps")["vectorisation"]).all()
