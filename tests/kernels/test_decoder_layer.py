"""A layer of a decoder: every variant on the CPU against the float64 reference, and what it counts as traffic."""

from typing import Any

import numpy as np
import pytest
from agreement import Normal, assert_close, run

from kernels import attention_decode, decoder_layer, rmsnorm, silu_mul

HIDDEN, INNER = decoder_layer.MODELS["tiny"]
HEADS = HIDDEN // decoder_layer.HEAD_DIM


def inputs_of(dtype: str, tokens: int, past: int) -> tuple[Any, ...]:
    normal, cached = Normal(dtype), (tokens, HEADS, past, decoder_layer.HEAD_DIM)
    return (
        *(normal(tokens, HIDDEN), normal(*cached), normal(*cached)),
        *(normal(HIDDEN, scale=0.1, shift=1), *(normal(HIDDEN, HIDDEN, scale=1 / 16) for _ in range(4))),
        *(normal(HIDDEN, scale=0.1, shift=1), *(normal(INNER, HIDDEN, scale=1 / 16) for _ in range(2))),
        normal(HIDDEN, INNER, scale=1 / 20),
    )


def steps_of_graph(*inputs: Any, **_: object) -> Any:
    """What `graph` captures: where there is no GPU, there are no graphs."""
    return decoder_layer._step_by_step(decoder_layer.Layer(*inputs), decoder_layer._product)


BUILDS = {"unfused": decoder_layer.unfused, "graph": steps_of_graph, "fused": decoder_layer.fused}


@pytest.mark.parametrize(("tokens", "past"), [(1, 300), (1, 7), (3, 129)])
@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.usefixtures("cuda_on_cpu")
def test_every_variant_agrees_with_the_reference(tokens: int, past: int, build: str) -> None:
    inputs = inputs_of("float16", tokens, past)
    outputs = run(BUILDS[build], inputs)
    right = decoder_layer.reference(*(array.astype(np.float64) for array in inputs))
    assert [array.shape for array in outputs] == [(tokens, HIDDEN), *[(tokens, HEADS, decoder_layer.HEAD_DIM)] * 2]
    for output, reference in zip(outputs, right, strict=True):
        assert_close(output, reference, 2)


def test_the_reference_is_the_formula_with_rotation_by_complex_numbers() -> None:
    layer = decoder_layer.Layer(*inputs_of("float64", 2, 5))
    half = decoder_layer.HEAD_DIM // 2
    turn = np.exp(1j * 5 * 10000.0 ** (-np.arange(half) / half))

    def by_head(x: Any) -> Any:
        return x.reshape(2, HEADS, decoder_layer.HEAD_DIM)

    def rotated(x: Any) -> Any:
        turned = (by_head(x)[..., :half] + 1j * by_head(x)[..., half:]) * turn
        return np.concatenate([turned.real, turned.imag], axis=-1)

    y = rmsnorm.reference(layer.x, layer.norm_in)
    k, v = rotated(y @ layer.w_k.T), by_head(y @ layer.w_v.T)
    keys, values = (
        np.concatenate(pair, axis=2) for pair in ((layer.past_keys, k[:, :, None]), (layer.past_values, v[:, :, None]))
    )
    attended = attention_decode.reference(rotated(y @ layer.w_q.T)[:, :, None], keys, values)
    h = layer.x + attended.reshape(2, HIDDEN) @ layer.w_o.T
    z = rmsnorm.reference(h, layer.norm_out)
    right = h + silu_mul.reference(z @ layer.w_gate.T, z @ layer.w_up.T) @ layer.w_down.T
    for found, expected in zip(decoder_layer.reference(*layer), (right, k, v), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.usefixtures("cuda_on_cpu")
def test_how_many_launches_a_layer_takes() -> None:
    one, many = inputs_of("float16", 1, 300), inputs_of("float16", 3, 300)
    assert len(decoder_layer.unfused(*one)[0].steps) == 47
    kernels = [use[0].name for use in decoder_layer.fused(*one)[0].kernels]
    assert kernels == ["norm_qkv_rotate", "decode_128", "combine", "project_add", "norm_gate", "project_add"]
    assert len(decoder_layer.fused(*many)[0].steps) == 10, "four products, and six kernels"


def test_traffic_of_a_layer() -> None:
    # hidden 256, inner 384: 4 x 256 x 256 + 3 x 256 x 384 weights; 3 tokens, 9 cached keys and values each
    weights = 262_144 + 294_912
    counts = decoder_layer.traffic(dtype="float16", model="tiny", tokens=3, past=9)
    assert counts["reads"] == 2 * (weights + 2 * 256 + 2 * 3 * 9 * 256 + 3 * 256)
    assert counts["writes"] == 2 * 3 * 3 * 256
    assert set(counts["moved"].values()) == {counts["reads"] + counts["writes"]}
    assert counts["flops"] == 2 * 3 * weights + 4 * 3 * 10 * 256
