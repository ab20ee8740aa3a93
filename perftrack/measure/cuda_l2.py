"""The part of the L2 cache that code may set aside for lines that persist.

Nothing else evicts these, so what one case has left there would be missing to the next, or make it look fast.
"""

import ctypes

import cupy as cp

_PERSISTING_L2_BYTES = 6
"""`cudaLimitPersistingL2CacheSize`, for which CuPy has no name."""


def forget_persisting() -> str:
    """Set no part of the cache aside, and make the lines that persist normal again; why it cannot be done, or empty.

    Needs the process's CUDA context. A card without such a part, or one shared through MIG or MPS, says so here.
    """
    runtime = cp.cuda.runtime
    try:
        runtime.deviceSetLimit(_PERSISTING_L2_BYTES, 0)
        left = int(runtime.deviceGetLimit(_PERSISTING_L2_BYTES))
    except runtime.CUDARuntimeError as error:
        return str(error)
    if left:
        return f"{left} bytes stay set aside"
    return _reset_lines()


def _reset_lines() -> str:
    # CuPy does not bind this call; the library is the one that the context was made by
    try:
        code = ctypes.CDLL("libcuda.so.1").cuCtxResetPersistingL2Cache()
    except (OSError, AttributeError) as error:
        return str(error)
    return f"cuCtxResetPersistingL2Cache gives error {code}" if code else ""
