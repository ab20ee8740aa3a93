"""The environment of a child that imports tracked code: an allow-list, without tokens, database URL or Ray settings."""

import hashlib
import importlib.metadata
import os
import platform
import site
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

_PASSED = ("PATH", "LD_LIBRARY_PATH", "CUDA_PATH", "CUDA_HOME", "LANG", "TZ")
_PASSED_PREFIX = "NVIDIA_"
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
_COMPILERS = ("cupy-cuda12x", "cupy-cuda13x", "numba", "torch", "triton")


def import_path(environ: Mapping[str, str]) -> str:
    """A PYTHONPATH with which a `-P -s` Python imports perftrack and its dependencies from where this one does."""
    entries = [entry for entry in environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    home = str(Path(__file__).resolve().parents[2])
    if home not in entries and home not in site.getsitepackages():
        entries.append(home)
    return os.pathsep.join(entries)


def child_environment(
    environ: Mapping[str, str], *, scratch: Path, caches: Path, cores: int, gpu: bool
) -> dict[str, str]:
    """What a child may see of `environ` (its parent's), with folders, caches and threads of its own."""
    passed = {key: value for key, value in environ.items() if key in _PASSED or key.startswith(_PASSED_PREFIX)}
    return {
        **passed,
        **dict.fromkeys(_THREADS, str(cores)),  # Ray sets OMP_NUM_THREADS=1
        "CUDA_VISIBLE_DEVICES": environ.get("CUDA_VISIBLE_DEVICES", "") if gpu else "",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "PYTHONPATH": import_path(environ),
        "PYTHONDONTWRITEBYTECODE": "1",  # the trees are shared and must stay what they are
        "PYTHONUTF8": "1",
        "HOME": str(scratch),
        "TMPDIR": str(scratch),
        "CUPY_CACHE_DIR": str(caches / "cupy"),
        "NUMBA_CACHE_DIR": str(caches / "numba"),
        "CUDA_CACHE_PATH": str(caches / "cuda"),
        "TRITON_CACHE_DIR": str(caches / "triton"),
        "TORCHINDUCTOR_CACHE_DIR": str(caches / "inductor"),
    }


def cache_key(trees: Iterable[str]) -> str:
    """Name of the kernel caches of these trees under these versions: compiled code is shared by nobody else."""
    versions = [f"python {platform.python_version()} {sys.platform}"]
    for name in _COMPILERS:
        try:
            versions.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return hashlib.sha256("\n".join([*sorted(trees), *versions]).encode()).hexdigest()[:32]
