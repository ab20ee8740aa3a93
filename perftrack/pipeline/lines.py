"""The main line of history of the repository at hand, for the rules of the history."""

import re
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
        line = repository.line(repository.revision(main))
    except PerftrackError:
        return {}
    name = repository.name
    stored = store.read(lambda each: main_lines(each, read.revisions(each, name, "")))
    return {name: line | _unknown(repository, stored.get(name, frozenset()) - line)}


def _unknown(repository: Repository, ids: frozenset[str]) -> frozenset[str]:
    """Those that the clone does not have, and what files from elsewhere were given for want of a commit."""
    asked = [one for one in sorted(ids) if _ID.fullmatch(one)]
    said = repository.git("cat-file", "--batch-check", stdin="".join(f"{one}\n" for one in asked).encode())
    answers = said.decode(errors="replace").splitlines()
    here = {one for one, answer in zip(asked, answers, strict=True) if not answer.endswith(" missing")}
    return ids - here
