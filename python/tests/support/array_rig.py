"""Arrays of known content, on a device; and arrays that other libraries would give."""

from __future__ import annotations

from typing import Any

import numpy as np

import penstock
from penstock import Array


def filled(context: penstock.Context, content: np.ndarray) -> Array:
    array = Array(context.allocate(max(1, content.nbytes)), content.dtype, content.shape)
    if content.nbytes:
        context.copy_to_device(array.as_bytes(), content.tobytes())
    return array


class OnlyDLPack:
    """What a library gives that NumPy knows nothing of."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.values.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.values.__dlpack_device__()
