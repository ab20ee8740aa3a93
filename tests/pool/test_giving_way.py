"""A sweep and a submission on one cluster: two drivers, the same cards."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from perftrack.model import JobResult, Status
from perftrack.pool.client import Note, Pool

pytestmark = [pytest.mark.fault, pytest.mark.timeout(600)]


@pytest.fixture
def pool(joined, fake_child):
    def make(*, gives_way):
        return Pool(
            address=joined,
            want="FakeGPU-*",
            trees={},
            suite_paths=(),
            methods={},
            seed=7,
            case_timeout_s=60,
            child=fake_child,
            gives_way=gives_way,
        )

    return make


def test_a_sweep_gives_way_between_jobs_and_goes_on_afterwards(pool, make_job, tmp_path):
    enough = tmp_path / "enough"
    jobs = [make_job("slow_until", backend="cuda", path=str(enough), i=i) for i in range(200)]

    def listen(swept):
        """Take all events; there need be no more to do once both cards are back."""
        heard, back = [], set()
        for event in swept:
            heard.append(event)
            if sum(isinstance(one, Note) for one in heard) == 2 and isinstance(event, JobResult):
                back.add(event.device_uuid)
            if len(back) == 2:
                enough.touch()
        return heard

    with pool(gives_way=True) as sweep:
        assert len([report for report in sweep.devices() if not report.problem]) == 2
        swept = sweep.run(jobs)
        events = [next(swept) for _ in range(8)]
        with ThreadPoolExecutor(1) as listener, pool(gives_way=False) as submission:
            rest = listener.submit(listen, swept)
            assert {report.device.uuid: report.problem for report in submission.devices()} == {
                "GPU-0": "",
                "GPU-1": "",
                "GPU-2": "it is busy",
            }
            wanted = [make_job("slow", backend="cuda", seconds=0.5 + i / 1000) for i in range(4)]
            submitted = [event for event in submission.run(wanted) if isinstance(event, (JobResult, Note))]
            submission.close()
            events += rest.result(240)
    assert sorted((one.status, one.attempt, one.device_uuid) for one in submitted) == [
        (Status.OK, 1, uuid) for uuid in ("GPU-0", "GPU-0", "GPU-1", "GPU-1")
    ]
    said = [number for number, event in enumerate(events) if isinstance(event, Note)]
    assert sorted(events[number].text for number in said) == [
        f"device GPU-{number} (FakeGPU-1G) gives way to a submission" for number in range(2)
    ]
    results = [event for event in events if isinstance(event, JobResult)]
    assert sorted(one.case_key for one in results) == sorted(job.case.key for job in jobs), "each once"
    assert {(one.status, one.attempt) for one in results} == {(Status.OK, 1)}
    afterwards = [event for event in events[max(said) :] if isinstance(event, JobResult)]
    assert {one.device_uuid for one in afterwards} == {"GPU-0", "GPU-1"}
