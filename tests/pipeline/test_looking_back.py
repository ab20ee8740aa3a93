"""A look at an older commit that cannot be made takes nothing with it of the run that asks for it."""

from contextlib import closing
from socket import socket

import msgspec
import pytest
from life_builders import ADD, SUB, case, timed

from perftrack.errors import PoolError
from perftrack.pipeline.execution import Execution
from perftrack.pipeline.inside import LogTalk
from perftrack.pipeline.life import rows
from perftrack.pipeline.past import History
from perftrack.pipeline.submit import conclude
from perftrack.pipeline.trees import Trees


class Declared(msgspec.Struct):
    """Of a tree that declares some cases."""

    cases: list
    problems: dict = {}


@pytest.fixture
def nobody():
    """Address of a dashboard that does not answer."""
    with closing(socket()) as one:
        one.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{one.getsockname()[1]}"


@pytest.fixture
def judged(world, tmp_path):
    """A run that is judged, and whose history wants to see another commit beside its head; of `added` besides."""

    def make(*added):
        shas = [world.commit(f"commit {number}") for number in range(8)]
        for number, sha in enumerate(shas):
            world.judge(sha, None, timed(10 + 0.01 * (number % 3), 10 + 0.01 * (number % 2), SUB))
        base = world.revision(shas[3])  # the newest of the history is another one
        head = world.revision(world.commit("head"))
        run = world.measure(head.sha, base.sha, timed(10.9, 10.9, SUB), *added)
        archives = {"head": world.git.export(head, tmp_path), "base": world.git.export(base, tmp_path)}
        declared = Declared([msgspec.structs.replace(case(key), variants=("unfused", "fused")) for key in (ADD, SUB)])
        trees = Trees(head, base, "parent", archives, {"head": declared, "base": declared})
        history = History(world.store, run, world.git.line)
        execution = Execution(run, trees, world.store, LogTalk(), history=history)
        execution.recall()
        return execution

    return make


def test_a_red_run_is_remembered_and_red_though_its_look_back_fails(world, judged, tmp_path, nobody, capsys):
    execution = judged(timed(10, 11))
    report = conclude(execution, world.git, [], tmp_path, nobody)
    said = capsys.readouterr()
    assert "history 1 case beside " in said.out
    assert f"problem no head answers at {nobody}" in said.out
    assert (report.exit_code, report.verdict) == (1, "RED")
    (row,) = rows(world.store, everything=True)
    assert [(one.case, one.state) for one in row.cases] == [(ADD, "open")]


def test_a_run_that_is_not_red_has_no_verdict_without_its_look_back(world, judged, tmp_path, nobody):
    execution = judged()
    with pytest.raises(PoolError):
        conclude(execution, world.git, [], tmp_path, nobody)
    assert rows(world.store, everything=True) == []
