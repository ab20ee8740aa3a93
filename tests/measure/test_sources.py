"""Equal sources: every file that a suite could read counts, and what is there for people, git and tests does not."""

from pathlib import Path

import pytest

from perftrack.measure.sources import source_digest

FILES = {
    "kernels/__init__.py": "",
    "kernels/launch.py": "import ctypes",
    "csrc/k.cu": "// one",
    "sizes.json": "[1, 2]",
    "other.py": "x = 1",
    "setup.cfg": "",
    "README.md": "words",
    "docs/conf.py": "project = 'x'",
    "docs/picture.svg": "<svg/>",
    "tests/test_it.py": "assert True",
    "tests/data/input.bin": "12",
    ".gitignore": "*.o",
    ".github/workflows/ci.yml": "on: push",
}


@pytest.fixture
def digest(tree):
    numbers = iter(range(100))

    def of(changed: dict[str, str], loaded: set[str] = frozenset({"kernels"})) -> str:
        return source_digest(tree(str(next(numbers)), FILES | changed), set(loaded))

    return of


@pytest.mark.parametrize(
    "name",
    [
        "kernels/launch.py", "kernels/new.cuh", "csrc/k.cu", "csrc/new.cu", "sizes.json", "other.py", "setup.cfg",
        "tests/data/input.bin", "tests/weights.npy", "kernels/docs/table.csv", "docs.json",
    ],
)  # fmt: skip
def test_what_a_suite_could_read_counts(digest, name):
    assert digest({name: "changed"}) != digest({})


@pytest.mark.parametrize(
    "name",
    [
        "README.md", "csrc/README.rst", "docs/conf.py", "docs/picture.svg", "docs/new.txt", "doc/a.html",
        "tests/test_it.py", "tests/deep/conftest.py", "test/new.py", ".gitignore", ".gitlab-ci.yml",
        ".github/workflows/ci.yml", "kernels/__pycache__/launch.cpython-311.pyc",
    ],
)  # fmt: skip
def test_documentation_tests_and_what_git_reads_do_not(digest, name):
    assert digest({name: "changed"}) == digest({})


@pytest.mark.parametrize("name", ["tests/test_it.py", "docs/conf.py", "kernels/README.md"])
def test_of_an_entry_that_modules_were_loaded_from_everything_counts(digest, name):
    loaded = {"kernels", name.partition("/")[0]}
    assert digest({name: "changed"}, loaded) != digest({}, loaded)


def test_a_renamed_file_counts_and_a_link_is_where_it_leads(tree):
    made = [tree(name, {"a/x.csv": "1", "b/x.csv": "1"}) for name in ("one", "two", "three")]
    Path(made[2], "b/x.csv").rename(Path(made[2], "b/y.csv"))
    digests = [source_digest(one, set()) for one in made]
    assert (digests[0] == digests[1], digests[0] == digests[2]) == (True, False)
    linked = []
    for name, target in (("four", "a"), ("five", "b")):
        root = tree(name, {"a/x.csv": "1", "b/x.csv": "1"})
        (root / "data").symlink_to(target)
        linked.append(source_digest(root, set()))
    assert linked[0] != linked[1]
