"""Every CUDA source compiles for three generations of cards, within its register budgets and without a spill."""

import io
import re

import pytest
from cuda.core import Program, ProgramOptions
from cuda.pathfinder import find_nvidia_header_directory
from sources import SOURCES

from kernels.cuda_source import Source, compile_options


def compile_log(source: Source, dtype: str, arch: str) -> str:
    standard, define = compile_options(dtype)
    options = ProgramOptions(
        std=standard.removeprefix("-std="),
        arch=arch,
        include_path=[find_nvidia_header_directory("cudart")],
        define_macro=[tuple(define.removeprefix("-D").split("="))],
        ptxas_options="-v",
    )
    log = io.StringIO()
    Program(source.text, "c++", options).compile("cubin", logs=log)
    return log.getvalue()


def resources(log: str) -> dict[str, dict[str, int]]:
    """Kernel → registers, and bytes of stack and spills, from what the assembler reports."""
    found: dict[str, dict[str, int]] = {}
    current: dict[str, int] = {}
    for line in log.splitlines():
        if entry := re.search(r"Compiling entry function '(\w+)'", line):
            current = found.setdefault(entry[1], {})
        elif memory := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
            current["stack"], current["spilled"] = int(memory[1]), int(memory[2]) + int(memory[3])
        elif used := re.search(r"Used (\d+) registers", line):
            current["registers"] = int(used[1])
    return found


CHOSEN = {"sm_80": ("float32",), "sm_90": ("float16", "bfloat16"), "sm_100": ("bfloat16",)}
"""Every type and every generation, but not every pair, which would take minutes; 16-bit types need more registers."""


def dtypes_for(source: Source, arch: str) -> tuple[str, ...]:
    return tuple(dtype for dtype in CHOSEN[arch] if dtype in source.dtypes) or source.dtypes[:1]


@pytest.mark.parametrize(
    ("name", "dtype", "arch"),
    [(name, dtype, arch) for name, source in SOURCES.items() for arch in CHOSEN for dtype in dtypes_for(source, arch)],
)
def test_source_compiles_within_its_register_budgets(name: str, dtype: str, arch: str) -> None:
    source = SOURCES[name]
    log = compile_log(source, dtype, arch)
    assert "warning" not in log
    found = resources(log)
    assert set(found) == set(source.registers), "a kernel without a budget, or a budget without a kernel"
    for kernel, used in found.items():
        assert used["spilled"] == 0, kernel
        assert used["stack"] == 0, kernel
        assert used["registers"] <= source.registers[kernel], kernel
