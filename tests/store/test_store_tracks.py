"""Tracks, the changes of their level, and the frame of them: one value a commit, in one environment at a time."""

from collections.abc import Iterator

import numpy as np
import pytest
import store_builders as build

import perftrack
from perftrack.model import Environment
from perftrack.pipeline.reports import histories_of
from perftrack.store import Store, frames_columns
from perftrack.store.frames import Database

BEFORE, AFTER = 1e-5, 1.2e-5
CASE = build.case().key


def measure(
    store: Store,
    number: int,
    *,
    time_s: float | None,
    base_s: float | None = None,
    environment: Environment = build.ENVIRONMENT,
) -> None:
    """A run of the commit at position `number`, and of the one before beside it where `base_s` is its time."""
    run = build.run(number, head=build.revision(number), base=build.revision(number - 1) if base_s else None)
    store.begin_run(run)
    store.add_job(run.uid, build.case(), build.job(environment=environment), build.device())
    sides = [("head", time_s), *([("base", base_s)] if base_s else [])]
    summaries = [
        build.summary(side, time_s=seconds, environment_digest=environment.digest)
        if seconds
        else build.failed_summary(side)
        for side, seconds in sides
    ]
    store.finish_run(run.uid, state="complete", finished_us=1, summaries=summaries, findings=[])


@pytest.fixture
def database(url: str) -> Iterator[tuple[Store, Database]]:
    with Store.open(url) as store, perftrack.open(url) as opened:
        yield store, opened


def quiet(count: int) -> list[float]:
    return [float(one) for one in np.exp(0.003 * np.random.default_rng(5).standard_normal(count))]


def test_a_step_is_a_row_with_both_levels_and_the_history_shows_it(database: tuple[Store, Database]) -> None:
    store, opened = database
    for number, factor in enumerate(quiet(24), start=1):
        level = BEFORE if number < 13 else AFTER
        # beside the next commit it is measured once more: that is no second value of it
        base_s = (BEFORE if number < 14 else AFTER) * 3 if number > 1 else None
        measure(store, number, time_s=None if number == 5 else level * factor, base_s=None if number == 6 else base_s)
    frame = opened.change_points()
    assert list(frame.columns) == list(frames_columns.CHANGE_POINTS)
    (row,) = frame.to_dict("records")
    assert row["commit"] == build.revision(13).sha
    assert (row["commit_seq"], row["direction"], row["subject"]) == (13, 1, "commit 13")
    assert (row["commits_before"], row["commits_after"]) == (11, 12)
    assert row["median_us_before"] == pytest.approx(10, rel=0.01)
    assert row["change_pct"] == pytest.approx(20, abs=1)
    (series,) = histories_of(store, CASE, device="", variant="", last=9)
    places = [(series.points[at].revision, direction) for at, direction in series.changes]
    assert places == []
    (series,) = histories_of(store, CASE, device="", variant="", last=1000)
    places = [(series.points[at].revision, direction) for at, direction in series.changes]
    assert places == [(build.revision(13).label, 1)]


def test_an_environment_that_changes_is_a_border_and_no_step(database: tuple[Store, Database]) -> None:
    store, opened = database
    for number, factor in enumerate(quiet(24), start=1):
        new = Environment(entries={"driver": "600.1"})
        level, environment = (BEFORE, build.ENVIRONMENT) if number < 13 else (AFTER, new)
        measure(store, number, time_s=level * factor, environment=environment)
    (track,) = store.tracks("elementwise")
    assert (track.borders, track.changes()) == ([12], [])
    assert [one.revision.position for one in track.revisions] == list(range(1, 25))
    empty = opened.change_points(case=CASE)
    assert len(empty) == 0
    assert empty.dtypes.astype("str").to_dict()["median_us_before"] == "float64"


def test_a_suite_and_a_pattern_choose(database: tuple[Store, Database]) -> None:
    store, _ = database
    measure(store, 1, time_s=BEFORE)
    named = {of: len(store.tracks(of)) for of in ("elementwise", CASE, "add*", "add", "softmax*", "*")}
    assert named == {"elementwise": 1, CASE: 1, "add*": 1, "add": 0, "softmax*": 0, "*": 1}
    assert store.tracks(device="H200") == []
    assert store.tracks(variant="unfused") == []


def test_a_renamed_case_is_one_track_under_its_name_of_today(database: tuple[Store, Database]) -> None:
    store, _ = database
    for number in (1, 2, 3):
        measure(store, number, time_s=BEFORE)
    new = build.case("renamed[n=1]")
    for number in (4, 5):
        run = build.run(number, head=build.revision(number), base=None)
        store.begin_run(run)
        store.add_job(run.uid, new, build.job(case_key=new.key), build.device())
        summary = build.summary("head", case_key=new.key, time_s=AFTER)
        store.finish_run(run.uid, state="complete", finished_us=1, summaries=[summary], findings=[])
    assert len(store.tracks()) == 2
    store.rename(CASE, new.key)
    for of in ("*", CASE, new.key):
        (track,) = store.tracks(of)
        assert (track.case_key, track.times_s) == (new.key, (BEFORE,) * 3 + (AFTER,) * 2), of
