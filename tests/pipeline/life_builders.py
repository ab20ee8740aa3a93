"""Runs whose answers are given, over the commits of a real repository in a real database."""

import itertools
import sqlite3
import time
from functools import cache
from typing import ClassVar

import msgspec

from perftrack.judge.value import Finding, Interval, Summary
from perftrack.model import (
    Case,
    Cause,
    Device,
    Environment,
    JobResult,
    Measurement,
    Method,
    Run,
    RunOptions,
    Status,
    Traffic,
    Verdict,
)
from perftrack.pipeline.life import ack, remember, rows
from perftrack.pipeline.reports import report_of
from perftrack.revision import Repository

CLASS = "NVIDIA-H200-141G"
CARD = Device(uuid="GPU-a", name="H200", backend="cuda", device_class=CLASS, node="n", memory_bytes=1)
DRIVER = Environment(entries={"driver": "580.65"})
ADD, SUB = "add[n=1]", "sub[n=1]"


def case(key):
    return Case(
        suite="elementwise", benchmark=key[:3], key=key, backend="cuda", params={"n": 1},
        variants=("fused",), traffic=Traffic(read_bytes=2, write_bytes=1), min_effect=0.02,
    )  # fmt: skip


def finding(verdict=Verdict.SAME, key=ADD, **more):
    return Finding(
        suite="elementwise", case_key=key, device_class=CLASS, variant="fused", verdict=verdict, min_effect=0.02, **more
    )


def timed(base_us, head_us, key=ADD, *, spread=1.0, **more):
    """What a run of these times says, confirmed; `spread` is the half-width of the interval, as a factor."""
    ratio = head_us / base_us
    verdict = Verdict.SLOWER if ratio > 1.02 else Verdict.FASTER if ratio < 1 / 1.02 else Verdict.SAME
    slower = {"confirmed": True, "cause": Cause.FUSED_SLOWER} if verdict is Verdict.SLOWER else {}
    return finding(
        more.pop("verdict", verdict), key, base_s=base_us * 1e-6, head_s=head_us * 1e-6,
        change=Interval(ratio, ratio / spread, ratio * spread), **(slower | more),
    )  # fmt: skip


class World:
    """A repository, a database, and runs whose answers are given."""

    uids = itertools.count(1)
    begun: ClassVar[dict[str, int]] = {}

    def __init__(self, repo, store, path):
        self.repo, self.store, self.path = repo, store, path
        repo.git("config", "user.name", "Ada")
        self.git = Repository.discover(repo.root)
        self.revision = cache(self.git.revision)
        self.base = repo.commit("base", {"code": "0"})

    def commit(self, subject, code=None):
        return self.repo.commit(subject, {"code": code or subject})

    def judge(self, head, base, *findings, environment=DRIVER, uid=None):
        """One submission; `base`: a commit's id, or None for the first parent."""
        run = self.measure(head, base, *findings, environment=environment, uid=uid)
        remember(self.store, run.uid, self.git, self.git.accepted(run.head, run.base))
        return report_of(self.store, run.uid)

    def measure(self, head, base, *findings, environment=DRIVER, uid=None):
        """A run that is complete, and of which nothing is remembered yet."""
        to = self.revision(head)
        uid = uid or f"{next(self.uids):032x}"[::-1]
        run = Run(
            uid=uid, repo="repo", head=to, base=self.revision(base or to.parent),
            base_note="", options=RunOptions(methods={"cuda": Method()}),
            started_us=self.begun.setdefault(uid, time.time_ns() // 1000),
        )  # fmt: skip
        self.store.begin_run(run)
        summaries = []
        for one in findings:
            name = one.device_class
            card = CARD if name == CLASS else msgspec.structs.replace(CARD, uuid=f"GPU-{name}", device_class=name)
            attempt = JobResult(
                suite=one.suite, case_key=one.case_key, device_class=name, round=1, attempt=1, status=Status.OK,
                device_uuid=card.uuid, environment=environment,
                measurements=(Measurement(side="head", variant="fused", status=Status.OK),),
            )  # fmt: skip
            self.store.add_job(run.uid, case(one.case_key), attempt, card)
            summaries += [
                Summary(
                    suite=one.suite, case_key=one.case_key, device_class=name, device_uuid=card.uuid,
                    environment_digest=environment.digest, variant="fused", side=side, status=Status.OK, time_s=time_s,
                )
                for side, time_s in (("head", one.head_s), ("base", one.base_s))
                if time_s
            ]  # fmt: skip
        finished = {"finished_us": time.time_ns() // 1000, "summaries": summaries, "findings": findings}
        self.store.finish_run(run.uid, state="complete", **finished)
        return run

    def ack(self, target, **more):
        return ack(self.store, target, reason=more.pop("reason", "needed"), start=self.repo.root, **more)

    def states(self):
        return {row.id: row.state.value for row in rows(self.store, everything=True)}

    def count(self, table):
        with sqlite3.connect(self.path) as connection:
            return connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608 - our own names
