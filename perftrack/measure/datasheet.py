"""Datasheet memory bandwidth by model: a fixed, sourced table, so that a percentage never moves by itself.

Source: NVIDIA's product datasheets of the models named. A model that is not in the table has no figure; it is
never computed from a clock, since drivers have reported bus widths that were later corrected.
"""

import re

VERSION = 1
"""Raised whenever an entry changes."""

_TB = 1e12

_MODELS: tuple[tuple[str, float], ...] = (
    (r"GH200.*144", 4.8 * _TB),  # HBM3e
    (r"GH200", 4.0 * _TB),  # 96 GB HBM3
    (r"H200", 4.8 * _TB),
    (r"H100 NVL", 3.9 * _TB),
    (r"H100 PCIe", 2.0 * _TB),
    (r"H100.*HBM3|H100 SXM", 3.35 * _TB),
    (r"A100.*PCIE.*80G|A100 80GB PCIe", 1.935 * _TB),
    (r"A100.*SXM.*80G", 2.039 * _TB),
    (r"A100.*40G", 1.555 * _TB),
    (r"V100.*(16|32)G", 0.9 * _TB),
    (r"L40S", 0.864 * _TB),
    (r"\bL4\b", 0.3 * _TB),
    (r"Tesla T4|\bT4\b", 0.32 * _TB),
)


def peak_bytes_per_s(name: str) -> float | None:
    """Datasheet bandwidth of the GPU that NVML or CUDA calls `name`; None where it is not known.

    A part of a card (MIG) has a share of its memory, so it has no figure either.
    """
    if "MIG" in name:
        return None
    return next((peak for pattern, peak in _MODELS if re.search(pattern, name, re.IGNORECASE)), None)
