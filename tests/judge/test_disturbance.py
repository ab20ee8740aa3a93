"""What spoils measuring, told from results; every cause by itself, and silence where there is none."""

import msgspec
import pytest
from judge_builders import device, result

from perftrack.judge.disturbance import busy_host, disturbances
from perftrack.measure.methods import default_method
from perftrack.model import Environment, Status

METHODS = {"cuda": default_method("cuda"), "cpu": default_method("cpu")}
GOOD = {
    "driver": "580.65",
    "persistence": True,
    "ecc": True,
    "mig": False,
    "max_sm_mhz": 1980,
    "app_sm_mhz": 1980,
    "nice": 0,
    "governor": "performance",
}


def said(*results, devices=None):
    devices = devices or [device()]
    return [(one.where, one.what) for one in disturbances(devices, results, METHODS)]


def in_environment(uuid="GPU-1", **entries):
    return msgspec.structs.replace(result(1), device_uuid=uuid, environment=Environment(entries=GOOD | entries))


def test_nothing_is_said_of_a_quiet_device():
    assert said(msgspec.structs.replace(in_environment(), clock_mhz=(1975, 1980))) == []
    assert said() == []


def test_bad_blocks_are_told_apart_by_their_reasons():
    calm = (1e-4,) * 8
    shaken = result(1, canary_s=(*calm, 1.05e-4), bad_blocks=(8,))
    throttled = result(2, canary_s=calm, bad_blocks=(1, 2), throttle_reasons=("sw_thermal",))
    starved = result(3, canary_s=calm, bad_blocks=(0,))
    assert said(shaken, throttled, starved) == [
        ("GPU-1", "1 of 25 blocks: the canary copy was more than 1 % off its median"),
        ("GPU-1", "1 of 25 blocks: the device waited for the host, or its clock changed inside the block"),
        ("GPU-1", "the card was too hot and slowed itself down: 2 of 25 blocks"),
    ]


def test_a_steady_power_cap_is_said_although_no_block_is_bad():
    (one,) = disturbances([device()], [result(1, throttle_reasons=("sw_power_cap",))], METHODS)
    assert one.what == "the power cap held the clock down"
    assert "nvidia-smi -pl" in one.remedy


def test_an_unlocked_clock_and_an_unstable_job_are_said():
    moved = result(1, clock_mhz=(1755, 1980))
    lost = result(2, status=Status.UNSTABLE)
    assert [what for _, what in said(moved, lost)] == [
        "1 of 2 jobs gave no number: more than 30 % bad blocks",
        "the SM clock is not locked: it was between 1755 and 1980 MHz",
    ]


def test_a_copy_that_takes_longer_in_one_process_is_said_where_it_is_unusual():
    first, second = result(1, canary_s=(1e-4,) * 3), result(2, canary_s=(1.05e-4,) * 3)
    assert said(first, second) == [
        ("GPU-1", "the same copy took up to 5.0 % longer in one process than in another"),
    ]
    cpu = msgspec.structs.replace(device(), backend="cpu")
    assert said(first, second, devices=(cpu,)) == []


def test_another_process_on_the_card_is_said_in_its_own_words():
    message = "GPU-1 is not free any more: another process computes on it (pid 7)"
    attempt = result(1, status=Status.INFRA, message=message)
    assert said(attempt, msgspec.structs.replace(attempt, attempt=2)) == [("GPU-1", message)]


@pytest.mark.parametrize(
    ("setting", "what", "remedy"),
    [
        ({"persistence": False}, "persistence mode is off", "nvidia-smi -pm 1"),
        ({"ecc": False}, "ECC is off", "nvidia-smi -e 1"),
        ({"mig": True}, "divided (MIG)", "idle"),
        ({"app_sm_mhz": 1500}, "set to 1500 of 1980 MHz", "nvidia-smi -rac"),
        ({"nice": 15}, "niceness 15", "RAY_worker_niceness=0"),
        ({"governor": "powersave"}, "governor is powersave", "cpupower"),
    ],
)
def test_each_setting_that_spoils_has_its_remedy(setting, what, remedy):
    (one,) = disturbances([device()], [in_environment(**setting)], METHODS)
    assert what in one.what
    assert remedy in one.remedy


def test_devices_of_one_class_should_be_set_alike():
    second = msgspec.structs.replace(device(), uuid="GPU-2")
    other = msgspec.structs.replace(device(), uuid="GPU-3", device_class="NVIDIA-H100-80G")
    made = [in_environment(uuid, power_limit_w=limit) for uuid, limit in (("GPU-1", 700), ("GPU-2", 650), ("GPU-3", 1))]
    assert said(*made, devices=(device(), second, other)) == [
        (device().device_class, f"the devices of {device().device_class} differ in power_limit_w: 700, 650")
    ]


def test_a_cpu_with_other_work_is_said_and_a_gpu_s_host_is_not():
    cpu = msgspec.structs.replace(device(), backend="cpu", uuid="CPU-1", multiprocessors=2)
    assert [one.where for one in busy_host(cpu, 1.26)] == ["CPU-1"]
    assert "a load of 1.3 on 2 cores" in busy_host(cpu, 1.26)[0].what
    assert busy_host(cpu, 0.1) == []
    assert busy_host(device(), 5.0) == []
