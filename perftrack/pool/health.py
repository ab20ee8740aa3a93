"""Whether a card is as fast as the others of its class, by the canary: the copy that every block of a case holds."""

import statistics
from collections import defaultdict, deque
from collections.abc import Mapping

from perftrack.model import Backend, JobResult

OFF: Mapping[Backend, float] = {"cuda": 0.05, "cpu": 1.0}
"""A card whose canary takes longer than its index by more than this share is not what its class is. On an H200 it
differs by 0.05 % from process to process; a CPU has neighbours."""

_ENOUGH = 3
"""Jobs of a card before it says anything about others."""

_LATEST = 25
"""Jobs of a card that count."""


class Canaries:
    """The canaries of a run. The index of a card is the fastest median of the other cards of its class."""

    def __init__(self) -> None:
        self._seen: dict[str, dict[str, deque[float]]] = defaultdict(dict)

    def off(self, result: JobResult, backend: Backend) -> bool:
        """Take a job into account; whether its card was off its index, which takes other cards to tell."""
        if not result.canary_s:
            return False
        cards = self._seen[result.device_class]
        took_s = statistics.median(result.canary_s)
        cards.setdefault(result.device_uuid, deque(maxlen=_LATEST)).append(took_s)
        others = [
            statistics.median(seconds)
            for uuid, seconds in cards.items()
            if uuid != result.device_uuid and len(seconds) >= _ENOUGH
        ]
        return bool(others) and took_s > (1 + OFF[backend]) * min(others)
