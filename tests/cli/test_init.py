"""`perftrack init` in somebody's repository, and completion in a real shell."""

import json
import subprocess

import pytest

THEIRS = '[project]\r\nname = "theirs"\r\nversion = "1"\r\n'


def test_the_suite_runs_at_once(repo, run):
    (repo.root / "pyproject.toml").write_bytes(THEIRS.encode())
    repo.commit("theirs")
    before = run("doctor")
    assert "`perftrack init` writes one" in before.stdout
    done = run("init", "bench/kernels", cwd=repo.root / ".git" / "..")
    assert (done.returncode, done.stderr) == (0, "")
    assert "perftrack submit" in done.stdout
    written = (repo.root / "pyproject.toml").read_bytes()
    assert written == f'{THEIRS}\r\n[tool.perftrack]\r\nsuites = ["bench/kernels"]\r\n'.encode()
    assert "suites     1 of them: perftrack_example" in run("doctor").stdout
    done = run("submit", "--quick", "--base", "none", "-d", "cpu", "-k", "n=65536", "--format", "json")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["rows"]
    assert (row["suite"], row["variant"], row["verdict"]) == ("perftrack_example", "fused", "new")
    assert row["speedup_head"] > 0


def test_nothing_is_overwritten(repo, run):
    repo.commit("theirs", {"bench/speed.py": "1", "bench/_more.py": "2", "file": ""})
    for folder, said in (
        ("bench", "has speed.py already"), ("file", "is a file"), ("/etc", "'/etc' cannot be"), ("../x", "'../x'"),
        ("a.b", "'a.b'"), ("perftrack", "'perftrack'"), (".", "'.'"), ('a"b', "cannot be"),
    ):  # fmt: skip
        done = run("init", folder)
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr
        assert "Traceback" not in done.stderr
    assert repo.git("status", "--porcelain") == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[tool.perftrack]\nsuites = ["suites"]\n', "section already"),
        ("[tool\n", "cannot be read"),
        ('tool = {black = {}}\n[project]\nname = "x"\n', "by hand"),
    ],
)
def test_a_configuration_is_not_spoiled(repo, run, text, said):
    repo.commit("theirs", {"pyproject.toml": text})
    done = run("init")
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert repo.git("status", "--porcelain") == ""


def test_outside_a_repository_init_says_so(run, tmp_path):
    done = run("init", cwd=tmp_path)
    assert (done.returncode, "`git init` makes one" in done.stderr) == (2, True)


def test_bash_completes(run, command):
    script = run("completion", "bash").stdout
    asks = "COMP_WORDS=(perftrack submit --re); COMP_CWORD=2; _perftrack_completion perftrack; echo ${COMPREPLY[@]}"
    path = command.rpartition("/")[0]
    done = subprocess.run(
        ["bash", "-c", f'PATH="{path}:$PATH"\n{script}\n{asks}'], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == ["--resume", "--report"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_a_script(run, shell):
    assert f"_PERFTRACK_COMPLETE={shell}_complete" in run("completion", shell).stdout
