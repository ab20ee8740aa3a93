"""What a case took before, for the planning of the next run."""

import store_builders as build

from perftrack.model import Status
from perftrack.store import Store


def test_the_shortest_job_of_the_newest_runs_counts_for_each_side(url: str) -> None:
    with Store.open(url) as store:
        for number in range(1, 8):
            run = build.run(number)
            store.begin_run(run)
            # of the five newest, runs 3 to 7, the shortest took 3 s for two sides
            store.add_job(run.uid, build.case(), build.job(wall_s=float(number)), build.device())
            dead = build.job(round=2, wall_s=0.1, status=Status.INFRA)
            store.add_job(run.uid, build.case(), dead, build.device())
        assert store.costs("kernels") == {("elementwise", "add[dtype=float32,n=1024]", "EPYC-9654-2c"): 1.5}
        assert store.costs("another") == {}
