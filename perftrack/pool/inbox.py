"""What Cards answer, in the order in which it comes.

A thread waits for each call: Ray's own wait for one of many looks at all of them, each time.
"""

import time
from collections.abc import Sequence
from queue import Empty, SimpleQueue
from threading import Thread
from types import ModuleType
from typing import Any, NamedTuple

from perftrack.pool.lease import decode
from perftrack.pool.worker import Worker


class Answer(NamedTuple):
    """One answer to a call; those to a lease are many, each with one or several events."""

    worker: Worker
    call: Any
    said: Any
    """A value, or an exception: StopIteration at the end of a lease, else that of Ray or of the Card."""

    def get(self) -> Any:
        """The value; the exception is raised."""
        if isinstance(self.said, Exception):
            raise self.said
        return self.said


class Inbox:
    """Answers of all workers that are listened to."""

    def __init__(self, ray: ModuleType) -> None:
        self._ray = ray
        self._answers: SimpleQueue[Answer] = SimpleQueue()

    def listen(self, workers: Sequence[Worker]) -> None:
        """Listen to those that are busy with a new call."""
        for worker in workers:
            if worker.unheard:
                worker.unheard = False
                leased = worker.lease is not None
                Thread(target=self._hear, args=(worker, worker.reply), kwargs={"leased": leased}, daemon=True).start()

    def next(self, timeout_s: float) -> Answer | None:
        """The next answer to a call that somebody is still busy with; None where there is none in this time."""
        end_s = time.monotonic() + timeout_s
        while True:
            try:
                answer = self._answers.get(timeout=max(0.0, end_s - time.monotonic()))
            except Empty:
                return None
            if answer.call is answer.worker.reply:
                return answer

    def _hear(self, worker: Worker, call: Any, *, leased: bool) -> None:
        def put(said: Any) -> None:
            worker.heard_at = time.monotonic()
            self._answers.put(Answer(worker, call, said))

        try:
            if not leased:
                put(self._ray.get(call))
                return
            for reference in call:
                put(decode(self._ray.get(reference)))
            put(StopIteration())
        except Exception as error:  # noqa: BLE001 - whoever takes the answer tells them apart
            put(error)
