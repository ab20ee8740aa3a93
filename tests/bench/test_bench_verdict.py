"""Our own cost around a measurement: exporting a tree, selecting cases, judging and reporting a run."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "judge"))
import judge_builders as build

from perftrack.judge.paired import compare
from perftrack.judge.summary import summarize
from perftrack.pipeline.select import select
from perftrack.revision import Repository

BLOCKS = [1e-3 + 1e-6 * block for block in range(25)]


def rounds() -> list[Any]:
    sides = [(side, variant) for side in ("head", "base") for variant in ("unfused", "steps", "fused")]
    return [
        build.result(number, *(build.measured(side, variant, *BLOCKS) for side, variant in sides))
        for number in (1, 2, 3)
    ]


def test_bench_compare_one_case(benchmark: Any) -> None:
    case, results = build.case(), rounds()
    (finding,) = benchmark(compare, case, case, results, device_class=build.CLASS)
    assert finding.verdict == "same"


def test_bench_summarize_one_case(benchmark: Any) -> None:
    assert len(benchmark(summarize, build.case(), "head", rounds(), build.device())) == 3


def test_bench_select_from_a_thousand_cases(benchmark: Any) -> None:
    cases = [build.case()] * 1000
    assert len(benchmark(select, cases, "elementwise and not (float16 or softmax)")) == 1000


def test_bench_export_a_tree(benchmark: Any, repo: Any, tmp_path: Path) -> None:
    repo.commit("files", {f"kernels/k{number}.py": "x = 1\n" * 200 for number in range(200)})
    git = Repository.discover(repo.root)
    archive = benchmark(git.export, git.revision("HEAD"), tmp_path)
    assert Path(archive.path).exists()
