"""The line for cron in docs/sweeps.md, carried out as cron would: by a shell whose environment is all but empty."""

import json
import re
import shlex
import subprocess
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
SWEEP = '[tool.perftrack.sweeps.nightly]\nsuites = ["flat"]\ndevices = ["cpu"]\nrounds = 1\nquick = true\n'


def test_the_line_for_cron(repo, files, command, joining, tmp_path):
    repo.commit("base", {**files, "pyproject.toml": files["pyproject.toml"] + SWEEP})
    clone, variables, log = tmp_path / "clone", tmp_path / "perftrack.env", tmp_path / "sweep.log"
    repo.git("clone", "-q", str(repo.root), str(clone))
    names = [name for name in joining if name.startswith("RAY_") or name in {"PYTHONPATH", "XDG_CACHE_HOME"}]
    lines = [f"{name}={shlex.quote(joining[name])}" for name in names]
    variables.write_text("\n".join([*lines, f"PERFTRACK_DB=sqlite:///{tmp_path / 'perf.db'}\n"]))

    (line,) = re.findall(r"^30 1 .*$", (DOCS / "sweeps.md").read_text(), re.MULTILINE)
    assert "%" not in line, "which cron takes for the end of the line"
    *_, words = line.split(maxsplit=5)
    for there, here in (
        ("/srv/perftrack/kernels", clone),
        ("/srv/perftrack/venv/bin/perftrack", command),
        ("/etc/perftrack.env", variables),
        ("/var/log/perftrack/sweep.log", log),
    ):
        assert there in words
        words = words.replace(there, str(here))
    bare = {"HOME": str(tmp_path), "LOGNAME": "perftrack", "SHELL": "/bin/sh", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(["/bin/sh", "-c", words], cwd="/", env=bare, check=False, timeout=240)
    assert done.returncode == 0, log.read_text()
    assert "measure 1/1 done" in log.read_text()
    shown = subprocess.run(
        [command, "report", "latest", "--format", "json"],
        env={**joining, "PERFTRACK_DB": f"sqlite:///{tmp_path / 'perf.db'}"},
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert {row["verdict"] for row in json.loads(shown.stdout)["rows"]} == {"new"}
