"""Small suites in trees of their own, and the real child process that measures them."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import msgspec
import pytest

from perftrack.measure.collect import collect_tree
from perftrack.measure.wire import Bye, Done, Hello, Message, Order, Phase
from perftrack.model import Job, JobResult, Measurement, Method, Side

TINY = Method(
    name="test",
    timer="host",
    blocks=4,
    timed_s=0.02,
    case_s=2.0,
    warmup_s=0.0,
    max_warmup_s=0.02,
    sets=2,
    canary_limit=1e9,
)


def write_tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    return root


@dataclass
class Talk:
    """What a child said and how it ended."""

    code: int
    messages: list[Message]
    stderr: str

    @property
    def hello(self) -> Hello:
        assert isinstance(self.messages[0], Hello)
        return self.messages[0]

    @property
    def results(self) -> list[JobResult]:
        return [message.result for message in self.messages if isinstance(message, Done)]

    @property
    def phases(self) -> list[Phase]:
        return [message for message in self.messages if isinstance(message, Phase)]

    @property
    def said_bye(self) -> bool:
        return isinstance(self.messages[-1], Bye)

    def measurement(self, variant: str, side: Side = "head") -> Measurement:
        (result,) = self.results
        (found,) = [one for one in result.measurements if (one.variant, one.side) == (variant, side)]
        return found


def talk_to_child(order: Order) -> Talk:
    ended = subprocess.run(
        [sys.executable, "-P", "-s", "-m", "perftrack.measure.child"],
        input=msgspec.json.encode(order),
        capture_output=True,
        timeout=120,
        check=False,
    )
    messages = [msgspec.json.decode(line, type=Message) for line in ended.stdout.splitlines()]
    return Talk(ended.returncode, messages, ended.stderr.decode())


def measure_trees(trees: dict[Side, Path], method: Method = TINY, **order: object) -> Talk:
    """Collect the head tree and measure all its CPU cases once, on all sides given."""
    collected = collect_tree(trees["head"], ("suites",))
    assert not collected.problems
    jobs = tuple(
        Job(case=case, device_class="cpu", round=1, sides=tuple(trees))
        for case in collected.cases
        if case.backend == "cpu"
    )
    return talk_to_child(
        Order(
            backend="cpu",
            trees={side: str(root) for side, root in trees.items()},
            suite_paths=("suites",),
            method=method,
            jobs=jobs,
            **order,
        )
    )


@pytest.fixture
def tree(tmp_path: Path):
    def make(name: str, files: dict[str, str]) -> Path:
        return write_tree(tmp_path / name, files)

    return make


@pytest.fixture(scope="session")
def measure():
    return measure_trees


@pytest.fixture(scope="session")
def talk():
    return talk_to_child
