"""What runs that are stored say of a commit, so that a sweep need not measure it again."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

from perftrack.errors import UsageError
from perftrack.model import Backend, Case, Method, RunOptions, Status
from perftrack.pipeline import plan
from perftrack.pipeline.execution import Known
from perftrack.pipeline.trees import Trees
from perftrack.store import Store, overview
from perftrack.store.overview import Lost

LOST = frozenset({Status.INFRA, Status.UNSTABLE})
"""The machine's doing: says nothing of the commit."""

_Name = tuple[str, str, str, str]


def known(store: Store, repo: str, sha: str) -> Known:
    """What some run measured of a commit without losing any variant of it."""
    try:
        revision = store.find_revision(repo, sha)
    except UsageError:  # nothing is stored of it
        return frozenset()
    if revision.revision.dirty:
        return frozenset()
    found: dict[tuple[_Name, str], set[Status]] = {}
    for point in store.summaries(revision):
        one = point.summary
        name = (one.suite, one.case_key, one.device_class, point.method_digest)
        found.setdefault((name, point.run_uid), set()).add(one.status)
    return {name for (name, _), statuses in found.items() if not statuses & LOST}


def lost(store: Store, uids: Sequence[str]) -> list[Lost]:
    """The cases of which these runs have nothing at all, since the machine lost every attempt."""
    return store.read(lambda connection: overview.lost(connection, uids))


def statuses(store: Store, uids: Sequence[str]) -> list[tuple[str, str, str]]:
    """(run, device class, status) of what these runs measured of their heads, each once."""
    return store.read(lambda connection: overview.statuses(connection, uids))


def backend(device: str) -> Backend | None:
    """What `device`, as it was asked for, can only be; None where that depends on what there is."""
    return ("cpu" if device.lower().startswith("cpu") else "cuda") if device else None


def fits(device_class: str, device: str) -> bool:
    """Whether a device of this class is what was asked for, as the pool has it: a glob, `cpu`, or empty for any."""
    return fnmatchcase(device_class.lower(), "cpu*" if device == "cpu" else device.lower() or "*")


def covered(trees: Trees, options: RunOptions, of: Known) -> bool:
    """Whether every selected case is known on some device of the kind that is asked for: no pool is needed to see."""
    there = {(suite, key, digest) for suite, key, name, digest in of if fits(name, options.device)}
    cases = plan.selected(trees, options, "head")
    kind = backend(options.device) or ("cuda" if any(case.backend == "cuda" for case in cases) else "cpu")
    wanted = [case for case in cases if case.backend == kind]
    return bool(wanted) and all(_name(case, options) in there for case in wanted)


def _name(case: Case, options: RunOptions) -> tuple[str, str, str]:
    return (case.suite, case.key, options.methods.get(case.backend, Method()).of(case).digest)
