"""Numbers of an array, each once, without np.unique: its first call imports numpy.ma, which takes some 8 ms, more than
a first read. A child that was forked meanwhile would wait for that import for ever."""

from __future__ import annotations

import numpy as np


def distinct(numbers: np.ndarray) -> np.ndarray:
    """In ascending order. `numbers`: of one dimension."""
    return first_of_each(numbers)[0]


def first_of_each(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As distinct(), and the place of each where it stands first."""
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    is_first = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first], order[is_first]
