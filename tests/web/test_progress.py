"""A run is followed while it goes: every look reads the store anew."""

import msgspec
import pytest
from looking import Page
from starlette.testclient import TestClient
from web_builders import START_US, Names, attempt, case, one_run, revision, run_uid

from perftrack.model import Device, Run, RunOptions, Status
from perftrack.web import progress
from perftrack.web.publish import publish
from perftrack.web.server import application

NAMES = Names()
UID = run_uid(9)
CARD = Device(
    uuid="GPU-7", name="x", backend="cuda", device_class=NAMES.classes[0], node="gpu-07", memory_bytes=10**9
)  # fmt: skip


@pytest.fixture
def asked(store):
    run = Run(
        uid=UID, repo="kernels", head=revision(9, "fuse"), base=None, base_note="", options=RunOptions(),
        started_us=START_US, problems=("suite x cannot be imported",), expected_jobs=4,
    )  # fmt: skip
    store.begin_run(run)
    with TestClient(application(store), base_url="http://localhost") as opened:
        yield opened


def add(store, number, *, minutes, **changes):
    """A job that took a minute and ended `minutes` after the run began."""
    key = f"add[n={number}]"
    done = attempt("s", key, CARD.device_class, CARD, NAMES, START_US + (minutes - 1) * 60_000_000)
    store.add_job(UID, case("s", key, NAMES), msgspec.structs.replace(done, wall_s=60.0, **changes), CARD)


def refreshes(answer):
    return [attrs["content"] for tag, attrs in Page(answer.text).tags if attrs.get("http-equiv") == "refresh"]


def test_jobs_pace_and_failures_as_they_come(asked, store):
    page = Page(asked.get("/progress?id=latest").text)
    assert "RUNNING 0 of 4 jobs" in page.text
    assert "No attempt has ended yet" in page.text
    assert "suite x cannot be imported" in page.text
    add(store, 1, minutes=2)
    add(store, 2, minutes=4, status=Status.FAILED, message="illegal address", measurements=(), attempt=2)
    data = asked.get("/progress.json?id=latest").json()
    assert (data["done"], data["expected"], data["left_s"]) == (2, 4, 240.0)
    assert data["idle_s"] > 0
    (card,) = data["cards"]
    assert (card["uuid"], card["jobs"], card["busy_s"], card["last_us"]) == ("GPU-7", 2, 120.0, START_US + 240_000_000)
    (trouble,) = data["troubles"]
    assert (trouble["case"], trouble["status"], trouble["attempt"]) == ("add[n=2]", "failed", 2)
    page = Page(asked.get("/progress?id=latest").text)
    assert "RUNNING 2 of 4 jobs" in page.text
    assert "About 4 min left at the pace so far" in page.text
    assert "illegal address" in page.text
    assert page.dangerous() == []


def test_who_follows_sees_it_end(asked, store):
    assert refreshes(asked.get(f"/progress?id={UID}")) == []
    assert refreshes(asked.get(f"/progress?id={UID}&follow=yes")) == ["5"]
    assert refreshes(asked.get("/runs?follow=yes")) == ["5"]
    assert "0 attempts for 4 jobs" in Page(asked.get("/runs").text).text
    store.finish_run(UID, state="interrupted", finished_us=START_US + 90_000_000, summaries=(), findings=())
    for path in (f"/progress?id={UID}&follow=yes", "/runs?follow=yes"):
        assert refreshes(asked.get(path)) == []
    page = Page(asked.get(f"/progress?id={UID}&follow=yes").text)
    assert "Interrupted: 0 of 4 jobs" in page.text
    assert "took 2 min" in page.text
    assert asked.get("/progress?id=latest&follow=x").status_code == 400
    assert asked.get("/progress").status_code == 400
    assert asked.get("/progress?id=ffff").status_code == 404


def test_all_runs_are_on_pages(store, tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "ON_A_PAGE", 2)
    for number in range(1, 6):
        one_run(store, Names(cases=("add[n=1]",), classes=("c",)), number, 99)
    with TestClient(application(store), base_url="http://localhost") as asked:
        found = [one["run"] for number in (1, 2, 3) for one in asked.get(f"/runs.json?page={number}").json()]
        assert found == [run_uid(number) for number in (5, 4, 3, 2, 1)]
        assert "page 3 of 3, 5 runs" in Page(asked.get("/runs?page=9").text).text
    publish(store, tmp_path / "site", runs=1, say=print)
    first = Page((tmp_path / "site" / "runs.html").read_text("utf-8"))
    assert "page 1 of 3, 5 runs" in first.text
    (second,) = {url for url in first.links if url.startswith("runs/2")}
    assert run_uid(2)[:8] in (tmp_path / "site" / second).read_text("utf-8")
