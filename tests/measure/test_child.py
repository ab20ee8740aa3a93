"""The measuring child as a real process on the CPU."""

import pytest

from perftrack.measure.wire import Order
from perftrack.model import Job, Status

VARIANTS = """
    import numpy as np

    print("noise on stdout at import")

    def unfused(x, y, n):
        out, sum_ = np.empty_like(x), np.empty_like(x)
        def launch():
            print("noise in a launch")
            np.add(x, y, out=sum_)
            np.maximum(sum_, 0, out=out)
        return launch, out

    def fused(x, y, n):
        out = np.empty_like(x)
        def launch():
            np.add(x, y, out=out)
            np.maximum(out, 0, out=out)
        return launch, out

    def wrong(x, y, n):
        out = np.empty_like(x)
        return lambda: np.add(x, y, out=out), out

    def unwritten(x, y, n):
        out = np.empty_like(x)
        def launch():
            np.maximum(np.add(x[1:], y[1:]), 0, out=out[1:])
        return launch, out

    def wide(x, y, n):
        out = np.empty(x.shape, np.float64)
        def launch():
            np.maximum(np.add(x, y, dtype=np.float64), 0, out=out)
        return launch, out

    def greedy(x, y, n):
        out = np.empty_like(x)
        def launch():
            np.maximum(np.add(x, y), 0, out=out)
            x[0] += 1
        return launch, out

    def raising(x, y, n):
        raise ValueError("no kernel for this shape\\nsecond line")

    def exiting(x, y, n):
        out = np.empty_like(x)
        def launch():
            raise RuntimeError("launch is out of luck")
        return launch, out

    def one_shot(x, y, n):
        out, calls = np.empty_like(x), []
        def launch():
            calls.append(1)
            if len(calls) > 3:
                raise RuntimeError("it only works three times")
            np.maximum(np.add(x, y), 0, out=out)
        return launch, out

    def shapeless(x, y, n):
        return lambda: None, [1.0, 2.0]

    def reference(x, y, n):
        return (x + y).clip(0, None)
"""

SUITE = """
    from perftrack.declare import benchmark, variant
    from code_under_test import ops

    @benchmark(
        variants={
            "unfused": ops.unfused,
            "fused": ops.fused,
            "wrong": ops.wrong,
            "unwritten": ops.unwritten,
            "wide": ops.wide,
            "greedy": ops.greedy,
            "raising": ops.raising,
            "exiting": ops.exiting,
            "one_shot": ops.one_shot,
            "shapeless": ops.shapeless,
            "needs_package": variant(ops.fused, requires=["no_such_package_here"]),
            "needs_gpu": variant(ops.fused, requires=["sm_90"]),
            "on_gpu_only": variant(cuda=ops.fused),
        },
        reference=ops.reference,
        axes={"n": [4096]},
        traffic=lambda n: {"reads": 8 * n, "writes": 4 * n},
    )
    def add_relu(rng, n):
        "Add, then ReLU."
        return rng.normal(n, "float32"), rng.normal(n, "float32")
"""


