"""Where the system counts the processes that it ended for want of memory, and how much memory there is."""

from pathlib import Path

import pytest

from perftrack.pool.host_memory import here

pytestmark = pytest.mark.fault

PLENTY = 1 << 50


def group(folder, files):
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text)


def look(tmp_path, membership):
    (tmp_path / "cgroup").write_text(membership)
    return here(tmp_path / "cgroup", tmp_path / "fs")


def machine():
    line = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal:"))
    return int(line.split()[1]) * 1024


def test_the_own_group_of_version_2_its_count_and_its_limit(tmp_path):
    events = "low 0\nhigh 3\nmax 7\noom 5\noom_kill 2\noom_group_kill 9\n"
    group(tmp_path / "fs/kubepods/pod1", {"memory.events": events, "memory.max": "1000000\n"})
    memory = look(tmp_path, "0::/kubepods/pod1\n")
    assert (memory.kills(), memory.total_bytes) == (2, 1_000_000)


def test_in_a_container_the_own_group_is_the_root(tmp_path):
    group(tmp_path / "fs", {"memory.events": "oom_kill 4\n", "memory.max": "max\n"})
    memory = look(tmp_path, "0::/docker/abc\n")
    assert (memory.kills(), memory.total_bytes) == (4, machine())


def test_version_1_and_a_limit_that_is_none(tmp_path):
    files = {"memory.oom_control": "under_oom 0\noom_kill 1\n", "memory.limit_in_bytes": f"{PLENTY}\n"}
    group(tmp_path / "fs/memory/a", files)
    memory = look(tmp_path, "9:name=systemd:/a\n4:cpu,memory:/a\n3:memory:/a\n0::/\n")
    assert (memory.kills(), memory.total_bytes) == (1, machine())


def test_without_groups_the_machine_counts(tmp_path):
    memory = look(tmp_path, "0::/\n")
    assert memory.counter == "/proc/vmstat"
    assert memory.kills() >= 0
    assert here().kills() >= 0
    assert 0 < here().total_bytes <= machine()
