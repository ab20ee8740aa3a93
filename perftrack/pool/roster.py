"""Which Cards a run gets: one for each GPU that Ray knows, or one for all CPUs of a node.

Devices are known by what their own children report; Ray's accelerator types are not looked at, because they
tell neither memory sizes nor mixed nodes apart.
"""

import time
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from types import ModuleType
from typing import Any

from perftrack.errors import PoolError, UsageError
from perftrack.model import DeviceReport
from perftrack.pool.card import CardSetup
from perftrack.pool.child_process import Limits
from perftrack.pool.giving_way import SOON_S, put_up
from perftrack.pool.lease import Named
from perftrack.pool.talk import Note
from perftrack.pool.versions import difference, usual
from perftrack.pool.worker import Place, Worker

PLACE_S = 60.0
"""How long a Card waits for its device to be free before it is left out."""

_LONG_S = 3600.0
"""How long a sweep waits for its first device, which others may have."""


def gather(
    ray: ModuleType,
    want: str,
    *,
    setup: Callable[[Place], CardSetup],
    limits: Limits,
    emit: Callable[[Note], None],
    gives_way: bool = False,
) -> list[Worker]:
    """The workers whose device class matches `want` (a glob, `cpu`, or empty: GPUs if there are any, else CPUs).

    What keeps a device out is a Note, or part of the PoolError where none is left.
    """
    problems: list[str] = []
    asked = _Asked(ray, setup, limits, problems, gives_way=gives_way)
    workers = _alike(_wanted(ray, want, asked), problems)
    if not any(worker.usable for worker in workers):
        problems += [f"{w.report.device.device_class}: {w.report.problem}" for w in workers if w.report]
        raise PoolError(f"no usable device in the pool ({'; '.join(problems) or 'it has neither GPUs nor CPUs'})")
    for problem in problems:
        emit(Note(text=problem))
    return workers


def _wanted(ray: ModuleType, want: str, asked: "_Asked") -> list[Worker]:
    found = places(ray)
    gpus = [place for place in found if place.backend == "cuda"]
    cpus = [place for place in found if place.backend == "cpu"]
    on_cpu = want.lower().startswith("cpu") or not (want or gpus)  # as all classes of CPUs do
    workers = asked.identified(cpus if on_cpu else gpus or cpus)
    if want in ("", "cpu"):
        return workers
    matching = [w for w in workers if w.report and fnmatchcase(_class(w.report).lower(), want.lower())]
    if workers and not matching:
        raise no_match(want, sorted({_class(w.report) for w in workers if w.report}), asked.problems, gpu=bool(gpus))
    return matching


def _alike(workers: list[Worker], problems: list[str]) -> list[Worker]:
    """Without those whose software differs from that of most devices of their class."""
    known = usual([worker.report for worker in workers if worker.report and not worker.report.problem])
    kept: list[Worker] = []
    for worker in workers:
        report = worker.report
        as_usual = known.get(worker.device_class)
        differs = difference(report, as_usual) if report and as_usual and not report.problem else ""
        if differs:
            problems.append(
                f"{worker.device_class} on {worker.place.node} is left out: its software differs ({differs})"
            )
            worker.kill()
        else:
            kept.append(worker)
    return kept


def places(ray: ModuleType) -> list[Place]:
    """Every GPU, and all CPUs together, of each living node."""
    found: list[Place] = []
    for node in ray.nodes():
        if not node["Alive"]:
            continue
        count, cores = int(node["Resources"].get("GPU", 0)), int(node["Resources"].get("CPU", 0))
        name, where = str(node["NodeManagerHostname"]), str(node["NodeID"])
        share = max(1, cores // max(1, count))
        found += [Place(node_id=where, node=name, backend="cuda", cores=share) for _ in range(count)]
        if cores:
            found.append(Place(node_id=where, node=name, backend="cpu", cores=cores))
    return found


class _Asked:
    """Places that are asked for their devices."""

    def __init__(
        self,
        ray: ModuleType,
        setup: Callable[[Place], CardSetup],
        limits: Limits,
        problems: list[str],
        *,
        gives_way: bool,
    ) -> None:
        self._ray, self._setup, self._gives_way = ray, setup, gives_way
        self.problems = problems
        """Of places that have not named a device."""
        self._began_s = time.monotonic()
        self._patience_s = PLACE_S + limits.start_s

    def identified(self, at: Sequence[Place]) -> list[Worker]:
        """A worker at each place that could name its device; two of one device are one."""
        waiting: dict[Any, Worker] = {}
        for place in at:
            worker = Worker(self._ray, place, self._setup(place))
            worker.identify()
            waiting[worker.reply] = worker
        workers: list[Worker] = []
        self._hear(waiting, workers, until=SOON_S)
        sign = None
        if waiting and not self._gives_way:
            sign = put_up(self._ray, [worker.place for worker in waiting.values()])
        self._hear(waiting, workers, until=self._patience_s)
        if self._gives_way and not any(worker.usable for worker in workers):
            self._hear(waiting, workers, until=_LONG_S)
        if sign is not None:
            self._ray.kill(sign)
        for worker in waiting.values():
            where = f"of node {worker.place.node} was not free and is left out"
            self.problems.append(f"a {worker.place.backend} device {where}")
            worker.kill()
        return workers

    def _hear(self, waiting: dict[Any, Worker], workers: list[Worker], *, until: float) -> None:
        """Take answers until so many seconds after the beginning; who answered is no longer waited for."""
        while waiting and (rest := self._began_s + until - time.monotonic()) > 0:
            ready, _ = self._ray.wait(list(waiting), num_returns=1, timeout=rest)
            for reply in ready:
                worker = waiting.pop(reply)
                if problem := _answer(self._ray, worker, workers):
                    self.problems.append(problem)
                else:
                    workers.append(worker)
                    if worker.usable and until > self._patience_s:
                        return


def _answer(ray: ModuleType, worker: Worker, known: Sequence[Worker]) -> str:
    """Take the report of a new worker; why it cannot be used, or nothing."""
    try:
        named: Named = worker.answer()
    except ray.exceptions.RayTaskError as error:
        return str(error.cause or error)
    except ray.exceptions.RayError as error:
        return f"a worker on {worker.place.node} did not start: {str(error).splitlines()[0]}"
    worker.idle()
    uuid = named.report.device.uuid
    if any(other.uuid == uuid for other in known):
        worker.kill()
        return f"device {uuid} was given out twice; it is used once"
    worker.named = named
    return ""


def no_match(want: str, classes: Sequence[str], problems: Sequence[str], *, gpu: bool) -> UsageError | PoolError:
    """The error where none of the `classes` is wanted. `problems` are of devices whose class is not known."""
    if not gpu:
        return UsageError(f"no GPU in the pool, so no device matches {want!r}; use -d cpu")
    if problems:
        return PoolError(f"no device of class {want!r} is free ({'; '.join(problems)}); free are {', '.join(classes)}")
    return UsageError(f"unknown device class {want!r}: the pool has {', '.join(classes)} and cpu")


def _class(report: DeviceReport) -> str:
    return report.device.device_class