def test_every_kind_of_variant_gets_its_own_status_and_spoils_no_other(tree, measure):
    root = tree("head", {"code_under_test/ops.py": VARIANTS, "suites/elementwise.py": SUITE})
    talk = measure({"head": root})

    assert talk.code == 0
    assert talk.said_bye
    assert "noise" in talk.stderr  # and every line of stdout was a message
    (result,) = talk.results
    assert result.status is Status.OK
    assert result.sets >= 2
    assert result.set_bytes == 3 * 4 * 4096
    assert result.cached
    assert result.ceiling_bytes_per_s > 1e8
    assert result.timed_s > 0
    assert {one.variant for one in result.measurements} >= {"unfused", "needs_gpu"}
    assert "on_gpu_only" not in {one.variant for one in result.measurements}

    for name in ("unfused", "fused"):
        good = talk.measurement(name)
        assert good.status is Status.OK, good.message
        assert good.mode == "loop"
        assert good.host_s is None
        assert 0 <= good.error_l2 < 2e-6
        assert list(good.blocks) == sorted(good.blocks)
        assert [good.blocks.count(index) for index in range(len(result.canary_s))] == [2] * len(result.canary_s)
        assert len(good.samples_s) == len(good.blocks)
        assert all(0 < sample < 1 for sample in good.samples_s)

    expected = {
        "wrong": (Status.WRONG, "relative L2 error"),
        "unwritten": (Status.WRONG, "1 of 4096 elements"),
        "wide": (Status.WRONG, "output 0 is float64, the baseline's is float32"),
        "greedy": (Status.WRONG, "changes its inputs"),
        "raising": (Status.FAILED, "build: ValueError: no kernel for this shape (code_under_test/ops.py:"),
        "exiting": (Status.FAILED, "run: RuntimeError: launch is out of luck"),
        "one_shot": (Status.FAILED, "RuntimeError: it only works three times"),
        "shapeless": (Status.FAILED, "output 0 is a float, not a numpy.ndarray"),
        "needs_package": (Status.SKIPPED, "needs no_such_package_here"),
        "needs_gpu": (Status.SKIPPED, "sm_90"),
    }
    for name, (status, words) in expected.items():
        found = talk.measurement(name)
        assert (found.status, found.samples_s) == (status, ()), (name, found.message)
        assert words in found.message
        assert "\n" not in found.message


LAZY = """
    FACTOR = {factor}
"""

SCALED = """
    import numpy as np

    def unfused(x, n):
        out = np.empty_like(x)
        def launch():
            from kernels import lazy  # at every call, also while the other side's modules were active before
            np.multiply(x, lazy.FACTOR, out=out)
        return launch, out

    def fused(x, n):
        import kernels.deep.one as one
        out = np.empty_like(x)
        return lambda: one.run(x, out), out

    def reference(x, n):
        from kernels import lazy
        return x * lazy.FACTOR
"""

DEEP = """
    import importlib
    import numpy as np

    def run(x, out):
        np.multiply(x, importlib.import_module("kernels.lazy").FACTOR + {bug}, out=out)
"""

SCALE_SUITE = """
    from perftrack.declare import benchmark
    from kernels.scale import unfused, fused, reference

    @benchmark(variants={{"unfused": unfused, "fused": fused}}, reference=reference, axes={{"n": [8192]}},
               traffic=lambda n: {{"reads": 4 * n, "writes": 4 * n}})
    def scale(rng, n):
        "{doc}"
        return rng.normal(n, "float32")
"""


def _scale_tree(factor: int, bug: int = 0, doc: str = "Scale.") -> dict[str, str]:
    return {
        "kernels/lazy.py": LAZY.format(factor=factor),
        "kernels/scale.py": SCALED,
        "kernels/deep/__init__.py": "",
        "kernels/deep/one.py": DEEP.format(bug=bug),
        "suites/scaling.py": SCALE_SUITE.format(doc=doc),
        "perftrack/__init__.py": "raise RuntimeError('the tree shadows the harness')",
    }


def test_base_and_head_have_modules_of_the_same_names_and_each_sees_its_own(tree, measure):
    head, base = tree("head", _scale_tree(factor=2)), tree("base", _scale_tree(factor=5, bug=1))
    talk = measure({"head": head, "base": base})

    assert talk.code == 0, talk.stderr
    assert talk.measurement("fused").status is Status.OK
    assert talk.measurement("unfused", "base").status is Status.OK
    assert talk.measurement("fused", "base").status is Status.WRONG
    (result,) = talk.results
    assert result.source_digest["head"] != result.source_digest["base"]
    both = [talk.measurement("unfused", side) for side in ("head", "base")]
    assert both[0].blocks == both[1].blocks


def test_equal_sources_have_equal_digests(tree, measure):
    talk = measure({"head": tree("head", _scale_tree(3)), "base": tree("base", _scale_tree(3))})
    (result,) = talk.results
    assert result.source_digest["head"] == result.source_digest["base"]
    assert {one.status for one in result.measurements} == {Status.OK}


