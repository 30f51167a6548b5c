"""Arrays from users: what holds no real numbers is refused with its name, never turned into something else."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np


def reals(name: str, values: Any) -> np.ndarray:
    """As contiguous doubles. TypeError for text, objects and complex numbers, whose parts would get lost."""
    return _taken(name, values, "biuf", np.dtype(np.float64), "real numbers")


def whole_numbers(name: str, values: Any) -> np.ndarray:
    """As contiguous int64. TypeError for fractions too."""
    return _taken(name, values, "iu", np.dtype(np.int64), "whole numbers")


def whole_number(name: str, value: Any) -> int:
    """One. TypeError for fractions and texts."""
    try:
        return index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, not {type(value).__name__}") from None


def is_complex(values: Any) -> bool:
    try:
        return np.iscomplexobj(values)
    except ValueError:  # rows of different lengths
        return False


def _taken(name: str, values: Any, kinds: str, wanted: np.dtype, what: str) -> np.ndarray:
    try:
        given = np.asarray(values)
    except ValueError:  # rows of different lengths
        raise TypeError(f"{name} must be an array of {what}, and its rows differ in length") from None
    if given.dtype.kind not in kinds and given.size > 0:
        raise TypeError(f"{name} must hold {what}, not {given.dtype}")
    return np.ascontiguousarray(given, dtype=wanted)
