"""The CUDA kernels compiled for the CPU, once a session."""

import pytest
from cuda_on_cpu import CpuKernels
from sources import SOURCES

from kernels import cuda_source


@pytest.fixture(scope="session")
def cpu_kernels(tmp_path_factory: pytest.TempPathFactory) -> CpuKernels:
    names = {source.text: tuple(source.registers) for source in SOURCES.values()}
    return CpuKernels(tmp_path_factory.mktemp("cuda_on_cpu"), names)


@pytest.fixture
def cuda_on_cpu(cpu_kernels: CpuKernels, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside, CUDA launches built from NumPy arrays run on the CPU."""
    monkeypatch.setattr(cuda_source, "compiled", cpu_kernels.compiled)