READING = """
    from pathlib import Path
    import numpy as np
    from perftrack.declare import benchmark

    FACTOR = float(Path(__file__).parents[1].joinpath("csrc", "factor.txt").read_text())

    def scaled(x, n):
        out = np.empty_like(x)
        return lambda: np.multiply(x, FACTOR, out=out), out

    @benchmark(variants={"unfused": scaled, "fused": scaled}, reference=lambda x, n: x * FACTOR, axes={"n": [8192]},
               traffic=lambda n: {"reads": 4 * n, "writes": 4 * n})
    def scale(rng, n):
        return rng.normal(n, "float32")
"""


@pytest.mark.parametrize(("name", "equal"), [("csrc/factor.txt", False), ("README.md", True)])
def test_a_file_that_a_suite_reads_tells_sources_apart_and_a_word_to_people_does_not(tree, measure, name, equal):
    files = {"suites/scaling.py": READING, "csrc/factor.txt": "2", "README.md": "1"}
    talk = measure({"head": tree("head", files | {name: "3"}), "base": tree("base", files)})
    (result,) = talk.results
    assert {one.status for one in result.measurements} == {Status.OK}, talk.stderr
    assert (result.source_digest["head"] == result.source_digest["base"]) is equal


def test_a_suite_that_only_one_side_can_import_fails_that_side(tree, measure):
    base = _scale_tree(3) | {"suites/scaling.py": "import no_such_module"}
    talk = measure({"head": tree("head", _scale_tree(3)), "base": tree("base", base)})
    assert talk.measurement("fused").status is Status.OK
    failed = talk.measurement("fused", "base")
    assert failed.status is Status.FAILED
    assert "suite scaling cannot be imported: ModuleNotFoundError" in failed.message


TOO_FAST = """
    import numpy as np
    from perftrack.declare import benchmark

    def copy(x, n):
        out = np.empty_like(x)
        return lambda: np.copyto(out, x), out

    @benchmark(variants={"unfused": copy}, reference=lambda x, n: x, axes={"n": [1 << 21]},
               traffic=lambda n: {"reads": 4000 * n, "writes": 4000 * n})
    def copied(rng, n):
        "A copy that claims to move a thousand times what it moves."
        return rng.normal(n, "float32")
"""


def test_a_time_that_the_memory_does_not_allow_is_invalid(tree, measure):
    talk = measure({"head": tree("head", {"suites/fast.py": TOO_FAST})})
    found = talk.measurement("unfused")
    assert found.status is Status.INVALID
    assert "GB/s that this device reaches" in found.message


CRASH = """
    import os
    from perftrack.declare import benchmark

    def crash(x, n):
        return lambda: os._exit(7), x.copy()

    @benchmark(variants={"unfused": crash}, reference=lambda x, n: x, axes={"n": [16]},
               traffic=lambda n: {"reads": 4 * n, "writes": 4 * n})
    def crashing(rng, n):
        "Ends the process."
        return rng.normal(n, "float32")
"""


def test_the_last_phase_tells_where_a_crashed_child_was(tree, measure):
    talk = measure({"head": tree("head", {"suites/crash.py": CRASH})})
    assert talk.code == 7
    assert not talk.results
    last = talk.phases[-1]
    assert (last.what, last.suite, last.case_key) == ("verify", "crash", "crashing[n=16]")


def test_without_jobs_a_child_only_says_what_device_it_has(talk):
    heard = talk(Order(backend="cpu"))
    assert [type(message).__name__ for message in heard.messages] == ["Hello", "Bye"]
    report = heard.hello.report
    assert report.device.device_class.startswith("cpu-")
    assert report.device.uuid == talk(Order(backend="cpu")).hello.report.device.uuid
    assert report.device.memory_bytes > 1 << 28
    assert report.environment.entries["numpy"]
    assert not report.problem


def test_another_device_than_expected_measures_nothing(tree, talk):
    from perftrack.measure.collect import collect_tree

    root = tree("head", {"suites/crash.py": CRASH})
    case = next(case for case in collect_tree(root, ("suites",)).cases if case.backend == "cpu")
    heard = talk(
        Order(
            backend="cpu",
            trees={"head": str(root)},
            suite_paths=("suites",),
            jobs=(Job(case=case, device_class="cpu", round=1),),
            device_uuid="CPU-other",
        )
    )
    assert heard.code == 0
    (result,) = heard.results
    assert result.status is Status.INFRA
    assert "CPU-other was expected" in result.message
