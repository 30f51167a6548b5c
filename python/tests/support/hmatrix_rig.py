"""What the tests of penstock.hmatrix share: small matrices, the dense truth beside them, and a kernel of points."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

import penstock as ps
from penstock._shared import shared_context
from penstock.hmatrix import HMatrix, Mesh

SMOOTHING = 0.01


def points(count: int) -> np.ndarray:
    return np.random.default_rng(0).random((count, 3))


def kernel_of(places: np.ndarray) -> Any:
    """1 / (distance + a little), as an entries function."""

    def entries(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return 1 / (np.linalg.norm(places[rows][:, None] - places[columns][None], axis=-1) + SMOOTHING)

    return entries


def dense(places: np.ndarray) -> np.ndarray:
    everyone = np.arange(len(places))
    return kernel_of(places)(everyone, everyone)


def built(folder: Path, mesh: Mesh | None = None, **options: Any) -> HMatrix:
    return ps.hmatrix.assemble(mesh or ps.hmatrix.shape("bumpy", 600), store=folder / "m.hmat", **options)


def on_gpu() -> bool:
    """What is given no context uses a GPU."""
    return not shared_context().device["emulated"]


def off(found: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))


def potential_inside(mesh: Mesh, density: np.ndarray, place: np.ndarray) -> float:
    """Potential of the charges, as points at centroids: independent of the solver's integrals, and good well inside."""
    distances = np.linalg.norm(mesh.centroids - place, axis=1)
    return float((density * mesh.areas / distances).sum() / (4 * math.pi))
