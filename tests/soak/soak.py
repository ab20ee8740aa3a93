"""The pool under random faults for a long time: `python tests/soak/soak.py MINUTES FAULT_EVERY [SEED]`, `make soak`.

A run without faults gives the table that is right. Then the same submission again and again with a random fault every
FAULT_EVERY seconds, resumed whenever its process ends before its time; each final table is compared with the right
one, row by row: keys and statuses of all jobs, their measurements and summaries. The last line is
`faults N lost 0 doubled 0 different 0`, and the exit code 0, where nothing went wrong.
"""

import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.extend(str(Path(__file__).parents[1] / name) for name in ("pool", "."))

from faults import Faults
from several_nodes import several_nodes

from perftrack.model import Status
from perftrack.store import Store

CASES, ROUNDS, SECONDS = 24, 10, 0.25
LONGEST_S = 900.0
"""An episode that takes longer has lost its way."""

SUITE = """
import numpy as np

from perftrack.declare import benchmark


def variant(x, **_):
    out = np.empty_like(x)
    return (lambda: np.copyto(out, x)), out


declare = benchmark(
    variants={{"unfused": variant, "fused": variant}},
    reference=lambda x, **_: x,
    axes={{"n": {sizes}}},
    traffic=lambda n: {{"reads": 8 * n, "writes": 8 * n}},
)


@declare
def {name}(rng, n):
    return rng.normal((n,), "float64")
"""

PLANTED = ("wrong", "raises", "crashes", "hangs")


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


class Submission:
    """`perftrack submit`, begun again with `--resume` until it comes to its end."""

    def __init__(self, repository: Path, database: Path, environment: dict[str, str]) -> None:
        self.database = database
        self._places = {"cwd": repository, "env": {**environment, "PERFTRACK_DB": f"sqlite:///{database}"}}
        self._log = database.with_suffix(".log").open("ab")
        self._process = self._start("-d", "cpu", "--base", "none", "--rounds", str(ROUNDS))
        self.starts = 1

    @property
    def pid(self) -> int:
        return self._process.pid

    def resume_too(self) -> str:
        if not self._begun():
            return "too early"
        second = self._start("--resume", "latest")
        try:
            code = second.wait(120)
        except subprocess.TimeoutExpired:
            second.kill()
            code = second.wait()
        return f"the second ended with exit code {code}"

    def ended(self) -> bool:
        """Whether it is done; one that ended too early is begun again."""
        code = self._process.poll()
        if code is None:
            return False
        if code in {0, 1, 4} and self._state() == "complete":
            return True
        again = ("--resume", "latest") if self._begun() else ("-d", "cpu", "--base", "none", "--rounds", str(ROUNDS))
        self._process = self._start(*again)
        self.starts += 1
        return False

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._log.close()

    def _start(self, *args: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, str(Path(__file__).with_name("driver.py")), "submit", *args]
        return subprocess.Popen(command, **self._places, stdout=self._log, stderr=self._log)

    def _begun(self) -> bool:
        return self._state() is not None

    def _state(self) -> str | None:
        if not self.database.exists():
            return None
        with Store.open(str(self.database)) as store:
            uid = store.latest_run()
            return store.state(uid) if uid else None


def table(database: Path) -> dict[tuple[object, ...], str]:
    """Every row of the newest run and its status."""
    with Store.open(str(database)) as store:
        uid = store.latest_run()
        rows: dict[tuple[object, ...], str] = {}
        for one in store.jobs(uid):
            key = (one.suite, one.case_key, one.device_class, one.round)
            rows["job", *key] = one.status.value
            for measured in one.measurements:
                rows["measurement", *key, measured.side, measured.variant] = measured.status.value
        for one in store.load_run(uid).summaries:
            rows["summary", one.suite, one.case_key, one.device_class, one.side, one.variant] = one.status.value
        return rows


def measured_twice(database: Path) -> int:
    """Jobs that were measured again although they had been measured: more than one attempt that was fine."""
    with Store.open(str(database)) as store:
        fine = [one for one, _ in store.attempts(store.latest_run()) if one.status is Status.OK]
        counts = Counter((one.suite, one.case_key, one.device_class, one.round) for one in fine)
        return sum(count - 1 for count in counts.values())


def make_repository(root: Path) -> None:
    git = ["git", "-C", str(root), "-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    (root / "suites").mkdir(parents=True)
    (root / "pyproject.toml").write_text("[tool.perftrack]\ncase-timeout = 3\n")
    (root / "suites/good.py").write_text(SUITE.format(name="good", sizes=list(range(1, CASES + 1))))
    for name in PLANTED:
        (root / f"suites/{name}.py").write_text(SUITE.format(name=name, sizes=[1]))
    for command in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "soak"]):
        subprocess.run([*git, *command], check=True)


def episode(submission: Submission, faults: Faults | None, every_s: float, until: float) -> int:
    """One submission to its end; how many faults there were. None after `until`, so that it comes to an end."""
    count, began = 0, time.monotonic()
    due = began + every_s
    while not submission.ended():
        if time.monotonic() - began > LONGEST_S:
            say(f"an episode did not end in {LONGEST_S:.0f} s")
            break
        if faults and due <= time.monotonic() < until and (said := faults.inject(submission)):
            count += 1
            say(f"{time.strftime('%H:%M:%S')} {said}")
            due = time.monotonic() + every_s
        time.sleep(0.2)
    return count


def main(minutes: float, every_s: float, seed: int) -> int:
    with TemporaryDirectory(prefix="pts-", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        make_repository(home / "repository")
        own = {f"XDG_{kind}_HOME": str(home / kind.lower()) for kind in ("CACHE", "STATE", "DATA")}
        environment = {**os.environ, **own, "NVIDIA_FAKE_SECONDS": str(SECONDS)}
        with several_nodes(environment, ("a", "b", "c")) as nodes:
            joining = {**nodes.environment, "RAY_ADDRESS": nodes.address}
            faults, counts = Faults(nodes, random.Random(seed)), Counter[str]()  # noqa: S311 - chance, not a secret
            began = time.monotonic()
            until = began + 60 * minutes
            right: dict[tuple[object, ...], str] = {}
            for number in range(10_000):
                if right and time.monotonic() >= until:
                    break
                submission = Submission(home / "repository", home / f"{number}.db", joining)
                try:
                    counts["faults"] += episode(submission, faults if right else None, every_s, until)
                finally:
                    submission.end()
                rows = table(submission.database)
                _compare(right or rows, rows, counts)
                counts["doubled"] += measured_twice(submission.database)
                right = right or rows
                told = " ".join(f"{name} {counts[name]}" for name in ("faults", "lost", "doubled", "different"))
                say(f"episode {number}: {len(rows)} rows, {submission.starts} starts; so far {told}")
                if counts["lost"] or counts["doubled"] or counts["different"]:
                    say((home / f"{number}.log").read_text()[-4000:])
    say(" ".join(f"{name} {counts[name]}" for name in ("faults", "lost", "doubled", "different")))
    return 1 if counts["lost"] or counts["doubled"] or counts["different"] else 0


def _compare(right: dict[tuple[object, ...], str], rows: dict[tuple[object, ...], str], counts: Counter[str]) -> None:
    counts["lost"] += len(right.keys() - rows.keys())
    counts["doubled"] += len(rows.keys() - right.keys())
    for key in sorted(right.keys() & rows.keys(), key=str):
        if right[key] != rows[key]:
            counts["different"] += 1
            say(f"different: {key} is {rows[key]}, not {right[key]}")


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1))
