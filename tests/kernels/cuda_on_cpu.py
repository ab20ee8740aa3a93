"""Kernels compiled for the CPU: the same CUDA C++ and the same launches, with NumPy arrays.

The compiler is the one in the `ziglang` package, so that no machine needs one of its own.
"""

import ctypes
import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

SHIM = Path(__file__).with_name("shim")
COMPILER = (sys.executable, "-m", "ziglang", "c++")
FLAGS = (
    *("-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-fno-strict-aliasing", "-ffp-contract=off"),
    *("-nostdinc++", "-nostdlib++", "-fno-exceptions", "-fno-rtti"),
)


class CpuKernels:
    """Stands for the CUDA compiler: `compiled(text, options, kernel)` is a callable like `cupy.RawKernel`."""

    def __init__(self, folder: Path, names: dict[str, tuple[str, ...]]) -> None:
        self.folder = folder
        self._names = names
        """Source text → its kernels."""
        self._libraries: dict[str, ctypes.CDLL] = {}

    def compiled(self, text: str, options: tuple[str, ...], kernel: str) -> "CpuKernel":
        key = hashlib.sha256("\n".join((*options, text)).encode()).hexdigest()[:16]
        if key not in self._libraries:
            self._libraries[key] = self._build(key, text, options)
        return CpuKernel(kernel, getattr(self._libraries[key], f"launch_{kernel}"))

    def _build(self, key: str, text: str, options: tuple[str, ...]) -> ctypes.CDLL:
        source, library = self.folder / f"{key}.cpp", self.folder / f"{key}.so"
        exports = "\n".join(f"EXPORT({name})" for name in self._names[text])
        source.write_text(f'#include "cuda_on_cpu.h"\n{text}\n{exports}\n')
        cache = str(Path(sys.prefix) / "zig-cache")
        subprocess.run(
            [*COMPILER, *FLAGS, *options, f"-I{SHIM}", str(source), "-o", str(library)],
            check=True,
            env={**os.environ, "ZIG_GLOBAL_CACHE_DIR": cache, "ZIG_LOCAL_CACHE_DIR": cache},
        )
        return ctypes.CDLL(str(library))


class Geometry(ctypes.Structure):
    """The shim's struct of that name."""

    _fields_ = (
        ("blocks", ctypes.c_uint),
        ("threads", ctypes.c_uint),
        ("cluster", ctypes.c_uint),
        ("shared_bytes", ctypes.c_ulong),
    )


class CpuKernel:
    """Called as a `cupy.RawKernel` is: `kernel(grid, block, args, shared_mem=…)`.

    A kernel whose name ends in `_cluster_N` runs in clusters of N blocks: on a GPU, its own code says so.
    """

    def __init__(self, name: str, function: Any) -> None:
        self.name = name
        self.max_dynamic_shared_size_bytes = 48 * 1024
        self._function = function
        found = re.search(r"_cluster_(\d+)$", name)
        self._cluster = int(found[1]) if found else 1

    def __call__(
        self, grid: tuple[int, ...], block: tuple[int, ...], args: tuple[Any, ...], *, shared_mem: int = 0
    ) -> None:
        values = [np.array(a.ctypes.data, np.uint64) if isinstance(a, np.ndarray) else np.array(a) for a in args]
        pointers = (ctypes.c_void_p * len(values))(*(value.ctypes.data for value in values))
        sizes = (ctypes.c_int * len(values))(*(value.itemsize for value in values))
        (blocks,), (threads,) = grid, block
        assert 0 < threads <= 1024
        assert 0 < blocks < 2**31
        assert blocks % self._cluster == 0
        assert shared_mem <= self.max_dynamic_shared_size_bytes
        geometry = Geometry(blocks, threads, self._cluster, shared_mem)
        ended = self._function(ctypes.byref(geometry), pointers, sizes, len(values))
        assert ended != -1, f"{self.name}: arguments are not as the kernel declares them"
        assert ended != 2, f"{self.name}: a thread writes beyond the block's dynamic shared memory"
        assert ended == 0, f"{self.name}: a thread waits at a barrier that others never reach"
