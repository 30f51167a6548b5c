"""Arrays as another library's, without a copy."""

from __future__ import annotations

import sys
from typing import Any

from penstock._arrays.array import Array


def as_like(array: Any, like: Any) -> Any:
    """The array as one of the library that `like` is an array of (NumPy, CuPy, PyTorch, JAX, or any with DLPack).
    None: itself; so are Python objects, which NumPy alone has. Raises TypeError when that library cannot take it where
    it lies."""
    if like is None or isinstance(like, Array) or not isinstance(array, Array):
        return array
    root = type(like).__module__.partition(".")[0]
    if root == "numpy":
        return sys.modules["numpy"].asarray(array)
    if root.startswith("jax"):
        return sys.modules["jax"].dlpack.from_dlpack(array)
    library = like.__array_namespace__() if hasattr(like, "__array_namespace__") else sys.modules.get(root)
    if not hasattr(library, "from_dlpack"):
        raise TypeError(f"like= takes an array of NumPy, CuPy, PyTorch or JAX, not {type(like).__name__}")
    return library.from_dlpack(array)
