"""Whether a card is as fast as the others of its class, by the canary: the copy that every block of a case holds."""

import statistics
from collections import deque
from collections.abc import Mapping

from perftrack.model import Backend, JobResult

OFF: Mapping[Backend, float] = {"cuda": 0.03, "cpu": 1.0}
"""A card whose canary takes longer than its index by more than this share is not what its class is. Seven H200 agreed
within 0.3 %, and each job with its card within 0.4 %; a CPU has neighbours."""

_ENOUGH = 3
"""Jobs of a card before it says anything about others."""

_LATEST = 25
"""Jobs of a card that count."""


class Canaries:
    """The canaries of a run. The index of a card is the fastest median of the other cards of its class."""

    def __init__(self) -> None:
        self._seen: dict[str, deque[float]] = {}
        self._medians: dict[str, dict[str, float]] = {}
        """Seconds by class and card, of cards that have done enough: worked out once a job, since cards may be many."""

    def off(self, result: JobResult, backend: Backend) -> bool:
        """Take a job into account; whether its card was off its index, which takes other cards to tell."""
        if not result.canary_s:
            return False
        took_s, card = statistics.median(result.canary_s), result.device_uuid
        seen = self._seen.setdefault(card, deque(maxlen=_LATEST))
        seen.append(took_s)
        medians = self._medians.setdefault(result.device_class, {})
        if len(seen) >= _ENOUGH:
            medians[card] = statistics.median(seen)
        index = min((median_s for other, median_s in medians.items() if other != card), default=took_s)
        return took_s > (1 + OFF[backend]) * index
