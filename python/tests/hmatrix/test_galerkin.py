"""How good the quadrature of kernel="galerkin" is, as docs/applications/hmatrix.md says it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import penstock as ps

H = ps.hmatrix
EDGE = np.array([[0, 0, 0], [1, 0, 0], [0.5, 3**0.5 / 2, 0]])
RIGHT = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0.0]])
THIN = np.array([[0, 0, 0], [1, 0, 0], [0.3, 0.2, 0]])
NODES = 30  # of the reference, in each of four directions: good to 1e-12 where triangles are 1.5 edges apart


def entries(folder: Path, *triangles: np.ndarray) -> np.ndarray:
    """Of all of them, by Galerkin."""
    corners = np.arange(3 * len(triangles)).reshape(-1, 3)
    mesh = H.Mesh(np.concatenate(triangles), corners)
    with H.assemble(mesh, store=folder / "g.hmat", kernel="galerkin", encoding="fp64", eps=1e-12) as matrix:
        return matrix @ np.eye(len(triangles))


def points_of(triangle: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre points of a square that is folded to the triangle, and weights in square metres."""
    x, w = np.polynomial.legendre.leggauss(NODES)
    u, v = (part.ravel()[:, None] for part in np.meshgrid((x + 1) / 2, (x + 1) / 2, indexing="ij"))
    a, b = triangle[1] - triangle[0], triangle[2] - triangle[0]
    weights = np.outer(w, w).ravel() / 4 * (1 - u[:, 0]) * np.linalg.norm(np.cross(a, b))
    return triangle[0] + u * a + v * (1 - u) * b, weights


def apart(one: np.ndarray, other: np.ndarray) -> float:
    (p, w), (q, x) = points_of(one), points_of(other)
    return float(w @ (1 / np.linalg.norm(p[:, None] - q[None], axis=-1)) @ x) / (4 * np.pi)


@pytest.mark.parametrize("triangle", [EDGE, RIGHT, THIN])
@pytest.mark.parametrize("corner", range(3))
def test_triangles_that_touch(tmp_path: Path, triangle: np.ndarray, corner: int) -> None:
    """A triangle cut in two: what its halves do to each other is what is left of it without themselves."""
    a, b, c = np.roll(triangle, corner, axis=0)
    whole = entries(tmp_path, triangle)[0, 0]
    halves = entries(tmp_path, np.array([a, b, (b + c) / 2]), np.array([a, (b + c) / 2, c]))
    assert halves[0, 1] == halves[1, 0] == pytest.approx((whole - halves[0, 0] - halves[1, 1]) / 2, rel=2e-3)


@pytest.mark.parametrize(("edges", "off"), [(1.51, 2e-5), (2.5, 1e-6)])
def test_triangles_that_are_apart(tmp_path: Path, edges: float, off: float) -> None:
    random, found = np.random.default_rng(1), []
    for _ in range(12):
        turned, step = np.linalg.qr(random.normal(size=(3, 3)))[0], random.normal(size=3)
        middle = EDGE.mean(axis=0)
        other = (EDGE - middle) @ turned + middle + edges * step / np.linalg.norm(step)
        found.append(abs(entries(tmp_path, EDGE, other)[0, 1] / apart(EDGE, other) - 1))
    assert off / 10 < max(found) < off
