"""The main line of history of the repository at hand, for the rules of the history."""

import re
from dataclasses import replace
from pathlib import Path

from perftrack import config
from perftrack.errors import PerftrackError
from perftrack.revision import Repository
from perftrack.store import Store, read
from perftrack.store.lines import main_lines

_ID = re.compile(r"[0-9a-f]{40}")


def lines_at(start: Path, store: Store) -> dict[str, frozenset[str]]:
    """Ids of the main branch's first-parent commits, under the name of the repository at `start`.

    Of commits that this clone does not have (it may be older than the store) what the store takes as the main line.
    Empty outside a repository, where no main branch is found, and in a shallow clone: there the store has to know.
    """
    try:
        repository = Repository.discover(start)
        settings = config.settings_near(start)
        main = repository.main_branch(settings.main_branch if settings else None)
        if main is None or repository.shallow:
            return {}
        name, line = repository.name, repository.line(repository.revision(_with_own(repository, main)))
    except PerftrackError:
        return {}
    stored = store.read(lambda each: main_lines(each, read.revisions(each, name, "")))
    try:
        return {name: line | _unknown(repository, stored.get(name, frozenset()) - line)}
    except PerftrackError:
        return {}


def _with_own(repository: Repository, main: str) -> str:
    """The local branch of the same name where it has all of the remote one: it may have commits not yet pushed."""
    local = f"refs/heads/{main.rpartition('/')[2]}"
    return local if repository.descends(local, main) else main


def _unknown(repository: Repository, ids: frozenset[str]) -> frozenset[str]:
    """Those that the clone does not have, and what files from elsewhere were given for want of a commit."""
    asked = [one for one in sorted(ids) if _ID.fullmatch(one)]
    own = replace(repository, environment={**repository.environment, "GIT_NO_LAZY_FETCH": "1"})  # none from elsewhere
    said = own.git("cat-file", "--batch-check", stdin="".join(f"{one}\n" for one in asked).encode())
    answers = said.decode(errors="replace").splitlines()
    here = {one for one, answer in zip(asked, answers, strict=True) if not answer.endswith(" missing")}
    return ids - here
