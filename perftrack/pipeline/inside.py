"""The cluster's side of a submission from outside: `python -m perftrack.pipeline.inside` in a Ray job.

The database is the one that the cluster's own environment names; its address is neither shipped nor printed.
"""

import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

import msgspec

from perftrack.errors import IncompleteError, PerftrackError, PoolError, StoppedError, UsageError
from perftrack.model import Run
from perftrack.pipeline.execution import Execution, Known
from perftrack.pipeline.known import known
from perftrack.pipeline.parcel import ENDED, Ended, Item, Versions, unpack
from perftrack.pipeline.past import History
from perftrack.pipeline.reach import Reach
from perftrack.pipeline.trees import collect
from perftrack.report.words import counted
from perftrack.store import Store, safe_url

_VARIABLE = "PERFTRACK_DB"


class LogTalk:
    """Lines for the job's log, which the other side reads."""

    def say(self, text: str) -> None:
        """A line for the user."""
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    def stage(self, title: str, total: int) -> None:
        """The other side sees progress in the store."""

    def working(self, text: str) -> None:
        """Too much for a log."""

    def advance(self) -> None:
        """Seen in the store."""

    def end(self) -> None:
        """Seen in the store."""


def main() -> int:
    """Carry out every run of the parcel; exit code as of `perftrack submit`."""
    signal.signal(signal.SIGTERM, _interrupt)
    talk = LogTalk()
    url = os.environ.get(_VARIABLE, "")
    try:
        ended = _carry_out(url, talk)
    except KeyboardInterrupt:
        ended = Ended(code=PoolError.exit_code, text="the job was stopped; what was measured is kept")
    except PerftrackError as error:
        stopped = isinstance(error, StoppedError)
        ended = Ended(code=error.exit_code, text=_without(url, str(error)), stopped=stopped)
    talk.say(ENDED + msgspec.json.encode(ended).decode())
    return ended.code


def _carry_out(url: str, talk: LogTalk) -> Ended:
    parcel = unpack(Path())
    if differs := parcel.versions.difference(Versions()):
        talk.say(f"differs {differs}")
    if not url:
        raise PoolError(f"the cluster has no {_VARIABLE} in its environment: set it before `ray start` on the head")
    until = time.monotonic() + parcel.seconds if parcel.seconds is not None else float("inf")
    with Store.open(url) as store:
        if len(parcel.items) == 1:
            _one(parcel.items[0], store, talk, until)
            return Ended(code=0)
        return _all(parcel.items, store, talk, until, url)


def _all(items: Sequence[Item], store: Store, talk: LogTalk, until: float, url: str) -> Ended:
    """One after the other; what cannot be measured now is told and left to the next sweep."""
    reach, left, failed = Reach(), 0, False
    for item in items:
        run = item.run
        why = _without(url, reach.why_not(run.options.device))
        try:
            if not why:
                _one(item, store, talk, until)
                reach.worked(run.options.device)
                continue
        except StoppedError:
            raise
        except (UsageError, PoolError, IncompleteError) as error:
            why = _without(url, str(error))
            if store.owned(run.uid):  # by another process, which measures it
                talk.say(f"problem {run.head.label}: {why}")
                continue
            if not isinstance(error, IncompleteError):
                reach.failed(run.options.device, error, begun=store.state(run.uid) is not None)
            failed = failed or isinstance(error, PoolError)
        left += 1
        talk.say(f"problem {run.head.label}: {why}")
    if not left:
        return Ended(code=0)
    kind = PoolError if failed else IncompleteError
    return Ended(code=kind.exit_code, text=f"{left} of {counted(len(items), 'run')} are left for the next sweep")


def _one(item: Item, store: Store, talk: LogTalk, until: float) -> None:
    run = item.run
    of: Known = frozenset()
    if run.options.sweep is not None:  # others may have been at it since it was shipped
        if store.state(run.uid) == "complete":
            talk.say(_stored(run))
            return
        of = known(store, run.repo, run.head.sha)
    trees = collect(run.head, run.base, run.base_note, item.archives, run.options.suite_paths)
    line = None if item.line is None else frozenset(item.line)
    execution = Execution(
        run,
        trees,
        store,
        talk,
        history=None if line is None else History(store, run, lambda _: line),
        suspected=item.suspected,
        alpha=item.alpha,
        spread=item.spread,
        known=of,
        until=until,
    )
    if not execution.measure(os.environ.get("RAY_ADDRESS")):
        talk.say(_stored(run))


def _stored(run: Run) -> str:
    return f"stored  {run.head.label}: nothing was left to measure"


def _without(url: str, text: str) -> str:
    """A message without the address of the database, as far as it is there."""
    names = [url, safe_url(url)] if url else []
    for name in names:
        text = text.replace(name, "the database")
    return text


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
