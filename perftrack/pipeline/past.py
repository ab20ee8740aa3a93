"""A run's head against what the store knows of its series: which of them stand out, and from which commit's level."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from perftrack.declare import NEVER_GATED
from perftrack.judge.confirm import Key
from perftrack.judge.life import CaseId, Kind, Regression
from perftrack.judge.triage import Past, Triage, moved_together, triage
from perftrack.judge.value import Summary
from perftrack.model import Case, Method, Revision, Run, Status
from perftrack.store import Store
from perftrack.store.tracks import Track


@dataclass(frozen=True, slots=True)
class Told:
    """What a history says of a head, and which commit stands for the level that it was compared with."""

    triage: Triage
    against: Revision | None
    """None: nothing is known of the past."""
    commits: int
    """How many the past has."""

    @property
    def stands_out(self) -> bool:
        """From the current level. What creeps is measured beside an older commit than base."""
        return self.triage.reading in ("higher", "lower")


def moved_devices(told: Mapping[Key, Told], summaries: Iterable[Summary]) -> list[str]:
    """A sentence for each device whose cases moved together, unless those of the others of its class did so too."""
    devices = {
        (one.suite, one.case_key, one.device_class, one.variant): (one.device_class, one.device_uuid)
        for one in summaries
        if one.side == "head"
    }
    moved = moved_together((devices[name], one.triage) for name, one in told.items())
    readings = {devices[name]: None for name in told} | {device: how.reading for device, how in moved.items()}
    said: list[str] = []
    for (device_class, uuid), how in moved.items():
        others = [reading for other, reading in readings.items() if other[0] == device_class and other[1] != uuid]
        if others and set(others) == {how.reading}:
            continue
        word = "slower" if how.reading == "higher" else "faster"
        said.append(
            f"device {uuid} ({device_class}): {how.count} of {how.of} series with a past are {word} than that, by "
            f"{100 * abs(how.change):.1f} % in the middle; the second look tells the card's change from the code's"
        )
    return said


@dataclass
class History:
    """The stored past of the series of one run.

    A past has the commits of the head's first-parent line that were measured on the same device class, in the same
    environment and by the same method. A remembered slowdown of the series that is not fixed, however it stands, begins
    a new level: what is known is told once.
    """

    store: Store
    run: Run
    line: Callable[[Revision], frozenset[str]]
    """Ids of the commits in the first-parent line of one, itself included: a repository's `line`."""

    def ask(self, summaries: Sequence[Summary], cases: Mapping[tuple[str, str, str], Case]) -> dict[Key, Told]:
        """Of every candidate that has a time: all at once, since the rate of false suspicions is that of the run."""
        heads = {
            (one.suite, one.case_key, one.device_class, one.variant): one
            for one in summaries
            if one.side == "head" and one.status is Status.OK and one.time_s is not None
        }
        heads = {name: one for name, one in heads.items() if self._is_candidate(name, cases)}
        pasts: dict[Key, tuple[Past, Track, list[int]]] = {}
        repo = self.run.repo
        for suite, device_class in dict.fromkeys((name[0], name[2]) for name in heads):
            for track in self.store.tracks(suite, device=device_class, repo=repo, lines={repo: self._line}):
                name = (track.suite, track.case_key, track.device_class, track.variant)
                if name in heads and name not in pasts:
                    pasts[name] = self._past(track, heads[name], self._segment(heads[name], cases))
        answers = triage(
            {name: past for name, (past, _, _) in pasts.items()},
            {name: one.time_s or 0.0 for name, one in heads.items()},
        )
        return {
            name: _told(answers[name], *pasts[name][1:]) if name in pasts else Told(answers[name], None, 0)
            for name in heads
        }

    def _is_candidate(self, name: Key, cases: Mapping[tuple[str, str, str], Case]) -> bool:
        case = cases.get(name[:3])
        return case is not None and name[3] != case.baseline and name[3] not in NEVER_GATED

    def _segment(self, head: Summary, cases: Mapping[tuple[str, str, str], Case]) -> str:
        case = cases[head.suite, head.case_key, head.device_class]
        method = self.run.options.methods.get(case.backend, Method()).of(case)
        return f"{head.environment_digest}/{method.digest}"

    def _past(self, track: Track, head: Summary, segment: str) -> tuple[Past, Track, list[int]]:
        places = [place for place, its in enumerate(track.segments) if its == segment]
        places = places[_level_known(track, places, self._known) :]
        past = Past.of(
            [track.values[place] for place in places],
            cards=[track.cards[place] for place in places],
            card=head.device_uuid,
        )
        return past, track, places

    @cached_property
    def _line(self) -> frozenset[str]:
        """Commits before the head; uncommitted changes have the commit that they were made to before them."""
        line = self.line(self.run.head)
        return line if self.run.head.dirty else line - {self.run.head.sha}

    @cached_property
    def _known(self) -> list[Regression]:
        return [one for one in self.store.regressions(repo=self.run.repo) if one.kind is Kind.SLOWER]


def _level_known(track: Track, places: Sequence[int], regressions: Iterable[Regression]) -> int:
    """Index in `places` of the newest commit at which a remembered slowdown of the series began; 0 without one."""
    case = CaseId(track.suite, track.case_key, track.variant)
    begun = {one.found.sha for one in regressions if one.device_class == track.device_class and one.has(case)}
    shas = [track.revisions[place].revision.sha for place in places]
    return max((at for at, sha in enumerate(shas) if sha in begun), default=0)


def _told(answer: Triage, track: Track, places: Sequence[int]) -> Told:
    against = None if answer.against is None else track.revisions[places[answer.against]].revision
    return Told(answer, against, len(places))
