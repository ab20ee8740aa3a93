"""Rows of the frames `devices` and `runs`."""

from typing import Any

import msgspec

from perftrack.model import Verdict
from perftrack.store.value import DeviceUse, RunEntry


def device(use: DeviceUse) -> tuple[Any, ...]:
    """In the store's units and the order of the columns."""
    one = use.device
    return (
        one.device_class,
        one.uuid,
        one.name,
        one.backend,
        one.node,
        one.memory_bytes,
        one.compute_capability,
        one.multiprocessors,
        one.l2_bytes,
        one.peak_bytes_per_s,
        use.jobs,
        use.last_us,
        msgspec.json.encode(use.environment.entries if use.environment else {}, order="sorted").decode(),
    )


def run(entry: RunEntry) -> tuple[Any, ...]:
    """The same of a run."""
    one = entry.run
    return (
        one.uid,
        one.repo,
        one.head.sha,
        one.head.dirty,
        one.base.sha if one.base else None,
        one.head.branch,
        one.started_us,
        one.finished_us,
        one.state,
        entry.jobs,
        one.expected_jobs,
        len(one.problems),
        *(entry.verdicts.get(word.value, 0) for word in Verdict),
    )
