"""`perftrack watch` and `perftrack cancel`: a run that another process carries out, seen through the store."""

import time
from collections.abc import Callable

from perftrack.errors import IncompleteError, UsageError
from perftrack.pipeline.reports import report_of
from perftrack.pipeline.talk import Talk
from perftrack.report.value import Report
from perftrack.report.words import goes_on
from perftrack.store import Store

LOOK_S = 2.0
"""Between two looks at the store."""

_SURE = 3
"""This many looks in a row have to find nobody: a server that has restarted gives its owner the lock again."""


def watch(store: Store, uid: str, talk: Talk, pause: Callable[[float], None] = time.sleep) -> Report:
    """Follow a run until it has ended, and return its report.

    IncompleteError where it was interrupted, or is `running` in the store while nobody carries it out.
    """
    run = store.load_run(uid).run
    talk.say(f"watch   run {uid[:8]}, {run.head.label} {run.head.subject}")
    if run.state == "running":
        _follow(store, uid, run.expected_jobs, talk, pause)
    state = store.state(uid)
    if state == "complete":
        return report_of(store, uid)
    gone = "" if state == "interrupted" else ", and no process carries it out any more"
    done = len(store.done_jobs(uid))
    raise IncompleteError(
        f"run {uid[:8]} was broken off with {done} of {run.expected_jobs} jobs{gone}; {goes_on(run)} finishes it"
    )


def _follow(store: Store, uid: str, expected: int, talk: Talk, pause: Callable[[float], None]) -> None:
    talk.stage("watch", expected)
    seen = alone = 0
    try:
        while store.state(uid) == "running":
            done = len(store.done_jobs(uid))
            for _ in range(done - seen):
                talk.advance()
            seen = done
            alone = 0 if store.owned(uid) else alone + 1
            if alone == _SURE and store.state(uid) == "running":
                return
            pause(LOOK_S)
    finally:
        talk.end()


def cancel(store: Store, uid: str) -> str:
    """Ask whoever carries a run out to stop after the job at hand, and say so in a sentence.

    UsageError where it is not running.
    """
    if not store.interrupt(uid, time.time_ns() // 1000):
        raise UsageError(f"run {uid[:8]} is {store.state(uid)}: there is nothing to cancel")
    end = "its process stops in a few seconds" if store.owned(uid) else "no process was carrying it out"
    again = goes_on(store.load_run(uid).run)
    return f"run {uid[:8]} is cancelled, {end}; what was measured is kept: {again}"
