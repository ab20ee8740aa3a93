"""Devices of one class run the same software, or the odd ones are named."""

import pytest

from perftrack.model import Device, DeviceReport, Environment
from perftrack.pool.versions import difference, usual

pytestmark = pytest.mark.fault


def report(name, device_class="H200", **entries):
    device = Device(uuid=name, name=device_class, backend="cuda", device_class=device_class, node=name, memory_bytes=1)
    return DeviceReport(device=device, environment=Environment(entries=entries))


def test_most_devices_of_a_class_say_what_is_usual_and_of_equally_many_the_first():
    odd, one, two = report("a", cupy="13"), report("b", cupy="14"), report("c", cupy="14")
    other = report("d", "B200", cupy="13")
    assert usual([odd, one, two, other]) == {"H200": one, "B200": other}
    assert usual([odd, one])["H200"] == odd


def test_what_differs_is_said_and_what_is_the_machines_own_is_not_compared():
    one = report("a", cupy="14", python="3.11.9", power_limit_w=700)
    assert difference(report("b", cupy="14", python="3.11.9", power_limit_w=600), one) == ""
    assert difference(report("b", python="3.11.8"), one) == ("python 3.11.8 instead of 3.11.9, cupy none instead of 14")
