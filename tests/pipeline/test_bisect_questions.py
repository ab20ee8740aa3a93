"""Questions that `perftrack bisect` refuses before anything is measured."""

from pathlib import Path

import pytest

from perftrack.errors import UsageError
from perftrack.pipeline.bisect import Request, bisect
from perftrack.revision import Repository

SUITE = """
from perftrack.declare import benchmark


def build(x, **_):
    return (lambda: None), x


@benchmark(
    variants={"unfused": build, "fused": build},
    reference=lambda x, **_: x,
    axes={"n": [4]},
    traffic=lambda n, **_: {"reads": 8 * n, "writes": 8 * n},
)
def nothing(rng, n):
    '''Nothing.'''
    return rng.normal((n,), "float64")
"""


class Listener:
    """Nothing is to be heard."""

    def say(self, text):
        raise AssertionError(text)


def ask(repo, tmp_path, case, span, **more):
    database = str(tmp_path / "perf.db")
    bisect(Request(start=repo.root, case=case, span=span, database=database, **more), Listener())


@pytest.fixture
def two(repo):
    suites = {"bench/one.py": SUITE, "bench/two.py": SUITE}
    repo.commit("first", {"pyproject.toml": '[tool.perftrack]\nsuites = ["bench"]\n', **suites})
    repo.commit("second", {"README.md": "words"})
    return repo


@pytest.mark.parametrize(
    ("case", "span", "more", "said"),
    [
        ("nothing[n=4]", "HEAD", {}, "write GOOD..BAD"),
        ("nothing[n=4]", "..HEAD", {}, "write GOOD..BAD"),
        ("nothing[n=4]", "HEAD~1...HEAD", {}, "write GOOD..BAD"),
        ("nothing[n=4]", "HEAD..HEAD~1", {}, "does not have HEAD behind it"),
        ("nothing[n=4]", "HEAD..", {}, "both are"),
        ("nothing[n=4]", "HEAD~1..nowhere", {}, "unknown revision 'nowhere'"),
        ("nothing[n=4]", "HEAD~1..HEAD", {"rounds": 1}, "--rounds is 1"),
        ("nothing[n=4]", "HEAD~1..HEAD", {}, "write one::nothing[n=4]"),
        ("one::nothing", "HEAD~1..HEAD", {}, "declares no case 'one::nothing'"),
        ("one::nothing[n=4]", "HEAD~1..HEAD", {"variant": "unfused"}, "there is fused"),
    ],
)
def test_a_question_without_an_answer_is_refused_in_a_sentence(two, tmp_path: Path, case, span, more, said):
    with pytest.raises(UsageError) as raised:
        ask(two, tmp_path, case, span, **more)
    assert said in str(raised.value)


def test_commits_are_those_of_the_first_parents(repo):
    good = repo.commit("good")
    repo.git("checkout", "-q", "-b", "side")
    repo.commit("on the side", {"side.txt": "1"})
    repo.git("checkout", "-q", "main")
    own = repo.commit("own", {"own.txt": "1"})
    repo.git("merge", "-q", "--no-ff", "-m", "merge", "side")
    last = repo.commit("last")
    shas = Repository.discover(repo.root).between(good, "HEAD")
    assert shas == [good, own, repo.git("rev-parse", "HEAD~1"), last]
