"""One layer of Llama while a text is being written: a new token for each of some sequences, against cached keys.

Formula (Touvron et al., 2023): h = x + attention(rms(x)) w_oᵀ and out = h + (silu(y w_gateᵀ) · (y w_upᵀ)) w_downᵀ with
y = rms(h); queries and keys are rotated by their position (RoFormer: Su et al., 2021), the new key and value go into
the caches, and attention is over the cached positions and the new one. Weights are stored as [out, in].
Traffic in bytes: weights and caches once, in every variant; what else the steps move is small beside them, and left
out. With one token the layer is as fast as its weights can be read; launching the steps one by one takes longer.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from kernels import attention_decode, rmsnorm, silu_mul
from kernels.attention import HALVES
from kernels.cuda_source import FLAT_THREADS, Source, checked, packs_in_row
from kernels.dtypes import element_bytes
from kernels.gemm_bias_mask_relu import EPILOGUE
from kernels.launch import KernelCall, Launch, Step, array_module, captured, launch
from kernels.product import joined, product

HEAD_DIM = 128
ROTATION_BASE = 10000.0

SOURCE = Source(
    ("row.cuh", "decoder_layer.cu"),
    registers={"norm_qkv_rotate": 80, "project_add": 64, "norm_gate": 80, "rotate_store": 40},
    dtypes=HALVES,
)
WARPS = 8


class Model(NamedTuple):
    """Sizes of a layer; a head has HEAD_DIM elements."""

    hidden: int
    inner: int

    @property
    def heads(self) -> int:
        """Heads of attention."""
        return self.hidden // HEAD_DIM


MODELS = {"llama-2-7b": Model(4096, 11008), "tiny": Model(256, 384)}


class Layer(NamedTuple):
    """The inputs."""

    x: Any
    """[tokens, hidden]: the newest token of every sequence."""
    past_keys: Any
    """[tokens, heads, past, HEAD_DIM]"""
    past_values: Any
    norm_in: Any
    w_q: Any
    w_k: Any
    w_v: Any
    w_o: Any
    norm_out: Any
    w_gate: Any
    """[inner, hidden], as w_up; w_down is [hidden, inner], the others [hidden, hidden]."""
    w_up: Any
    w_down: Any


class Caches(NamedTuple):
    """Keys and values of all positions, the last of which is the new token's."""

    keys: Any
    values: Any
    queries: Any
    """[tokens, heads, 1, HEAD_DIM]"""

    @property
    def position(self) -> int:
        """Of the new token."""
        return self.keys.shape[2] - 1

    @property
    def written(self) -> tuple[Any, Any, Any]:
        """What a kernel that makes queries, keys and values writes."""
        return self.queries, self.keys, self.values

    @property
    def sizes(self) -> tuple[Any, ...]:
        """The same kernel's arguments: heads, half of the head dimension, position, positions there is room for."""
        heads, room = self.keys.shape[1:3]
        return np.int32(heads), np.int32(HEAD_DIM // 2), np.int32(self.position), np.int32(room)

    @property
    def newest(self) -> tuple[Any, Any]:
        """The new token's key and value, in the caches."""
        return self.keys[:, :, -1], self.values[:, :, -1]


Multiply = Callable[[Any, Any, Any], Step]
"""(x, w, out) → the step out = x wᵀ"""


def unfused(*inputs: Any, **_: object) -> tuple[Launch, tuple[Any, ...]]:
    """One library call a step."""
    return _step_by_step(Layer(*inputs), _matmul)


def graph(*inputs: Any, **_: object) -> tuple[Launch, tuple[Any, ...]]:
    """The same steps as one CUDA graph, the products from cuBLASLt: CuPy refuses its own in a capture."""
    return _captured(_step_by_step(Layer(*inputs), _product))


def fused(*inputs: Any, **_: object) -> tuple[Launch, tuple[Any, ...]]:
    """Kernels of our own for one token; for more, products with what stands between them fused."""
    layer = Layer(*inputs)
    return _one_token(layer) if layer.x.shape[0] == 1 else _many_tokens(layer)


def fused_graph(*inputs: Any, **_: object) -> tuple[Launch, tuple[Any, ...]]:
    """The same kernels as one CUDA graph."""
    return _captured(fused(*inputs))


def _captured(built: tuple[Launch, tuple[Any, ...]]) -> tuple[Launch, tuple[Any, ...]]:
    import cupy

    made, outputs = built

    # some reductions of CuPy take memory while they run: the graph keeps a pool of its own, which nobody else draws on
    pool = cupy.cuda.MemoryPool()
    with cupy.cuda.using_allocator(pool.malloc):
        replay = captured(made)
    return Launch((partial(_keep, replay, pool),), replay.kernels, replay.source), outputs


def _keep(replay: Launch, _pool: Any) -> None:
    replay()


def _matmul(x: Any, w: Any, out: Any) -> Step:
    return partial(array_module(x).matmul, x, w.T, out=out)


def _product(x: Any, w: Any, out: Any) -> Step:
    return product(x, w, out, transposed=True)


def _step_by_step(layer: Layer, multiply: Multiply) -> tuple[Launch, tuple[Any, ...]]:
    xp, caches = array_module(layer.x), _caches(layer)
    q, k, v, projected, h, ffn, out = (xp.empty_like(layer.x) for _ in range(7))
    gates, ups = (xp.empty((layer.x.shape[0], layer.w_up.shape[0]), layer.x.dtype) for _ in range(2))
    normalise, y = rmsnorm.unfused(layer.x, layer.norm_in)
    attend, attended = _attend(caches)
    normalise_again, z = rmsnorm.unfused(h, layer.norm_out)
    gate, gated = silu_mul.unfused(gates, ups)
    parts = (
        normalise,
        *(multiply(y, w, to) for w, to in ((layer.w_q, q), (layer.w_k, k), (layer.w_v, v))),
        *_rotate(_by_head(q), caches.queries[:, :, 0], caches.position),
        *_rotate(_by_head(k), caches.newest[0], caches.position),
        partial(xp.copyto, caches.newest[1], _by_head(v)),
        attend,
        multiply(attended.reshape(layer.x.shape), layer.w_o, projected),
        partial(xp.add, layer.x, projected, out=h),
        normalise_again,
        multiply(z, layer.w_gate, gates),
        multiply(z, layer.w_up, ups),
        gate,
        multiply(gated, layer.w_down, ffn),
        partial(xp.add, h, ffn, out=out),
    )
    return joined(*parts), (out, *caches.newest)


def _rotate(source: Any, to: Any, position: int) -> tuple[Step, ...]:
    xp, half = array_module(source), HEAD_DIM // 2
    cosine, sine = (xp.asarray(part).astype(source.dtype) for part in _rotation(position))
    low, high = source[..., :half], source[..., half:]
    t = xp.empty(low.shape, low.dtype)
    return (
        partial(xp.multiply, low, cosine, out=to[..., :half]),
        partial(xp.multiply, high, sine, out=t),
        partial(xp.subtract, to[..., :half], t, out=to[..., :half]),
        partial(xp.multiply, high, cosine, out=to[..., half:]),
        partial(xp.multiply, low, sine, out=t),
        partial(xp.add, to[..., half:], t, out=to[..., half:]),
    )


def _attend(caches: Caches) -> tuple[Launch, Any]:
    return attention_decode.unfused(caches.queries, caches.keys, caches.values)


def _one_token(layer: Layer) -> tuple[Launch, tuple[Any, ...]]:
    """Products with a vector, each with all that stands before and behind it; attention is the only other kernel."""
    xp, caches = array_module(layer.x), _caches(layer)
    attended, h, out = (xp.empty_like(layer.x) for _ in range(3))
    gated = xp.empty((1, layer.w_up.shape[0]), layer.x.dtype)
    rotation, epsilon = _on_device(layer.x, caches.position), np.float32(rmsnorm.EPSILON)
    arrays = (layer.x, layer.norm_in, layer.w_q, layer.w_k, layer.w_v, rotation, *caches.written)
    outputs = 3 * layer.x.shape[1] // 2  # a warp computes two of each
    return launch(
        _by_warp("norm_qkv_rotate", layer.x, outputs, arrays, *caches.sizes, epsilon),
        *attention_decode.calls(
            caches.queries, caches.keys, caches.values, attended.reshape(caches.queries.shape), keys=caches.position + 1
        ),
        _project_add(attended, layer.w_o, layer.x, h),
        _by_warp(
            "norm_gate",
            layer.x,
            layer.w_up.shape[0],
            (h, layer.norm_out, layer.w_gate, layer.w_up, gated),
            np.int32(layer.w_up.shape[0]),
            epsilon,
        ),
        _project_add(gated, layer.w_down, h, out),
    ), (out, *caches.newest)


def _project_add(x: Any, w: Any, residual: Any, out: Any) -> KernelCall:
    return _by_warp("project_add", x, w.shape[0], (x, w, residual, out), np.int32(w.shape[0]))


def _by_warp(kernel: str, x: Any, warps: int, arrays: tuple[Any, ...], *scalars: Any) -> KernelCall:
    """A kernel of decoder_layer.cu with `warps` warps: arguments are arrays, packs of x, scalars."""
    dtype = checked(*arrays)
    args = (*arrays, np.int32(packs_in_row(x.shape[1], dtype)), *scalars)
    return SOURCE.bind(kernel, dtype, -(-warps // WARPS), 32 * WARPS, args)


def _many_tokens(layer: Layer) -> tuple[Launch, tuple[Any, ...]]:
    """Five products; the residuals are added in two of them, and one kernel stands between any two."""
    xp, caches = array_module(layer.x), _caches(layer)
    tokens, inner = layer.x.shape[0], layer.w_up.shape[0]
    attended, h, out = (xp.empty_like(layer.x) for _ in range(3))
    qkv, both = (xp.empty((tokens, cols), layer.x.dtype) for cols in (3 * layer.x.shape[1], 2 * inner))
    gated = xp.empty((tokens, inner), layer.x.dtype)
    normalise, y = rmsnorm.fused(layer.x, layer.norm_in)
    normalise_again, z = rmsnorm.fused(h, layer.norm_out)
    attention = attention_decode.calls(
        caches.queries, caches.keys, caches.values, attended.reshape(caches.queries.shape), keys=caches.position + 1
    )
    return joined(
        normalise,
        _product(y, xp.concatenate([layer.w_q, layer.w_k, layer.w_v]), qkv),
        _rotate_store(qkv, tokens, caches),
        *attention,
        product(attended, layer.w_o, h, transposed=True, add=layer.x),
        normalise_again,
        _product(z, xp.concatenate([layer.w_gate, layer.w_up]), both),
        EPILOGUE.matrix("swiglu", gated.shape, (both, gated)),
        product(gated, layer.w_down, out, transposed=True, add=h),
    ), (out, *caches.newest)


def _rotate_store(qkv: Any, tokens: int, caches: Caches) -> KernelCall:
    arrays = (qkv, _on_device(qkv, caches.position), *caches.written)
    dtype = checked(*arrays)
    packs = packs_in_row(qkv.shape[1] // 2, dtype) * tokens  # a thread has two of them
    args = (*arrays, np.int32(tokens), *caches.sizes)
    return SOURCE.bind("rotate_store", dtype, -(-packs // FLAT_THREADS), FLAT_THREADS, args)


def _caches(layer: Layer) -> Caches:
    """Caches of the layer's own, with room for one position more than the past has."""
    xp, (tokens, heads, past, dim) = array_module(layer.x), layer.past_keys.shape
    keys, values = (xp.empty((tokens, heads, past + 1, dim), layer.x.dtype) for _ in range(2))
    keys[:, :, :past], values[:, :, :past] = layer.past_keys, layer.past_values
    return Caches(keys, values, xp.empty((tokens, heads, 1, dim), layer.x.dtype))


def _by_head(x: Any) -> Any:
    return x.reshape(x.shape[0], -1, HEAD_DIM)


def _rotation(position: int) -> tuple[Any, Any]:
    """Cosines and sines of the angles at a position, float64 on the host."""
    pairs = np.arange(HEAD_DIM // 2) / (HEAD_DIM // 2)
    angles = position * ROTATION_BASE**-pairs
    return np.cos(angles), np.sin(angles)


def _on_device(like: Any, position: int) -> Any:
    return array_module(like).asarray(np.concatenate(_rotation(position)).astype(np.float32))


def reference(*inputs: Any, **_: object) -> tuple[Any, ...]:
    """The right answer, from float64 inputs."""
    layer = Layer(*inputs)
    xp, position = array_module(layer.x), layer.past_keys.shape[2]
    y = rmsnorm.reference(layer.x, layer.norm_in)
    q, k, v = (_by_head(y @ w.T) for w in (layer.w_q, layer.w_k, layer.w_v))
    q, k = (_rotated(xp, vectors, position) for vectors in (q, k))
    keys = xp.concatenate([layer.past_keys, k[:, :, None]], axis=2)
    values = xp.concatenate([layer.past_values, v[:, :, None]], axis=2)
    attended = attention_decode.reference(q[:, :, None], keys, values).reshape(layer.x.shape)
    h = layer.x + attended @ layer.w_o.T
    z = rmsnorm.reference(h, layer.norm_out)
    return h + silu_mul.reference(z @ layer.w_gate.T, z @ layer.w_up.T) @ layer.w_down.T, k, v


def _rotated(xp: Any, vectors: Any, position: int) -> Any:
    cosine, sine = (xp.asarray(part) for part in _rotation(position))
    low, high = vectors[..., : HEAD_DIM // 2], vectors[..., HEAD_DIM // 2 :]
    return xp.concatenate([low * cosine - high * sine, high * cosine + low * sine], axis=-1)


def traffic(*, dtype: str, model: str, tokens: int, past: int) -> dict[str, Any]:
    """Bytes and operations of one call."""
    size, (hidden, inner) = element_bytes(dtype), MODELS[model]
    weights = 4 * hidden * hidden + 3 * hidden * inner
    caches, vectors = 2 * tokens * past * hidden, tokens * hidden
    reads, writes = (weights + 2 * hidden + caches + vectors) * size, 3 * vectors * size
    variants = ("unfused", "graph", "fused", "fused_graph")
    return {
        "reads": reads,
        "writes": writes,
        "moved": dict.fromkeys(variants, reads + writes),
        "flops": 2 * tokens * weights + 4 * tokens * (past + 1) * hidden,
    }
