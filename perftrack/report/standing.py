"""How the regressions that a run saw stand, in words: what a red row says of itself, and why another is not red."""

from collections.abc import Sequence
from typing import NamedTuple

from perftrack.judge import life
from perftrack.judge.life import CaseId, Kind, Regression, Sighting, Standing, State
from perftrack.model import Run, Verdict
from perftrack.report.value import Remembered


class Key(NamedTuple):
    """What a row is about."""

    case: CaseId
    device_class: str
    kind: Kind


def remembered(regressions: Sequence[Regression], run: Run, now_us: int) -> dict[Key, tuple[Remembered, ...]]:
    """What each thing that the run found is known as; by the names that the run has for its cases."""
    found: dict[Key, list[Remembered]] = {}
    for one in regressions:
        for sighting in one.sightings:
            if sighting.run_uid == run.uid and not sighting.gone:
                key = Key(life.case_of(sighting.finding), one.device_class, one.kind)
                found.setdefault(key, []).append(_remembered(one, sighting, run, now_us))
    return {key: tuple(several) for key, several in found.items()}


def fixed(regressions: Sequence[Regression], run: Run, now_us: int) -> tuple[str, ...]:
    """One sentence for each regression of which the run shows a case back at the level before."""
    said: list[str] = []
    for one in regressions:
        there = [sighting for sighting in one.sightings if sighting.run_uid == run.uid and sighting.gone]
        gone = {sighting.case for sighting in there}
        if gone:
            removed = [sighting.finding.case_key for sighting in there if sighting.finding.verdict is Verdict.REMOVED]
            left = [case for case in one.cases() if life.standing(one, case, now_us).state is not State.FIXED]
            what = f"{one.kind.value} since {one.found.label} on {one.device_class}"
            rest = f"in {len(gone)} of {len(one.cases())} cases, {len(left)} left" if left else "in every case"
            hint = (
                f"; {removed[0]} is no longer declared: if it was renamed, `perftrack db alias {removed[0]!r} NEW` "
                "keeps the regression"
                if removed
                else ""
            )
            said.append(f"regression {one.id} ({what}) is gone {rest}{hint}")
    return tuple(said)


def in_words(standing: Standing) -> str:
    """`acknowledged by Ada until 2026-12-31: the sums must be exact`."""
    mark = standing.mark
    if standing.state is State.OPEN or mark is None:
        return standing.state.value + (f" again: {standing.again}" if standing.again else "")
    until = f" until {life.day(mark.until_us)}" if mark.until_us is not None else ""
    return f"{standing.state.value} by {mark.author}{until}: {mark.reason}"


def _remembered(one: Regression, sighting: Sighting, run: Run, now_us: int) -> Remembered:
    standing = life.stands(one, sighting, now_us)
    since = "" if one.found.sha == run.head.sha else one.found.label
    return Remembered(
        id=one.id,
        state=standing.state,
        since=since,
        text=f"regression {one.id}{f', since {since}' if since else ''}, {in_words(standing)}",
    )
