"""What a user reads when the database cannot be used: one sentence, the right exit code, no password."""

import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
import store_builders as build
from postgresql_database import new_database

from perftrack.errors import PerftrackError, StoreError, UsageError
from perftrack.store import Store, address, door, engine, read, safe_url, schema
from perftrack.store.door import Door
from perftrack.store.inserting import insert


def _refusal(url: str, *, create: bool = True) -> PerftrackError:
    with pytest.raises(PerftrackError) as caught:
        Store.open(url, create=create).close()
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize("content", [b"hello", b"not a database, but long enough for a header" * 200])
@pytest.mark.parametrize("create", [True, False])
def test_a_file_that_is_no_database(tmp_path: Path, content: bytes, create: bool) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    error = _refusal(str(path), create=create)
    assert isinstance(error, UsageError)
    assert str(error).startswith(f"{path} is not an SQLite database; give another place with --db")
    assert path.read_bytes() == content


def test_a_folder(tmp_path: Path) -> None:
    error = _refusal(str(tmp_path))
    assert isinstance(error, UsageError)
    assert str(error) == f"{tmp_path} is a folder; give the database a file name, e.g. {tmp_path}/perftrack.db"


def test_a_file_that_is_not_there_is_not_made_by_a_reader(tmp_path: Path) -> None:
    path = tmp_path / "perf.db"
    error = _refusal(f"sqlite:///{path}", create=False)
    assert isinstance(error, UsageError)
    assert f"there is no database {path} yet" in str(error)
    assert not path.exists()


@pytest.mark.parametrize("path", ["/proc/perftrack/perf.db", "/dev/null/perf.db"])
def test_a_place_where_no_folder_can_be(path: str) -> None:
    error = _refusal(path)
    assert isinstance(error, UsageError)
    assert str(error).startswith(f"the folder of {path} cannot be made: ")


@contextmanager
def _as_nobody() -> Iterator[None]:
    """Root may write everywhere, so it is not root for a moment."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(before)


@pytest.fixture
def locked_folder(sqlite_template: Path) -> Iterator[Path]:
    """A folder nobody may write, with a filled database that nobody may write. Pytest's own is not open to all."""
    folder = Path(tempfile.mkdtemp(prefix="perftrack-"))
    shutil.copy(sqlite_template, folder / "perf.db")
    with Store.open(str(folder / "perf.db")) as store:
        store.begin_run(build.run())
    (folder / "perf.db").chmod(0o444)
    folder.chmod(0o555)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.parametrize("name", ["new.db", "perf.db"])
def test_a_read_only_folder_cannot_be_written(locked_folder: Path, name: str) -> None:
    with _as_nobody():
        error = _refusal(str(locked_folder / name))
    assert isinstance(error, UsageError)
    assert f"{locked_folder / name} cannot be opened for writing: mend the rights" in str(error)


def test_a_read_only_folder_can_be_read(locked_folder: Path) -> None:
    with _as_nobody(), Store.open(str(locked_folder / "perf.db"), create=False) as store:
        assert store.load_run(store.find_run("latest")).run == build.run()
        with pytest.raises(UsageError, match="cannot be opened for writing"):
            store.begin_run(build.run(2))


def _add_a_run(folder: Path, number: int) -> None:
    """By somebody who may, and who leaves no log behind."""
    now = os.geteuid()
    os.seteuid(os.getuid())
    for path, mode in ((folder, 0o755), (folder / "perf.db", 0o644)):
        path.chmod(mode)
    with Store.open(str(folder / "perf.db")) as store:
        store.begin_run(build.run(number))
    for path, mode in ((folder, 0o555), (folder / "perf.db", 0o444)):
        path.chmod(mode)
    os.seteuid(now)


def test_who_can_only_read_sees_what_was_stored_since(locked_folder: Path) -> None:
    with _as_nobody(), Store.open(str(locked_folder / "perf.db"), create=False) as store:
        assert len(store.runs()) == 1
        _add_a_run(locked_folder, 2)
        assert [one.run.uid for one in store.runs()] == [build.run(2).uid, build.run().uid]


