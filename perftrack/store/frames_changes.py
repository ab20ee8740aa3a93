"""Rows of the frame `change_points`: one change of level of one track each."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from perftrack import stats
from perftrack.store.frames_columns import UNPLACED
from perftrack.store.tracks import Track


def rows(track: Track) -> Iterator[tuple[Any, ...]]:
    """In the store's units and the order of the columns."""
    directions = dict(track.changes())
    edges = sorted({0, *track.borders, *directions, len(track.times_s)})
    for (start, at), (_, end) in pairwise(pairwise(edges)):
        if at not in directions:
            continue
        before, after = (
            [seconds for seconds in track.times_s[low:high] if seconds is not None]
            for low, high in ((start, at), (at, end))
        )
        revision = track.revisions[at].revision
        levels = stats.median(before), stats.median(after)
        yield (
            track.repo,
            track.suite,
            track.case_key,
            track.device_class,
            track.variant,
            revision.sha,
            UNPLACED if revision.position is None else revision.position,
            revision.committed_us,
            revision.subject,
            directions[at],
            *levels,
            levels[1] / levels[0] - 1,
            len(before),
            len(after),
        )
