import pytest

from perftrack.errors import UsageError
from perftrack.model import Case, Traffic
from perftrack.pipeline.select import of_axes, select


def case(suite, key):
    traffic = Traffic(read_bytes=4, write_bytes=4)
    return Case(
        suite=suite,
        benchmark=key.partition("[")[0],
        key=key,
        backend="cpu",
        params={},
        variants=("unfused",),
        traffic=traffic,
        min_effect=0.02,
    )


CASES = [
    case("rows", "softmax[dtype=float32,rows=8]"),
    case("rows", "softmax[dtype=float16,rows=8]"),
    case("flat", "add_mul_relu[dtype=float16,n=4]"),
]


@pytest.mark.parametrize(
    ("expression", "numbers"),
    [
        ("", [0, 1, 2]),
        ("softmax", [0, 1]),
        ("SoftMax and not float16", [0]),
        ("flat or float32", [0, 2]),
        ("not (flat or float32)", [1]),
        ("softmax[dtype=float16,rows=8]", [1]),
        ("rows::softmax", [0, 1]),
        ("nothing", []),
        ("not not flat", [2]),
    ],
)
def test_expressions_select(expression, numbers):
    assert select(CASES, expression) == [CASES[number] for number in numbers]


@pytest.mark.parametrize(
    ("expression", "sentence"),
    [
        ("softmax and", "a name is missing"),
        ("and softmax", "a name is missing before 'and'"),
        ("(softmax", "a closing parenthesis is missing"),
        ("softmax float16", "'float16' is not expected there"),
        ("softmax)", r"'\)' is not expected there"),
        ("not", "a name is missing"),
    ],
)
def test_mistakes_are_named(expression, sentence):
    with pytest.raises(UsageError, match=sentence):
        select(CASES, expression)


@pytest.mark.parametrize(
    ("axes", "numbers"),
    [
        ({"dtype": ("float16",)}, [1, 2]),
        ({"rows": (8,)}, [0, 1, 2]),
        ({"rows": (80,)}, [2]),
        ({"rows": (8, 16), "dtype": ("float32",)}, [0]),
        ({"ows": (8,)}, [0, 1, 2]),
        ({}, [0, 1, 2]),
    ],
)
def test_axes_keep_their_values_and_benchmarks_without_them(axes, numbers):
    assert select(CASES, of_axes(axes)) == [CASES[number] for number in numbers]
    assert select(CASES, of_axes(axes, "softmax or flat")) == [CASES[number] for number in numbers]
    assert select(CASES, of_axes(axes, "nowhere")) == []