def test_who_can_only_read_sees_one_instant(locked_folder: Path) -> None:
    seen: list[int] = []

    def work(connection: sa.Connection) -> tuple[int, int]:
        seen.append(read.run_count(connection))
        if len(seen) == 1:
            _add_a_run(locked_folder, 2)
        if len(seen) == 2:
            _add_a_run(locked_folder, 3)
            raise KeyError("what an answer of two instants may lead to")
        return seen[-1], read.run_count(connection)

    with _as_nobody(), Store.open(str(locked_folder / "perf.db"), create=False) as store:
        assert store.read(work) == (3, 3)
        rows = store.stream(sa.select(schema.run.c.uid).order_by(schema.run.c.id), 1)
        assert next(rows) == [(build.run().uid,)]
        _add_a_run(locked_folder, 4)
        with pytest.raises(StoreError, match=r"perf\.db was written to while it was read, and you may not make"):
            next(rows)
    assert seen == [1, 2, 3]


def test_a_folder_without_rights_at_all(locked_folder: Path) -> None:
    inner = locked_folder / "inner"
    with _as_nobody():
        error = _refusal(str(inner / "perf.db"))
    assert isinstance(error, UsageError)
    assert "cannot be made: Permission denied; name another with --db" in str(error)


@pytest.mark.fault
def test_a_locked_database(tmp_path: Path, sqlite_template: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "LOCK_TIMEOUT_S", 0.1)
    path = shutil.copy(sqlite_template, tmp_path / "perf.db")
    other = sqlite3.connect(path, isolation_level=None)
    with Store.open(str(path)) as store:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match=r"perf\.db is locked by another program for more than"):
            store.begin_run(build.run())
        assert store.latest_run() is None  # readers do not wait for writers
        other.execute("ROLLBACK")
        assert store.begin_run(build.run())
    other.close()


@pytest.mark.fault
def test_a_damaged_database(tmp_path: Path, sqlite_template: Path) -> None:
    path = Path(shutil.copy(sqlite_template, tmp_path / "perf.db"))
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xaa" * (len(data) - 4096)
    path.write_bytes(data)
    error = _refusal(str(path), create=False)
    assert isinstance(error, StoreError)
    assert "is damaged: restore a copy" in str(error)


def test_a_server_that_is_not_there() -> None:
    error = _refusal("postgresql://ada:s3cret@127.0.0.1:1/perf")
    assert isinstance(error, StoreError)
    assert error.exit_code == 3
    assert str(error).startswith("postgresql://ada:***@127.0.0.1:1/perf cannot be reached: ")
    assert "s3cret" not in str(error)


def test_a_database_that_is_not_on_the_server(postgresql: str) -> None:
    error = _refusal(postgresql.replace("/postgres?", "/nowhere?"))
    assert isinstance(error, StoreError)
    assert 'database "nowhere" does not exist' in str(error)


def test_a_server_that_may_not_be_written(postgresql: str) -> None:
    url = new_database(postgresql)
    error = _refusal(f"{url}&options=-cdefault_transaction_read_only%3Don")
    assert isinstance(error, StoreError)
    assert "may not be written by this user" in str(error)


def test_a_driver_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    error = _refusal("postgresql://localhost/perf")
    assert isinstance(error, UsageError)
    assert "psycopg, which is not installed: pip install 'perftrack[postgresql]'" in str(error)


@pytest.mark.fault
def test_a_connection_that_was_lost_is_made_again(postgresql: str, postgresql_template: str) -> None:
    url = new_database(postgresql, postgresql_template)
    with Store.open(url) as store, psycopg.connect(postgresql, autocommit=True) as other:
        store.begin_run(build.run())
        other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'perftrack'")
        assert store.add_job(build.run().uid, build.case(), build.job(), build.device())
        assert store.jobs(build.run().uid) == [build.job()]


@pytest.mark.fault
def test_a_deadlock_is_tried_again_where_the_driver_is_asked_itself(postgresql: str, postgresql_template: str) -> None:
    """Rows by COPY, and numbers for frames, do not go through SQLAlchemy."""
    begun: list[int] = []

    def work(connection: sa.Connection) -> int:
        begun.append(1)
        if len(begun) == 1:
            raw = connection.connection.dbapi_connection
            assert isinstance(raw, psycopg.Connection)
            raw.execute("DO $$ BEGIN RAISE EXCEPTION 'deadlock' USING ERRCODE = '40P01'; END $$")
        return len(begun)

    with Store.open(new_database(postgresql, postgresql_template)) as store:
        assert store._door.write(work) == 2


