"""Which cards are slower than others of their class."""

from perftrack.model import JobResult, Status
from perftrack.pool.health import Canaries


def told(canaries, uuid, took_s, *, times=1, device_class="H200", backend="cuda"):
    """What is said of the last of so many jobs."""
    result = JobResult(
        suite="suite", case_key="case[]", device_class=device_class, round=1, attempt=1, status=Status.OK,
        device_uuid=uuid, canary_s=took_s if isinstance(took_s, tuple) else (took_s,),
    )  # fmt: skip
    return [canaries.off(result, backend) for _ in range(times)][-1]


def test_a_card_alone_is_never_off():
    canaries = Canaries()
    assert not told(canaries, "a", 1e-4, times=5)
    assert not told(canaries, "a", 2e-4, times=5)


def test_more_than_three_percent_slower_than_the_fastest_other_card_is_off():
    canaries = Canaries()
    told(canaries, "a", 1e-4, times=3)
    told(canaries, "b", 1.02e-4, times=3)
    assert not told(canaries, "c", 1.029e-4)
    assert told(canaries, "c", 1.031e-4)
    assert not told(canaries, "c", 0.5e-4), "the fastest is never off"


def test_two_jobs_of_another_card_say_nothing_yet():
    canaries = Canaries()
    told(canaries, "a", 1e-4, times=2)
    assert not told(canaries, "b", 2e-4)
    told(canaries, "a", 1e-4)
    assert told(canaries, "b", 2e-4)


def test_one_bad_block_of_a_job_and_one_bad_job_of_the_other_card_do_not_count():
    canaries = Canaries()
    told(canaries, "a", 1e-4, times=4)
    told(canaries, "a", 0.1e-4)
    assert not told(canaries, "b", (1e-4, 1e-4, 9e-4))


def test_another_class_is_no_measure():
    canaries = Canaries()
    told(canaries, "a", 1e-4, times=3, device_class="B200")
    assert not told(canaries, "b", 2e-4)


def test_a_cpu_has_neighbours_and_a_job_without_a_canary_says_nothing():
    canaries = Canaries()
    told(canaries, "a", 1e-4, times=3, backend="cpu")
    assert not told(canaries, "b", 1.9e-4, backend="cpu")
    assert told(canaries, "b", 2.1e-4, backend="cpu")
    assert not told(canaries, "b", (), backend="cpu")
