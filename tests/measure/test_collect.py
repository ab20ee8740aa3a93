"""Collecting trees whose suites misbehave."""

import resource

import pytest

from perftrack.measure.collect import collect_tree

GOOD = """
    from perftrack.declare import benchmark

    print("noise on stdout")

    @benchmark(variants={"unfused": lambda x, n: (lambda: None, x)}, reference=lambda x, n: x, axes={"n": [2, 1]},
               traffic=lambda n: {"reads": 4 * n, "writes": 4 * n})
    def copied(rng, n):
        "A copy."
        return rng.normal(n, "float32")
"""


@pytest.mark.fault
def test_broken_suites_are_problems_and_the_others_are_collected(tree):
    root = tree(
        "t",
        {
            "suites/__init__.py": "",
            "suites/_private.py": "raise RuntimeError",
            "suites/a_good.py": GOOD,
            "suites/b_syntax.py": "def f(:\n    pass\n",
            "suites/c_import.py": "import no_such_module\n",
            "suites/d_exit.py": "import os\nos._exit(3)\n",
            "suites/e_sys_exit.py": "import sys\nsys.exit('enough')\n",
            "suites/f_killed.py": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n",
            "suites/g_good.py": GOOD,
            "other/single.py": GOOD,
        },
    )
    collected = collect_tree(root, ("suites", "other/single.py", "absent"))

    good = ["a_good", "g_good", "single"]
    assert collected.suites == [
        "a_good",
        "b_syntax",
        "c_import",
        "d_exit",
        "e_sys_exit",
        "f_killed",
        "g_good",
        "single",
    ]
    assert sorted({case.suite for case in collected.cases}) == good
    cpu = [case.key for case in collected.cases if (case.suite, case.backend) == ("g_good", "cpu")]
    assert cpu == ["copied[n=2]", "copied[n=1]"]
    assert set(collected.problems) == set(collected.suites) - set(good)
    assert "suites/b_syntax.py:1" in collected.problems["b_syntax"]
    assert "ModuleNotFoundError: No module named 'no_such_module'" in collected.problems["c_import"]
    assert "exit code 3" in collected.problems["d_exit"]
    assert "SystemExit: enough" in collected.problems["e_sys_exit"]
    assert "SIGKILL" in collected.problems["f_killed"]


def test_a_suite_sees_no_secret_while_it_is_imported(tree, monkeypatch):
    secrets = {"PERFTRACK_DB": "postgresql://user:word@host/db", "GITHUB_TOKEN": "word", "RAY_AUTH_TOKEN": "word"}
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("NVIDIA_DRIVER_CAPABILITIES", "all")
    says = "import os\nraise RuntimeError(' '.join(sorted(os.environ)) + ' word' * ('word' in str(os.environ)))\n"
    collected = collect_tree(tree("t", {"suites/says.py": says}), ("suites",))
    seen = collected.problems["says"].partition("RuntimeError: ")[2].split()
    assert {"PATH", "NVIDIA_DRIVER_CAPABILITIES", "HOME"} <= {*seen}, "the list is whole"
    assert not {*secrets, "word"} & {*seen}


@pytest.mark.fault
def test_a_hanging_suite_is_ended(tree):
    root = tree("t", {"suites/a_hang.py": "import time\nwhile True: time.sleep(1)\n", "suites/b.py": GOOD})
    collected = collect_tree(root, ("suites",), timeout_s=6)
    assert collected.problems == {"a_hang": "suite a_hang: its import did not end within 6 s"}
    assert {case.suite for case in collected.cases} == {"b"}


@pytest.mark.fault
def test_a_suite_that_prints_without_end_is_ended_and_fills_no_disk(tree):
    """Nobody here may make a file of more than a few megabytes meanwhile."""
    forever = "import time\nwhile True:\n    print('x' * 999_999)\n    time.sleep(0.01)\n"
    root = tree("t", {"suites/a_prints.py": forever, "suites/b.py": GOOD})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8 << 20, hard))
    try:
        collected = collect_tree(root, ("suites",), timeout_s=4)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert collected.problems == {"a_prints": "suite a_prints: its import did not end within 4 s"}
    assert {case.suite for case in collected.cases} == {"b"}


def test_two_suites_of_one_name_are_refused(tree):
    collected = collect_tree(tree("t", {"suites/x.py": GOOD, "more/x.py": GOOD}), ("suites", "more"))
    assert not collected.cases
    assert "suites.x and more.x" in collected.problems["x"]


def test_a_tree_without_suites_has_none(tree):
    collected = collect_tree(tree("t", {"README.py": ""}), ("suites",))
    assert (collected.suites, collected.cases, collected.problems) == ([], [], {})


@pytest.mark.parametrize("name", ["kernels", "suites"])
def test_what_a_tree_lacks_is_not_taken_from_the_repository_perftrack_was_installed_from(tree, name):
    collected = collect_tree(tree("t", {"cases/uses.py": f"import {name}\n"}), ("cases",))
    assert f"No module named '{name}'" in collected.problems["uses"]
