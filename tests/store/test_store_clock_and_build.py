"""What is kept of the clock that a variant ran at, and of how long it took to build, on both engines."""

import numpy as np
import pytest
import store_builders as build

import perftrack
from perftrack.errors import StoreError
from perftrack.store import Store


def test_the_clock_and_the_building_of_a_variant_come_back(url: str) -> None:
    run = build.run(base=None)
    known = build.measurement(variant="fused", clock_mhz=1972.5, build_s=0.75)
    job = build.job(measurements=(build.measurement(variant="unfused"), known))
    summaries = [
        build.summary(variant="fused", clock_mhz=1972.5, build_first_s=0.75, build_s=0.0),
        build.summary(variant="unfused"),
    ]
    with Store.open(url) as store, perftrack.open(url) as database:
        store.begin_run(run)
        store.add_job(run.uid, build.case(), job, build.device())
        store.finish_run(run.uid, state="complete", finished_us=9, summaries=summaries, findings=[])
        assert store.jobs(run.uid) == [job]
        assert store.load_run(run.uid).summaries == summaries
        results, rounds = database.results().set_index("variant"), database.rounds().set_index("variant")
    names = ["clock_mhz", "build_first_s", "build_s"]
    assert results.loc["fused", names].tolist() == [1972.5, 0.75, 0.0]
    assert np.isnan(results.loc["unfused", names].astype(float)).all()
    assert rounds.loc["fused", ["clock_mhz", "variant_clock_mhz", "build_s"]].tolist() == [1597.5, 1972.5, 0.75]


def test_a_clock_that_stands_still_is_refused(store: Store) -> None:
    run = build.run()
    store.begin_run(run)
    with pytest.raises(StoreError, match="ck_measurement_clock_mhz"):
        store.add_job(
            run.uid, build.case(), build.job(measurements=(build.measurement(clock_mhz=0.0),)), build.device()
        )
