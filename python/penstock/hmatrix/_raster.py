"""Triangles to pixels by a depth buffer, in NumPy: which triangle is seen at each pixel, and how far away it is.

A hundred thousand triangles take a second or two, and what hides what is exact at every pixel, also where triangles are
large or cross. Coordinates are those of the picture: x to the right, y downwards, in pixels; pixel (i, j) is seen at
(j + 0.5, i + 0.5).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_AT_ONCE = 1_000_000  # rows of triangles, and about as many pixels
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
    first = np.clip(np.ceil(corners[:, :, 1].min(axis=1) - 0.5), 0, height).astype(np.int64)
    last = np.clip(np.ceil(corners[:, :, 1].max(axis=1) - 0.5), 0, height).astype(np.int64)
    drawn = np.flatnonzero((last > first) & (doubled_area(corners) != 0))
    cost = np.cumsum((last - first)[drawn] * (1 + np.ptp(corners[drawn, :, 0], axis=1) / 2))
    begin = 0
    while begin < len(drawn):
        passed = cost[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(cost, passed + _AT_ONCE)))
        some = drawn[begin:end]
        which, row = _runs(first[some], (last - first)[some])
        left, right = _crossings(corners[some][which], row + 0.5, width)
        spot, column = _runs(left, right - left)
        which, row = which[spot], row[spot]
        near = _nearness(corners[some], nearness[some], which, column + 0.5, row + 0.5)
        place = row * width + column
        order = np.argsort(near, kind="stable")  # where several meet in a pixel, the nearest is assigned last and stays
        order = order[near[order] > best[place[order]]]
        best[place[order]] = near[order]
        triangle[place[order]] = some[which[order]]
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


def _runs(first: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All numbers of runs: which run, and the number; run i is first[i], first[i] + 1, ... of counts[i]."""
    which = np.repeat(np.arange(len(first)), counts)
    return which, np.arange(len(which)) + np.repeat(first - np.cumsum(counts) + counts, counts)


def _crossings(corners: np.ndarray, height: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns from and to of each triangle (k, 3, 2) at a height of its own, (k,): pixels whose middle is inside."""
    left, right = np.full(len(height), np.inf), np.full(len(height), -np.inf)
    for i in range(3):
        a, b = corners[:, i], corners[:, (i + 1) % 3]
        crosses = (a[:, 1] <= height) != (b[:, 1] <= height)
        rise = np.where(crosses, b[:, 1] - a[:, 1], 1)
        at = a[:, 0] + (height - a[:, 1]) / rise * (b[:, 0] - a[:, 0])
        left = np.where(crosses, np.minimum(left, at), left)
        right = np.where(crosses, np.maximum(right, at), right)
    columns = (np.clip(np.ceil(bound - 0.5), 0, width).astype(np.int64) for bound in (left, right))
    begin, end = columns
    return begin, np.maximum(begin, end)


def _nearness(corners: np.ndarray, nearness: np.ndarray, which: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """At points of the triangles `which`, (k,): the plane through their corners, no further than these."""
    b, c = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    rise_b, rise_c = nearness[:, 1] - nearness[:, 0], nearness[:, 2] - nearness[:, 0]
    area = doubled_area(corners)
    slope_x = (rise_b * c[:, 1] - rise_c * b[:, 1]) / area
    slope_y = (rise_c * b[:, 0] - rise_b * c[:, 0]) / area
    level = nearness[:, 0] - slope_x * corners[:, 0, 0] - slope_y * corners[:, 0, 1]
    found = level[which] + slope_x[which] * x + slope_y[which] * y
    return np.clip(found, nearness.min(axis=1)[which], nearness.max(axis=1)[which]).astype(np.float32)
