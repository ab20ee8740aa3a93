"""Collecting what a tree declares, in a child process that a broken suite may end.

`python -m perftrack.measure.collect` is that child: it reads which suites to import from its stdin and
writes two lines for each, so that the parent knows which suite a dying or silent child was at.
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import msgspec

from perftrack.declare import BACKENDS
from perftrack.errors import InfrastructureError, SuiteError
from perftrack.measure.child_environment import child_environment
from perftrack.measure.pipe import PrivatePipe
from perftrack.measure.tree import Workspace, find_suites, isolate_harness
from perftrack.model import Case

_KEPT_BYTES = 1 << 16


class Collected(msgspec.Struct, frozen=True, kw_only=True):
    """What one tree declares."""

    cases: list[Case]
    """Of both backends, suite by suite in order of definition."""
    problems: dict[str, str]
    """Suite name → why it could not be collected, in one sentence."""
    suites: list[str]
    """Every suite that was found, the broken ones included."""


class _Request(msgspec.Struct, frozen=True, kw_only=True):
    root: str
    modules: dict[str, str]


class _Line(msgspec.Struct, frozen=True, kw_only=True):
    """First without cases, when the import of a suite begins, then with its cases or its problem."""

    suite: str
    cases: list[Case] | None = None
    problem: str = ""


def collect_tree(root: Path, suite_paths: tuple[str, ...], *, timeout_s: float = 120) -> Collected:
    """Import every suite of the tree in a child process and return what they declare.

    A suite that raises, ends the process or takes longer than `timeout_s` is a problem; the others go on.
    """
    modules, problems = find_suites(root, suite_paths)
    suites = sorted({*modules, *problems})
    answers: dict[str, list[Case]] = {}
    waiting = dict(modules)
    while waiting:
        for line in _ask(_Request(root=str(root), modules=waiting), timeout_s):
            del waiting[line.suite]
            answers[line.suite] = line.cases or []
            if line.problem:
                problems[line.suite] = line.problem
    cases = [case for suite in suites for case in answers.get(suite, [])]
    return Collected(cases=cases, problems=problems, suites=suites)


def _ask(request: _Request, timeout_s: float) -> list[_Line]:
    """One child's answers; the last may be a problem made here, for the suite that ended the child."""
    said = _Said()
    with tempfile.TemporaryDirectory(prefix="perftrack-collect-", ignore_cleanup_errors=True) as scratch:
        child = subprocess.Popen(
            [sys.executable, "-P", "-s", "-m", "perftrack.measure.collect"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said.end,
            env=_environment(Path(scratch)),
        )
        said.listen()
        with child:
            answers, at, late = _converse(child, request, timeout_s)
    if at:
        answers.append(_Line(suite=at, problem=f"suite {at}: its import {_ending(child.returncode, late, timeout_s)}"))
    if not answers:
        raise InfrastructureError(f"collecting {request.root} failed: {said.last_line()}")
    return answers


def _environment(scratch: Path) -> dict[str, str]:
    """As for measuring: what a suite does when it is imported is tracked code too."""
    cores = len(os.sched_getaffinity(0))
    return child_environment(os.environ, scratch=scratch, caches=scratch, cores=cores, gpu=False)


class _Said:
    """The end of what a child prints: a suite may print without end, and to a file that would fill the disk."""

    def __init__(self) -> None:
        self._source, self.end = os.pipe()
        self._text = bytearray()
        self._thread = threading.Thread(target=self._read, daemon=True)

    def listen(self) -> None:
        """Begin, once the child has its end of the pipe."""
        os.close(self.end)
        self._thread.start()

    def last_line(self) -> str:
        """Of a child that has ended; what it started itself may still print."""
        self._thread.join(1.0)
        lines = self._text.decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else "the child said nothing"

    def _read(self) -> None:
        while data := os.read(self._source, _KEPT_BYTES):
            self._text += data
            del self._text[:-_KEPT_BYTES]
        os.close(self._source)


def _converse(child: "subprocess.Popen[bytes]", request: _Request, timeout_s: float) -> tuple[list[_Line], str, bool]:
    """(finished suites, the suite being imported when the child ended or "", whether it was ended for its time)."""
    if child.stdin is None or child.stdout is None:
        raise InfrastructureError("the collecting child has no pipes")
    answers: list[_Line] = []
    at = ""
    late = threading.Event()

    def kill() -> None:
        late.set()
        child.kill()

    timer = threading.Timer(timeout_s, kill)
    timer.start()
    try:
        child.stdin.write(msgspec.json.encode(request))
        child.stdin.close()
        for raw in child.stdout:
            timer.cancel()
            line = msgspec.json.decode(raw, type=_Line)
            at = "" if line.cases is not None or line.problem else line.suite
            if not at:
                answers.append(line)
            timer = threading.Timer(timeout_s, kill)
            timer.start()
    except BrokenPipeError:
        pass  # the child died at once; its exit code says why
    finally:
        timer.cancel()
    return answers, at, late.is_set()


def _ending(code: int, late: bool, timeout_s: float) -> str:  # noqa: FBT001 - a fact, not an option
    if late:
        return f"did not end within {timeout_s:g} s"
    if code < 0:
        return f"ended the process by {signal.Signals(-code).name}"
    return f"ended the process with exit code {code}"


def main() -> None:
    """The child: import the suites one after the other."""
    pipe = PrivatePipe()
    isolate_harness()
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=_Request)
    for suite, module in request.modules.items():
        pipe.send(_Line(suite=suite))
        try:
            made = Workspace(Path(request.root)).load(suite, module)
            cases = [case for benchmark in made for backend in BACKENDS for case in benchmark.cases(suite, backend)]
            pipe.send(_Line(suite=suite, cases=cases))
        except SuiteError as error:
            pipe.send(_Line(suite=suite, problem=str(error)))


if __name__ == "__main__":
    main()
    os._exit(0)  # whatever threads a suite left behind must not hold up the rest
