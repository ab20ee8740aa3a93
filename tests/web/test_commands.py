"""`perftrack serve` and `perftrack publish` as they are typed."""

import subprocess
import sys

import pytest

from perftrack.errors import UsageError
from perftrack.web import serve


def perftrack(*words):
    return subprocess.run(
        [sys.executable, "-m", "perftrack", *words], capture_output=True, text=True, timeout=60, check=False
    )


def test_another_host_is_refused_before_the_database_is_opened(tmp_path):
    done = perftrack("serve", "--host", "192.0.2.1", "--db", str(tmp_path / "none.db"))
    assert done.returncode == 2
    assert done.stderr == (
        "perftrack: --host 192.0.2.1 lets others in: give a token of 16 letters or more in PERFTRACK_TOKEN, "
        "or leave --host out\n"
    )


def test_where_the_extra_is_missing(monkeypatch):
    monkeypatch.setattr(serve, "NEEDED", ("no_such_package", "uvicorn"))
    with pytest.raises(UsageError, match=r"serve needs no_such_package: pip install 'perftrack\[web\]'"):
        serve.check_installed()


def test_publish_needs_no_server(red_store, tmp_path):
    red_store.close()
    code = (
        "import sys; sys.modules['starlette'] = sys.modules['uvicorn'] = None; sys.argv[0] = 'perftrack';"
        "from perftrack.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "publish", str(tmp_path / "site"), "--db", str(tmp_path / "perf.db"), "--last=1"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{tmp_path / 'site' / 'index.html'}: ")
    assert (tmp_path / "site" / "index.html").is_file()


def test_a_port_that_is_taken():
    with serve.listening("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"--port {port}: .*give another, 0 takes any"):
            serve.listening("127.0.0.1", port)
    with pytest.raises(UsageError, match=r"--host no\.invalid"):
        serve.listening("no.invalid", 0)
