"""Triangles that all but coincide: their rows are equal within rounding, and a block that holds both is singular.

Duplicates are found by their corners when a mesh is cleaned; a copy that was moved a little is not one of them.
"""

from __future__ import annotations

import numpy as np

from penstock.hmatrix._mesh import Mesh

_DIRECTIONS = np.array([[0.36, 0.48, 0.8], [-0.62, 0.71, 0.33], [0.81, -0.27, 0.52]])  # of no likely symmetry
_NEIGHBOURS = 4  # looked at along each direction
_SAME = 1e-5  # of the larger triangle's size: below it the rows of both differ by less than coarse tiers tell


def all_but_coincident(mesh: Mesh) -> tuple[int, int, float] | None:
    """The two triangles that are closest for their size, and their distance in metres; None where none are so close
    that they may be one. Along a direction such a pair is next to each other, but for a few others at most.
    """
    centroids, sizes = mesh.centroids, np.sqrt(mesh.areas)
    best: tuple[float, int, int, float] | None = None
    for direction in _DIRECTIONS:
        order = np.argsort(centroids @ direction)
        for step in range(1, min(_NEIGHBOURS, len(order) - 1) + 1):
            one, other = order[:-step], order[step:]
            distance = np.linalg.norm(centroids[one] - centroids[other], axis=1)
            relative = distance / np.maximum(sizes[one], sizes[other])
            at = int(np.argmin(relative))
            if best is None or relative[at] < best[0]:
                first, second = sorted((int(one[at]), int(other[at])))
                best = float(relative[at]), first, second, float(distance[at])
    return None if best is None or best[0] > _SAME else best[1:]
