"""`perftrack submit` on a real GPU: this repository's own kernels with a planted change."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from perftrack.measure.nvml import gpu_names

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not gpu_names(), reason="no NVIDIA GPU"), pytest.mark.timeout(550)]

ROOT = Path(__file__).parents[2]
CALL = 'SOURCE.flat("add_mul_relu", a.size, (a, b, c, out))'
STEP = "        partial(xp.maximum, product, 0, out=out),\n"


@pytest.fixture
def tracked(repo):
    for name in ("kernels", "suites"):
        shutil.copytree(ROOT / name, repo.root / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", repo.root)
    return repo


def edit(repo, name, old, new):
    path = repo.root / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def submit(repo, tmp_path, *args):
    environment = {
        **os.environ,
        "PERFTRACK_DB": f"sqlite:///{tmp_path}/perf.db",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    command = [sys.executable, "-m", "perftrack", "submit", "elementwise", "-k", "add_mul_relu_odd"]
    done = subprocess.run(
        [*command, "--format", "json", *args],
        cwd=repo.root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    return done.returncode, report, {row["variant"]: row for row in report["rows"]}


def test_a_redundant_pass_in_one_fused_kernel_is_the_only_red(tracked, tmp_path):
    tracked.commit("base")
    edit(tracked, "kernels/add_mul_relu.py", f"return launch({CALL}), out", f"return launch({CALL}, {CALL}), out")
    tracked.commit("a redundant pass")
    code, report, rows = submit(tracked, tmp_path)
    assert (code, report["verdict"]) == (1, "RED")
    assert [row["variant"] for row in report["rows"] if row["red"]] == ["fused"]
    assert (rows["fused"]["cause"], rows["fused"]["confirmed"]) == ("fused-slower", True)
    assert rows["fused"]["change"]["point"] == pytest.approx(2, rel=0.1)
    assert "launches 1 -> 2" in rows["fused"]["why"]
    assert (rows["fused_shared"]["verdict"], rows["fused_shared"]["cause"]) == ("same", "identical-code")


def test_a_faster_baseline_is_reported_and_green(tracked, tmp_path):
    edit(tracked, "kernels/add_mul_relu.py", STEP, 2 * STEP)
    tracked.commit("base with a redundant step")
    edit(tracked, "kernels/add_mul_relu.py", 2 * STEP, STEP)
    tracked.commit("unfused without it")
    code, report, rows = submit(tracked, tmp_path)
    assert (code, report["verdict"]) == (0, "GREEN")
    assert (rows["fused"]["verdict"], rows["fused"]["cause"]) == ("same", "unfused-faster")
    assert abs(rows["fused"]["change"]["point"] - 1) < 0.005
