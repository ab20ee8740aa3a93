"""CUDA C++ whose layout alone differs."""

import pytest

from perftrack.measure.cuda_text import tokens

KERNEL = """#include <cuda_fp16.h>
#define TWICE(x) ((x) + (x))
extern "C" __global__ void add(const float* a, float* out, long n) {
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;  // one element
    if (i < n) out[i] = TWICE(a[i]) + 1e-3f;
}
"""
REFORMATTED = """#include <cuda_fp16.h>

#define TWICE(x) ((x) + (x))   /* a macro */
extern "C"
__global__ void add(const float *a, float *out, long n)
{
    long i=blockIdx.x*(long) blockDim.x+threadIdx.x;
    /* in range
       only */
    if (i<n)
        out[i]=TWICE(a[i])+1e-3f;
}
"""


def test_comments_and_layout_make_no_difference() -> None:
    assert tokens(KERNEL) == tokens(REFORMATTED)
    assert tokens(KERNEL.replace("\n", "\r\n")) == tokens(KERNEL)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a + +b", "a ++b"),
        ("a < b", "a << b"),
        ("x - -1", "x --1"),
        ("1e-3f", "1e - 3f"),
        ("int ab", "int a b"),
        ('"a  b"', '"a b"'),
        ('"// no comment"', '""'),
        ("#define A 1\nB", "#define A 1 B"),
        ("#define F(x) x", "#define F (x) x"),
        ("return x;", "return y;"),
        ("'\\''", "''"),
    ],
)
def test_what_the_compiler_tells_apart_stays_apart(before: str, after: str) -> None:
    assert tokens(before) != tokens(after)


def test_joined_lines_are_one() -> None:
    assert tokens("#define A \\\n 1\nint b;") == tokens("#define A 1\nint b;")
