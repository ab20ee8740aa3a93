"""The generator behind dropout: known answers, one rule everywhere."""

import numpy as np
import pytest

from kernels import dropout_relu, dropout_torch, philox

KNOWN = {
    (0, 0): (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8),
}
"""From the authors' table of test vectors; the counter's upper 64 bits are zero."""


def scalar_philox(counter: int, key: int) -> tuple[int, ...]:
    """Philox4x32-10 as its paper states it, one integer at a time."""
    c, k, word = [counter & 0xFFFFFFFF, counter >> 32, 0, 0], [key & 0xFFFFFFFF, key >> 32], 0xFFFFFFFF
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & word, (p0 >> 32) ^ c[3] ^ k[1], p0 & word]
        k = [(k[0] + 0x9E3779B9) & word, (k[1] + 0xBB67AE85) & word]
    return tuple(c)


@pytest.mark.parametrize(("counter_and_key", "answer"), KNOWN.items())
def test_known_answers(counter_and_key: tuple[int, int], answer: tuple[int, ...]) -> None:
    counter, key = counter_and_key
    assert scalar_philox(counter, key) == answer
    assert tuple(philox.words(np.array([counter], np.uint64), key)[0]) == answer
    assert philox.compiled_words()(np.uint64(counter), np.uint64(key)) == answer


@pytest.mark.parametrize("key", [0, 1234567, 9 << 33 | 5, 2**64 - 1])
def test_counters_and_keys_beyond_32_bits(key: int) -> None:
    counters = (0, 1, 2**32 - 1, 2**32, 2**40 + 5, 2**63)
    found = philox.words(np.array(counters, np.uint64), key)
    for counter, words in zip(counters, found, strict=True):
        assert tuple(words) == scalar_philox(counter, key)
        assert philox.compiled_words()(np.uint64(counter), np.uint64(key)) == tuple(words)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 8, 13, 4096 * 8, 4096 * 8 + 1, 100003])
def test_uniform_steps_are_the_draws(dtype: str, n: int) -> None:
    u = np.full(n, np.nan, dtype)
    for step in philox.uniform_steps(77, u):
        step()
    np.testing.assert_array_equal(u, philox.draws(np, n, 77) / 65536)


def test_an_element_takes_its_16_bits_of_its_group() -> None:
    drawn = philox.draws(np, 24, 5)
    for element in range(24):
        word = scalar_philox(element // 8, 5)[element % 8 // 2]
        assert drawn[element] == (word >> 16 if element % 2 else word & 0xFFFF)


def test_the_rule_for_pytorch_keeps_the_same_elements() -> None:
    """In integers with signs, whose products wrap: NumPy's are those of PyTorch."""
    first = 8 * (2**32 - 3)  # the counter's upper word changes
    for elements in (np.arange(4001), np.arange(first, first + 48)):
        of_group = philox.words((elements // 8).astype(np.uint64), dropout_relu.KEY)
        halves = of_group[np.arange(elements.size), elements % 8 // 2] >> (elements % 2 * 16).astype(np.uint32) & 0xFFFF
        np.testing.assert_array_equal(dropout_torch.kept(elements, np.where), halves >= dropout_relu.DROP_BELOW)


def test_the_kept_share_is_that_of_the_threshold() -> None:
    n, p = 1_000_003, dropout_relu.DROPPED_SHARE
    dropped = float((philox.draws(np, n, dropout_relu.KEY) < dropout_relu.DROP_BELOW).mean())
    assert abs(dropped - p) < 6 * (p * (1 - p) / n) ** 0.5
    assert abs(p - 0.1) < 1e-5
