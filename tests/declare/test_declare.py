import re
import subprocess
import sys
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perftrack.declare import Benchmark, benchmark, case_key, collect_suite, variant
from perftrack.errors import SuiteError


def build(x, **_):
    return (lambda: None), x


def declare(**changes):
    values = {
        "variants": {"unfused": build, "fused": build},
        "reference": lambda x, **_: x,
        "axes": {"n": [4, 8], "dtype": ["float32"]},
        "traffic": lambda n, dtype: {"reads": n * 4, "writes": n * 4, "moved": {"unfused": n * 16}, "flops": n},
        **changes,
    }

    def scale(rng, n, dtype):
        """Scale a vector.

        More text.
        """
        return rng.normal((n,), dtype)

    return benchmark(**values)(scale)


def suite(*benchmarks):
    module = ModuleType("suite")
    for number, made in enumerate(benchmarks):
        setattr(module, f"b{number}", made)
    return module


def test_cases_expand_the_axes_with_sorted_keys():
    made = declare()
    cases = made.cases("elementwise", "cpu")
    assert [case.key for case in cases] == ["scale[dtype=float32,n=4]", "scale[dtype=float32,n=8]"]
    first = cases[0]
    assert first.params == {"n": 4, "dtype": "float32"}
    assert first.variants == ("unfused", "fused")
    assert (first.traffic.min_bytes, first.traffic.moved_bytes, first.traffic.flops) == (32, {"unfused": 64}, 4)
    assert first.doc == "Scale a vector."
    assert first.min_effect == 0.02
    assert first.issue == "queued"


def test_a_case_says_that_its_calls_are_issued_eagerly():
    assert {case.issue for backend in ("cuda", "cpu") for case in declare(issue="eager").cases("s", backend)} == {
        "eager"
    }


def test_axes_and_variants_differ_by_backend():
    made = declare(
        axes={"cuda": {"n": [1024], "dtype": ["float16"]}, "cpu": {"n": [4], "dtype": ["float64"]}},
        variants={"unfused": build, "steps": variant(cuda=build), "fused": variant(cpu=build, requires=["numba"])},
    )
    (cuda,), (cpu,) = made.cases("s", "cuda"), made.cases("s", "cpu")
    assert (cuda.key, cuda.variants) == ("scale[dtype=float16,n=1024]", ("unfused", "steps"))
    assert (cpu.key, cpu.variants) == ("scale[dtype=float64,n=4]", ("unfused", "fused"))
    assert made.variants["fused"].requires["cpu"] == ("numba",)


def test_an_axis_may_depend_on_another():
    made = declare(axes=[{"n": [4], "dtype": ["float32"]}, {"n": [8], "dtype": ["float16", "bfloat16"]}])
    assert [case.key for case in made.cases("s", "cuda")] == [
        "scale[dtype=float32,n=4]",
        "scale[dtype=float16,n=8]",
        "scale[dtype=bfloat16,n=8]",
    ]
    twice = declare(axes=[{"n": [4], "dtype": ["float32"]}, {"n": [4, 8], "dtype": ["float32"]}])
    with pytest.raises(SuiteError, match=r"both declare the case scale\[dtype=float32,n=4\]"):
        collect_suite(suite(twice), "s")


def test_no_cases_where_the_baseline_has_no_code():
    made = declare(variants={"unfused": variant(cuda=build), "fused": build})
    assert made.cases("s", "cpu") == []


def test_requires_per_backend():
    made = variant(build, requires={"cpu": ["numba"], "cuda": ["torch", "sm_90"]})
    assert made.requires == {"cpu": ("numba",), "cuda": ("torch", "sm_90")}


class Opaque:
    pass


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"axes": {"n": [Opaque()], "dtype": ["float32"]}},
            r"axis 'n' has the value <.*Opaque.*must be the same in every",
        ),
        ({"axes": {"n": [float("nan")], "dtype": ["float32"]}}, "use a finite number"),
        ({"axes": {"n": [], "dtype": ["float32"]}}, "axis 'n' has no values"),
        ({"axes": {"n": 4, "dtype": ["float32"]}}, "axis 'n' is 4, not a list"),
        ({"axes": {"n": [4], "dtype": "float32"}}, "axis 'dtype' is 'float32', not a list"),
        ({"axes": {"n": [4, 4], "dtype": ["float32"]}}, "axis 'n' has the same value twice"),
        ({"axes": {"n": [4], "dtype": ["a,b=c]"]}}, r"axis 'dtype' has the value 'a,b=c\]'"),
        ({"axes": {"rows": [4]}}, "cannot take the cuda axes"),
        ({"variants": {"unfused": build, "fused": 3}}, "variant 'fused' is 3, not a function"),
        ({"variants": {"unfused": build, "fu sed": build}}, "variant name 'fu sed'"),
        ({"variants": {"unfused": build, "fused": variant()}}, "variant 'fused' has no function"),
        ({"variants": {"fused": build}}, "baseline 'unfused' is not among the variants"),
        ({"reference": None}, "reference is None, not a function"),
        ({"min_effect": 2}, "min_effect is 2"),
        ({"issue": "later"}, "issue is 'later'; give one of queued, eager"),
    ],
)
def test_a_bad_declaration_names_file_benchmark_and_value(changes, sentence):
    with pytest.raises(SuiteError, match=sentence) as caught:
        declare(**changes)
    assert re.match(r".*test_declare\.py:\d+: benchmark scale", str(caught.value))


def test_a_bad_traffic_model_is_named():
    with pytest.raises(SuiteError, match=r"traffic\(\) of scale\[dtype=float32,n=4\] raised KeyError: 'writes'"):
        declare(traffic=lambda n, dtype: {"reads": 1}).cases("s", "cpu")


def test_requires_must_be_a_list():
    with pytest.raises(SuiteError, match=r"requires='numba'.*must be a list"):
        variant(build, requires="numba")


def test_two_benchmarks_of_one_key_are_refused_naming_both():
    with pytest.raises(
        SuiteError, match=r"(?s)suite s: .*benchmark scale and .*benchmark scale both declare the case scale"
    ):
        collect_suite(suite(declare(), declare()), "s")


def test_the_same_benchmark_under_two_names_is_one():
    made = declare()
    assert collect_suite(suite(made, made), "s") == [made]


def test_only_benchmarks_are_collected():
    module = suite(declare())
    module.helper = build
    (found,) = collect_suite(module, "s")
    assert isinstance(found, Benchmark)


def test_keys_are_the_same_in_every_process():
    code = "from perftrack.declare import case_key; print(case_key('b', {'z': True, 'a': 'x', 'm': 1.5}))"
    seen = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, check=True, capture_output=True, text=True
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert seen == {"b[a=x,m=1.5,z=true]\n"}


@given(
    st.dictionaries(
        st.from_regex(r"[a-z_]{1,5}", fullmatch=True),
        st.one_of(st.integers(), st.booleans(), st.from_regex(r"[a-z0-9.+\-/]{1,5}", fullmatch=True)),
        max_size=4,
    )
)
def test_a_key_does_not_depend_on_the_order_of_axes(params):
    backwards = dict(reversed(params.items()))
    assert case_key("b", params) == case_key("b", backwards)
