"""Runs on a cluster that this machine is not part of: shipped by Ray's Jobs API, judged by what the store says."""

import math
import secrets
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from perftrack.errors import IncompleteError, PoolError, StoppedError, StoreAwayError, UsageError
from perftrack.model import Run
from perftrack.pipeline import parcel
from perftrack.pipeline.execution import Execution
from perftrack.pipeline.parcel import ENDED, ENTRYPOINT, Ended
from perftrack.pipeline.talk import Talk
from perftrack.pool.jobs import ENDED as JOB_ENDED
from perftrack.pool.jobs import Jobs, is_jobs_address
from perftrack.report.words import goes_on
from perftrack.store import Store

PATIENCE_S = 300.0
"""How long a run that is followed may show no sign of life: neither the head nor the store says anything new."""

_LOOK_S = 2.0
_LAST_LINES = 6


def carry_out(execution: Execution, address: str | None) -> bool:
    """Measure a run, here or, where the address is that of a dashboard, by way of it: see `Execution.measure`."""
    if not is_jobs_address(address):
        return execution.measure(address)
    jobs, name = Jobs(address or ""), job_name(execution.run)
    ship(jobs, name, [execution])
    execution.talk.say(f"job     {name} at {jobs.address}")
    follow = _Following(jobs, name, execution.run, execution.store, execution.talk)
    try:
        follow.to_the_end()
    except (KeyboardInterrupt, SystemExit):  # the second is SIGTERM, with which a CI host cancels
        if not jobs.stop(name):
            execution.talk.say(
                f"problem {jobs.address} does not answer, so the job goes on: "
                f"`perftrack cancel {execution.run.uid[:8]}` stops it by way of the database"
            )
        raise
    if execution.store.state(execution.run.uid) != "complete":
        return False
    execution.recall()
    return True


def job_name(run: Run) -> str:
    """For Ray; a run that is resumed has another one."""
    return f"perftrack-{run.uid[:8]}-{secrets.token_hex(4)}"


def ship(jobs: Jobs, name: str, executions: Sequence[Execution]) -> None:
    """Send runs with their trees to the cluster and start them, to end when the last of them would have to."""
    until = max(one.until for one in executions)
    seconds = None if math.isinf(until) else max(0.0, until - time.monotonic())
    with tempfile.TemporaryDirectory(prefix="perftrack-parcel-") as folder:
        parcel.pack(Path(folder), executions, seconds)
        jobs.submit(Path(folder), ENTRYPOINT, name)


class _Following:
    """A job until its end: progress from the store, words from its log."""

    def __init__(self, jobs: Jobs, name: str, run: Run, store: Store, talk: Talk) -> None:
        self.jobs, self.name, self.run, self.store, self.talk = jobs, name, run, store, talk
        self.ended: Ended | None = None
        self._read = 0
        self._done = 0
        self._lost = self._away = self._staged = False
        self._alive_s = time.monotonic()

    def to_the_end(self) -> None:
        """Return where the run is complete or all was known; the job's own error, or PoolError, otherwise."""
        try:
            while True:
                state, log = self.jobs.look(self.name)
                self._say_new(log, whole=state in JOB_ENDED)
                complete = self._progress()
                if state in JOB_ENDED or complete:
                    break
                self._say_lost()
                time.sleep(_LOOK_S)
        finally:
            if self._staged:
                self.talk.end()
        if not complete:
            self._explain(state, log)

    def _say_new(self, log: str, *, whole: bool) -> None:
        """What was printed since the last look; a line that is being printed is left for the next one."""
        end = len(log) if whole else log.rfind("\n") + 1
        lines, self._read = log[self._read : end].splitlines(), max(self._read, end)
        for line in lines:
            if line.startswith(ENDED):
                self.ended = msgspec.json.decode(line.removeprefix(ENDED), type=Ended)
            elif line.strip():
                self.talk.say(f"head    {line}")

    def _say_lost(self) -> None:
        """PoolError where nobody has been heard of for too long."""
        address, why = self.jobs.address, self.jobs.problem
        if not why:
            self._alive_s = time.monotonic()
        if why and not self._lost:
            self.talk.say(f"problem {address} does not answer; the job goes on, trying again")
        if self._lost and not why:
            self.talk.say(f"head    {address} answers again")
        self._lost = bool(why)
        if time.monotonic() - self._alive_s > PATIENCE_S:
            uid = self.run.uid[:8]
            raise PoolError(
                f"the head at {address} is out of reach ({why}); its job {self.name} may go on: "
                f"`perftrack watch {uid}` shows the run, {goes_on(self.run)} goes on with it if it ended"
            )

    def _progress(self) -> bool:
        """Tell how far the run is; whether it is complete."""
        try:
            state = self.store.state(self.run.uid)
            if state is None:
                return False
            if not self._staged:
                self._staged = True
                self.talk.stage("measure", self.store.load_run(self.run.uid).run.expected_jobs)
            done = len(self.store.done_jobs(self.run.uid))
            complete = state == "complete" and not self.store.owned(self.run.uid)
        except StoreAwayError as error:
            if not self._away:
                self.talk.say(f"problem {error}; the cluster goes on, trying again")
            self._away = True
            return False
        self._away = False
        for _ in range(done - self._done):
            self._alive_s = time.monotonic()
            self.talk.advance()
        self._done = done
        return complete

    def _explain(self, state: str, log: str) -> None:
        if self.ended and self.ended.stopped:
            raise StoppedError(f"at the head: {self.ended.text}")
        if self.ended and self.ended.code:
            kinds = {error.exit_code: error for error in (UsageError, PoolError, IncompleteError)}
            raise kinds.get(self.ended.code, PoolError)(f"at the head: {self.ended.text}")
        if state == "SUCCEEDED" and self.store.state(self.run.uid) is None and "stored  " not in log:
            raise PoolError(
                f"the job ended well, but {self.store.label} does not have run {self.run.uid[:8]}: the cluster's "
                "PERFTRACK_DB is another database than this one"
            )
        if state != "SUCCEEDED":
            last = "\n".join(log.strip().splitlines()[-_LAST_LINES:])
            raise PoolError(f"job {self.name} at {self.jobs.address} is {state}; it last said:\n{last}")
