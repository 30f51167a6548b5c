"""Triangles to pixels by a depth buffer, in NumPy: which triangle is seen at each pixel, and how far away it is.

A hundred thousand triangles take a second or two, and what hides what is exact at every pixel, also where triangles are
large or cross. Coordinates are those of the picture: x to the right, y downwards, in pixels; pixel (i, j) is seen at
(j + 0.5, i + 0.5).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_AT_ONCE = 2_000_000  # pixels of boxes around triangles
NOTHING = -1


@dataclass(frozen=True)
class Seen:
    """Of each pixel, (height, width).

    Attributes:
        triangle: its number; NOTHING where there is none.
        nearness: larger is nearer; 0 where there is no triangle.
    """

    triangle: np.ndarray
    nearness: np.ndarray


def look(corners: np.ndarray, nearness: np.ndarray, size: tuple[int, int]) -> Seen:
    """`corners`: (m, 3, 2); `nearness` of each corner, (m, 3), above 0 and linear over the picture; `size`: width and
    height."""
    width, height = size
    triangle = np.full(width * height, NOTHING, np.int64)
    best = np.zeros(width * height, np.float32)
    boxes = _boxes(corners, size)
    wide, high = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
    wanted = np.flatnonzero((wide > 0) & (high > 0) & (np.abs(doubled_area(corners)) > 0))
    pixels = np.cumsum(wide[wanted] * high[wanted])
    begin = 0
    while begin < len(wanted):
        passed = pixels[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(pixels, passed + _AT_ONCE)))
        some = wanted[begin:end]
        _draw(some, corners[some], nearness[some], boxes[some], (width, triangle, best))
        begin = end
    return Seen(triangle.reshape(height, width), best.reshape(height, width))


def shares(corners: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Of each point `at` (k, 2) in its triangle `corners` (k, 3, 2): the weights of the corners, (k, 3)."""
    found = np.empty((len(at), 3))
    for i in range(3):
        a, b = corners[:, (i + 1) % 3], corners[:, (i + 2) % 3]
        found[:, i] = _cross(b - a, at - a)
    return found / doubled_area(corners)[:, None]


def doubled_area(corners: np.ndarray) -> np.ndarray:
    """With a sign that tells which way round the corners stand."""
    return _cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]


def _boxes(corners: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Pixels whose middles may lie inside: columns from, rows from, columns to, rows to."""
    low = np.ceil(corners.min(axis=1) - 0.5)
    high = np.floor(corners.max(axis=1) - 0.5) + 1
    limit = np.array(size)
    return np.concatenate([np.clip(low, 0, limit), np.clip(high, 0, limit)], axis=1).astype(np.int64)


def _draw(
    numbers: np.ndarray,
    corners: np.ndarray,
    nearness: np.ndarray,
    boxes: np.ndarray,
    onto: tuple[int, np.ndarray, np.ndarray],
) -> None:
    width, triangle, best = onto
    wide = boxes[:, 2] - boxes[:, 0]
    counts = wide * (boxes[:, 3] - boxes[:, 1])
    which = np.repeat(np.arange(len(numbers)), counts)
    within = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
    column = boxes[which, 0] + within % wide[which]
    row = boxes[which, 1] + within // wide[which]
    weights = shares(corners[which], np.stack([column + 0.5, row + 0.5], axis=1))
    inside = (weights >= 0).all(axis=1)
    which, place = which[inside], (row * width + column)[inside]
    near = (weights[inside] * nearness[which]).sum(axis=1).astype(np.float32)
    order = np.argsort(near, kind="stable")  # where several meet in a pixel, the nearest is assigned last and stays
    order = order[near[order] > best[place[order]]]
    best[place[order]] = near[order]
    triangle[place[order]] = numbers[which[order]]
