"""Element types by name; bfloat16 is NumPy's only where `ml_dtypes` is imported, which traffic models do without."""

from typing import Any

import numpy as np

_BFLOAT16 = "bfloat16"


def element_bytes(dtype: str) -> int:
    """Bytes of one element."""
    return 2 if dtype == _BFLOAT16 else np.dtype(dtype).itemsize


def dtype_of(name: Any) -> np.dtype[Any]:
    """NumPy's dtype of that name."""
    if name == _BFLOAT16:
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)