@pytest.mark.parametrize("count", [3, 600])
def test_rows_that_a_table_refuses_are_said_in_a_sentence_however_many_there_are(own_url: str, count: int) -> None:
    rows = [{"suite_id": 77, "key": f"add[n={number}]"} for number in range(count)]
    with Store.open(own_url) as store:
        with pytest.raises(StoreError, match="refuses a value") as caught:
            store._door.write(lambda connection: insert(connection, schema.kernel_case, rows))
        assert "\n" not in str(caught.value)
        assert store.read(lambda connection: connection.scalar(sa.select(sa.func.count(schema.kernel_case.c.id)))) == 0


@pytest.mark.fault
@pytest.mark.parametrize("state", ["40P01", "40001", "55P03", "57P01", "08006"])
def test_a_transaction_is_tried_again_where_the_server_asks_for_it(
    postgresql: str, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    monkeypatch.setattr(door, "PAUSES_S", (0.001, 0.001))
    attempts: list[int] = []

    def work(connection: sa.Connection, failures: int) -> str:
        attempts.append(len(attempts))
        if len(attempts) <= failures:
            connection.exec_driver_sql(f"DO $$ BEGIN RAISE EXCEPTION 'busy' USING ERRCODE = '{state}'; END $$")
        return "done"

    opened = Door(address.parse(postgresql))
    assert opened.write(lambda connection: work(connection, 2)) == "done"
    assert len(attempts) == 3
    attempts.clear()
    with pytest.raises(StoreError, match="busy"):
        opened.write(lambda connection: work(connection, 9))
    assert len(attempts) == 3
    opened.close()


def test_other_errors_are_not_tried_again(postgresql: str) -> None:
    attempts: list[int] = []

    def work(connection: sa.Connection) -> None:
        attempts.append(1)
        connection.exec_driver_sql("SELECT * FROM nothing")

    opened = Door(address.parse(postgresql))
    with pytest.raises(StoreError, match='relation "nothing" does not exist'):
        opened.write(work)
    assert len(attempts) == 1
    opened.close()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the database address is empty"),
        ("mysql://ada:s3cret@host/perf", "perftrack cannot store in mysql: use sqlite:///FILE or postgresql://"),
        ("postgresql+asyncpg://host/perf", r"cannot store in postgresql\+asyncpg"),
        ("postgresql://ada:s3cret@host:port/perf", "the postgresql database address cannot be read"),
        ("sqlite://", "needs an SQLite file"),
        ("sqlite:///:memory:", "needs an SQLite file"),
        ("sqlite:///perf.db?mode=ro", "options after"),
    ],
)
def test_addresses_that_do_not_help(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        Store.open(text)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("sqlite:////srv/perf.db", "/srv/perf.db"),
        ("/srv/perf.db", "/srv/perf.db"),
        ("postgresql://ada:s3cret@host:5433/perf", "postgresql://ada:***@host:5433/perf"),
        ("postgres://host/perf", "postgresql://host/perf"),
        ("postgresql+psycopg://host/perf?password=s3cret", "postgresql://host/perf?password=***"),
        ("postgresql://host/perf?sslpassword=s3cret&sslmode=require", "sslpassword=***"),
    ],
)
def test_addresses_are_shown_without_secrets(text: str, shown: str) -> None:
    assert shown in safe_url(text).replace("%2A", "*")
    assert "s3cret" not in safe_url(text)


def test_a_path_is_relative_to_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/ada")
    assert address.parse("perf.db").path == tmp_path / "perf.db"
    assert address.parse("sqlite:///x/perf.db").path == tmp_path / "x" / "perf.db"
    assert address.parse("~/perf.db").path == Path("/home/ada/perf.db")


MOUNTS = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:26 / /proc rw - proc proc rw
41 22 0:50 / /home rw,relatime shared:9 - nfs4 server:/home rw
42 41 254:1 / /home/local rw,relatime - xfs /dev/vdb rw
43 22 0:51 / /mnt/my\\040share rw,relatime - cifs //server/share rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/ada/perf.db", "nfs4"),
        ("/mnt/my share/perf.db", "cifs"),
        ("/home/local/perf.db", None),
        ("/homework/perf.db", None),
        ("/srv/perf.db", None),
    ],
)
def test_network_file_systems_are_refused(path: str, kind: str | None) -> None:
    if kind is None:
        address.refuse_network(Path(path), MOUNTS)
    else:
        with pytest.raises(UsageError, match=rf"lies on a network file system \({kind}\).* PostgreSQL"):
            address.refuse_network(Path(path), MOUNTS)
