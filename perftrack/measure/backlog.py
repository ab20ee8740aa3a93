"""When the host gets far enough ahead of the device: choosing how calls are issued, and proving it after."""

import math

from perftrack.measure.engine import Cost, Rotation

LEAD_S = 100e-6
"""Head start of a body that is issued faster than it runs."""

BLOCK_LEAD_S = 500e-6
"""Head start of a block, before its first sample: the host is then ahead in all that it issues faster than it runs.
Twice as long after a block in which the device waited: samples of 2 ms leave a slow host little time to gain."""

MAX_LEAD_S = 5e-3
"""A spin longer than this would hold a card for nothing; fewer calls make a sample instead."""

_MARGIN = 1.3
_SHORT_S = 20e-6
_LAUNCH_BOUND = 4.0
"""Host seconds ÷ device seconds of a call. Below, a spin makes up for what the host lacks; a limit near 1 would let
noise choose the mode of a case anew in each process, and modes differ by half a per cent."""
_CLOSE_S = 10e-6
"""A call that comes this close before the device needs it may have come too late: a launch takes 3 to 8 µs."""

_GRAPH_SPAN_S = 2e-3
_GRAPH_NODES = 4096
_GRAPH_CAPTURE_S = 0.1


def needs_graph(cost: Cost) -> bool:
    """Whether calls end too long before the host can issue the next for a spin to make up for it."""
    return cost.device_s < _SHORT_S or (cost.host_s or 0.0) > _LAUNCH_BOUND * cost.device_s


def most_calls(cost: Cost) -> int:
    """Calls for which the longest spin is head start enough."""
    lag = _lag(cost)
    return max(1, int((MAX_LEAD_S - LEAD_S) / lag)) if lag else 1_000_000


def lead_s(cost: Cost, calls: int) -> float:
    """Seconds of head start that the host needs to issue `calls` calls ahead of the device."""
    return min(MAX_LEAD_S, LEAD_S + 2 * (cost.host_s or 0.0) + _lag(cost) * calls)


def _lag(cost: Cost) -> float:
    """Seconds by which the host falls behind the device with each call."""
    return _MARGIN * max(0.0, (cost.host_s or 0.0) - cost.device_s)


def unrolled_calls(rotation: Rotation, cost: Cost) -> int:
    """Calls in one graph: whole rotations, about 2 ms, within limits on nodes and on the time to capture."""
    sets = len(rotation.launches)
    by_time = _GRAPH_SPAN_S / cost.device_s
    by_nodes = _GRAPH_NODES / rotation.kernels_per_call
    by_capture = _GRAPH_CAPTURE_S / max(cost.host_s or 0.0, 1e-6)
    return max(1, math.ceil(min(by_time, by_nodes, by_capture) / sets)) * sets


def starved(*, first_s: float, last_s: float, begin_s: float, end_s: float, times: int) -> bool:
    """Whether the device waited for the host in a sample; all instants on one clock, in seconds.

    `first_s`, `last_s`: when the host had issued the first repetition, and when it was about to issue the last;
    `begin_s`, `end_s`: when the device began and ended. It waited if it began before the first was there, or had
    ended the others when the last one came. (The host falls behind or gains at an even pace, so the ends tell.)
    """
    if begin_s - first_s < _CLOSE_S:
        return True
    return times > 1 and end_s - (end_s - begin_s) / times - last_s < _CLOSE_S
