"""Bad input gets one sentence that names the thing, the value and the remedy, and the right exit code."""

import json
import re
import sqlite3
import subprocess
import sys

import pytest

from perftrack.store.migrate import HEAD


def sentence(done):
    """What was said last; never a traceback."""
    assert "Traceback" not in done.stderr, done.stderr
    return done.stderr.strip().splitlines()[-1]


@pytest.fixture(scope="module")
def tracked(track, files):
    """Run a command in a repository where nothing is missing and nothing is ever measured."""
    repo, run = track("refusals")
    repo.commit("base", files)
    return run


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["nosuch"], r"unknown suite 'nosuch' in .*: there are flat, other"),
        (["--head", "nosuch"], r"unknown revision 'nosuch' in .*: give a branch, tag or commit"),
        (["--base", "nosuch"], r"unknown revision 'nosuch' in .*: give a branch, tag or commit"),
        (["-k", "nosuch"], r"-k 'nosuch' matches none of the 4 cases"),
        (["-k", "scale and"], r"-k 'scale and': a name is missing"),
        (["--rounds", "0"], r"--rounds is 0; at least one round is needed"),
        (["-o", "nosuch/report.md"], r"-o nosuch/report.md: the folder nosuch does not exist"),
        (["--resume", "123456"], r"has no run '123456'"),
        (["--address", "ray://head:10001"], r"Ray Client addresses are not supported"),
        (["--nosuch"], r"No such option"),
    ],
)
def test_submit_refuses(tracked, args, said):
    done = tracked("submit", *args)
    assert re.search(said, done.stderr), done.stderr
    assert done.returncode == 2
    assert done.stdout == ""
    sentence(done)


def test_a_gpu_is_asked_for_where_there_is_none(repo, run_alone, files, own_tmp, living_in):
    repo.commit("base", files)
    stale = own_tmp / "ray" / "ray_current_cluster"  # what `ray start` leaves behind; Ray itself would follow it
    stale.parent.mkdir()
    stale.write_text("127.0.0.1:1")
    done = run_alone("submit", "-d", "H900*", env={"CUDA_VISIBLE_DEVICES": "", "TMPDIR": str(own_tmp)})
    assert (done.returncode, done.stdout) == (2, "")
    assert re.search(r"no GPU in the pool.*'H900\*'.*use -d cpu", sentence(done))
    assert living_in() == []
    assert [path for path in own_tmp.rglob("*") if path.is_file()] == [stale]


def test_outside_a_repository(run, tmp_path):
    done = run("submit", cwd=tmp_path)
    assert (done.returncode, sentence(done)) == (
        2,
        f"perftrack: {tmp_path} is not in a git repository: run perftrack inside one (`git init` makes one)",
    )


def test_a_repository_without_settings(repo, run, files):
    repo.commit("base", {"a.py": "1"})
    done = run("submit")
    assert done.returncode == 2
    assert "has no [tool.perftrack] section" in done.stderr


def test_no_suites(repo, run, files):
    repo.commit("base", {"pyproject.toml": files["pyproject.toml"], "a.py": "1"})
    done = run("submit")
    assert done.returncode == 2
    assert "no suites found" in sentence(done)


@pytest.mark.parametrize(
    ("url", "code", "said"),
    [
        ("postgresql://perf:secret@127.0.0.1:1/perf", 3, "127.0.0.1"),
        ("nosuch://x", 2, "nosuch"),
        ("sqlite:////proc/nosuch/perf.db", 2, "/proc/nosuch"),
    ],
)
def test_databases_that_cannot_be_used(tracked, url, code, said):
    done = tracked("submit", "--db", url)
    assert (done.returncode, said in sentence(done)) == (code, True), done.stderr
    assert "secret" not in done.stderr + done.stdout


def test_a_file_that_is_no_database(tracked, tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("my notes, not a database; " * 100)
    done = tracked("report", "latest", "--db", str(path))
    assert (done.returncode, "notes.txt" in sentence(done)) == (2, True), done.stderr
    assert path.read_text().startswith("my notes")


def test_a_report_from_a_database_that_is_not_there(run, tmp_path):
    done = run("report", "--db", str(tmp_path / "nosuch.db"), cwd=tmp_path)
    assert done.returncode in (2, 3)
    assert "nosuch.db" in sentence(done)
    assert not (tmp_path / "nosuch.db").exists()


def test_an_outdated_and_a_newer_schema_are_named(run, tmp_path):
    path = tmp_path / "perf.db"
    assert run("db", "current", cwd=tmp_path).returncode in (2, 3)
    with sqlite3.connect(path) as connection:
        connection.execute("create table perftrack_alembic_version (version_num text primary key)")
        connection.execute("insert into perftrack_alembic_version values ('9999')")
    done = run("report", cwd=tmp_path)
    assert (done.returncode, "9999" in sentence(done)) == (3, True), done.stderr


def test_db_upgrade_makes_an_empty_database_usable(run, tmp_path):
    (tmp_path / "perf.db").touch()
    empty = run("report", cwd=tmp_path)
    assert (empty.returncode, "holds no perftrack data yet" in sentence(empty)) == (2, True), empty.stderr
    assert run("db", "upgrade", cwd=tmp_path).stdout.strip() == f"empty -> {HEAD}"
    assert run("db", "upgrade", cwd=tmp_path).stdout.strip() == f"{HEAD}, nothing to do"
    assert run("db", "current", cwd=tmp_path).stdout.strip() == HEAD
    done = run("report", cwd=tmp_path)
    assert (done.returncode, "has no run yet" in sentence(done)) == (2, True)


FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from perftrack.cli.talk import PlainTalk
from perftrack.errors import StoreError
from perftrack.pipeline.submit import Request, submit

class Talk(PlainTalk):
    def advance(self):
        super().advance()
        if self.done == 1:  # from now on no file of this process can grow
            size = max(path.stat().st_size for path in Path(sys.argv[1]).parent.glob("perf.db*"))
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    submit(Request(start=Path.cwd(), suites=("flat",), base="none", device="cpu", rounds=3, quick=True,
                   database=sys.argv[1]), Talk())
except StoreError as error:
    print(error)
    sys.exit(error.exit_code)
"""


@pytest.mark.fault
def test_a_full_disk_loses_nothing_and_says_so(repo, run, files, joining, tmp_path):
    repo.commit("base", files)
    database = str(tmp_path / "perf.db")
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, database],
        cwd=repo.root,
        env=joining,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert (done.returncode, "the disk is full; what is stored is safe" in done.stdout) == (3, True), done.stderr
    again = run("submit", "--resume", "latest", "--format", "json")
    assert again.returncode == 0, again.stderr
    assert {row["rounds"] for row in json.loads(again.stdout)["rows"]} == {3}


def test_help_and_version(run, tmp_path):
    assert "Exit codes" in run("--help", cwd=tmp_path).stdout
    assert run("--version", cwd=tmp_path).stdout == "perftrack 0.1.0\n"


def test_doctor_explains(repo, run, files):
    repo.commit("base", files)
    done = run("doctor", env={"CUDA_VISIBLE_DEVICES": ""})
    assert done.returncode == 0, done.stdout
    lines = dict(line.split(None, 2)[1:] for line in done.stdout.splitlines())
    assert set(lines) == {
        "config",
        "suites",
        "git",
        "database",
        "ray",
        "gpu",
        "numba",
        "uvicorn",
        "matplotlib",
        "pyarrow",
    }
