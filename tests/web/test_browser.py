"""A real Chromium with the served and the published pages: nothing on its console, no request to anybody else."""

import json
import re
import shutil
import signal
import subprocess
import sys
from urllib.parse import quote

import pytest
from looking import Page
from web_builders import Names

from perftrack.web.publish import publish

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-extensions", "--enable-logging=stderr",
)  # fmt: skip
OWN = re.compile(r"https?://([a-z0-9-]+\.)*(google|googleapis|gvt1)\.com[:/]")
"""What Chromium asks for by itself."""

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")


def looked_at(url, folder):
    """The page as Chromium has it, its console, and what it asked the network for."""
    log = folder / "net.json"
    command = [CHROMIUM, *QUIET, f"--user-data-dir={folder / 'profile'}", f"--log-net-log={log}", "--dump-dom", url]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    console = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    requests = set(re.findall(r'"url":"([^"]*)"', log.read_text("utf-8")))
    return Page(done.stdout), console, {one for one in requests if not OWN.match(one)}


@pytest.fixture
def served(with_red):
    """Address of a real server, which is ended as a person ends it."""
    command = [sys.executable, "-m", "perftrack", "serve", "--port", "0", "--db", str(with_red)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        try:
            yield server.stdout.readline().split()[0]
        finally:
            server.send_signal(signal.SIGINT)
            said = server.communicate(timeout=30)[1]
    assert (server.returncode, said) == (0, "")


def test_served_pages(served, tmp_path):
    case = f"case?case={quote(Names().cases[0])}"
    page, console, requests = looked_at(served + case, tmp_path)
    assert "OPEN slower on NVIDIA-H200-141G since 00000a2" in page.text
    assert [tag for tag, _ in page.tags].count("svg") == 4
    assert console == []
    assert requests >= {served + case, f"{served}site.css"}
    assert [one for one in requests if not one.startswith(served)] == []


def test_published_pages(red_store, tmp_path):
    folder = tmp_path / "site"
    publish(red_store, folder, runs=3, say=print)
    (report,) = [
        one for one in json.loads((folder / ".perftrack-site.json").read_text()) if "run/0002" in one and "html" in one
    ]
    page, console, requests = looked_at((folder / report).as_uri(), tmp_path)
    assert page.text.startswith("RED")
    assert console == []
    assert {one for one in requests if not one.startswith("file:")} == set()
