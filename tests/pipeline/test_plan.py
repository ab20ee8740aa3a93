"""What is measured, and what there is time for."""

from perftrack.model import Case, Device, Traffic
from perftrack.pipeline.plan import Pair, within


def pair(name, device_class="card"):
    case = Case(
        suite="s",
        key=name,
        benchmark=name,
        backend="cuda",
        params={},
        variants=("unfused",),
        traffic=Traffic(read_bytes=1, write_bytes=1),
        min_effect=0.02,
    )
    return Pair(device_class, case, case)


def device(uuid, device_class="card"):
    return Device(uuid=uuid, name="a card", device_class=device_class, backend="cuda", node="n", memory_bytes=1)


def test_the_most_urgent_fit_and_what_is_behind_one_that_does_not_is_left_out():
    costs = {("s", "a", "card"): 2.0, ("s", "b", "card"): 10.0, ("s", "c", "card"): 0.1}
    wanted = [(pair("a"), 5), (pair("b"), 5), (pair("c"), 5)]

    def names(seconds, devices):
        return [one.case.key for one in within(seconds, wanted, costs, devices)]

    assert names(59.0, [device("x")]) == ["a"], "10 s, then 50 s"
    assert names(60.0, [device("x")]) == ["a", "b"]
    assert names(60.5, [device("x")]) == ["a", "b", "c"]
    assert names(30.0, [device("x"), device("y")]) == ["a", "b"], "two cards share the jobs"
    assert names(0.0, [device("x")]) == ["a"], "one is always looked at"


def test_each_class_has_the_time_and_one_round_takes_a_fifth_of_five():
    costs = {("s", "a", "card"): 2.0, ("s", "a", "other"): 2.0, ("s", "b", "card"): 2.0}
    wanted = [(pair("a"), 5), (pair("a", "other"), 5), (pair("b"), 1)]
    fit = within(12.0, wanted, costs, [device("x"), device("z", "other")])
    assert [one.identity[1:] for one in fit] == [("a", "card"), ("a", "other"), ("b", "card")]
