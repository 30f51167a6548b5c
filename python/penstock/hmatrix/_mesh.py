"""Triangle meshes: reading, making, judging, mending and writing them."""

from __future__ import annotations

import hashlib
import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock._error import Error
from penstock._files.file_name import file_name
from penstock.hmatrix import _hmatrix
from penstock.hmatrix._numbers import reals, whole_numbers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock._api import FileName

MOST_TRIANGLES = 100_000_000  # as shapes have at most


@dataclass(frozen=True)
class MeshReport:
    """What a mesh is made of, as it was given.

    Attributes:
        text: what there is to say, a sentence a line.
        facts: counts by name: "triangles", "duplicate_triangles", "boundary_edges", "non_manifold_edges", "components",
            "closed", "low" and "high" (corners of the bounding box, metres), ...
    """

    text: str
    facts: dict[str, Any]


class Mesh:
    """Corners and triangles.

    Args:
        vertices: (n, 3) float, metres.
        triangles: (m, 3) int, numbers of vertices from 0.
        values: one number a triangle, such as its potential in volts; None when there are none.
    """

    def __init__(self, vertices: Any, triangles: Any, values: Any = None) -> None:
        self.vertices = reals("vertices", vertices)
        self.triangles = whole_numbers("triangles", triangles)
        self.values = None if values is None else reals("values", values)
        for name, array, wanted in (("vertices", self.vertices, "(n, 3)"), ("triangles", self.triangles, "(m, 3)")):
            if array.ndim != 2 or array.shape[1] != 3:
                raise Error(operation="make a mesh", cause=f"{name} have shape {array.shape}", advice=f"give {wanted}")
        bad = ((self.triangles < 0) | (self.triangles >= len(self.vertices))).any(axis=1)
        if bad.any():
            first = int(np.flatnonzero(bad)[0])
            cause = f"triangle {first} has corners {self.triangles[first].tolist()} of {len(self.vertices)} vertices"
            raise Error(operation="make a mesh", cause=cause, advice="number vertices from 0")
        if self.values is not None and self.values.shape != (self.unknowns,):
            cause = f"values have shape {self.values.shape}, and there are {self.unknowns} triangles"
            raise Error(operation="make a mesh", cause=cause, advice="give one number a triangle")

    def __repr__(self) -> str:
        return f"<penstock.hmatrix.Mesh of {len(self.triangles)} triangles>"

    @property
    def unknowns(self) -> int:
        """Triangles: one unknown each."""
        return len(self.triangles)

    @property
    def centroids(self) -> np.ndarray:
        """(m, 3), metres."""
        return self.vertices[self.triangles].mean(axis=1)

    @property
    def areas(self) -> np.ndarray:
        """(m,), square metres."""
        return _hmatrix.areas(self.vertices, self.triangles)

    @property
    def digest(self) -> str:
        """SHA-256 of the corners of all triangles in their order: equal for meshes that make equal matrices."""
        corners = np.ascontiguousarray(self.vertices[self.triangles]) + 0.0  # -0 is 0
        return hashlib.sha256(corners.astype("<f8").tobytes()).hexdigest()

    def inspect(self) -> MeshReport:
        """What is wrong with it, and what it is like."""
        return _report(_hmatrix.inspect(self.vertices, self.triangles))

    def clean(self, *, refuse_duplicates: bool = False) -> tuple[Mesh, MeshReport]:
        """The mesh without duplicate triangles and unused vertices, and the report of this one. Duplicates make a
        singular matrix.

        Raises:
            Error: for what cannot be mended: triangles of no area, numbers that are not finite, coincident centroids;
                and for duplicates with `refuse_duplicates`.
        """
        raw = _hmatrix.clean(self.vertices, self.triangles, self.values, refuse_duplicates)
        return Mesh(*raw[:3]), _report(raw[3])

    def subdivided(self, times: int = 1) -> Mesh:
        """The same surface, each triangle cut into four by the middles of its edges, `times` over: for studies of
        convergence, and for more unknowns. The parts of a triangle follow each other and have its value.

        Raises:
            Error: more triangles than there can be; a number below 0.
        """
        if times < 0:
            raise Error(operation="subdivide a mesh", cause=f"{times} times", advice="use 0 or more")
        if self.unknowns * 4 ** min(times, 32) > MOST_TRIANGLES:
            cause = f"{self.unknowns} triangles, {times} times into four"
            raise Error(operation="subdivide a mesh", cause=cause, advice=f"make at most {MOST_TRIANGLES} triangles")
        mesh = self
        for _ in range(times):
            mesh = mesh._in_four()
        return mesh

    def _in_four(self) -> Mesh:
        a, b, c = self.triangles.T
        ends = np.stack([np.concatenate([a, b, c]), np.concatenate([b, c, a])])
        low, high = ends.min(axis=0), ends.max(axis=0)
        edges, edge_of = np.unique(low * len(self.vertices) + high, return_inverse=True)
        first, second = np.divmod(edges, len(self.vertices))
        middles = (self.vertices[first] + self.vertices[second]) / 2
        ab, bc, ca = len(self.vertices) + edge_of.reshape(3, -1)
        parts = np.stack([a, ab, ca, ab, b, bc, ca, bc, c, ab, bc, ca], axis=1).reshape(-1, 3)
        values = None if self.values is None else np.repeat(self.values, 4)
        return Mesh(np.concatenate([self.vertices, middles]), parts, values)

    def write(self, path: FileName, **numbers: Any) -> None:
        """The surface as .vtk (legacy, binary) or .ply (binary), with numbers on its triangles by name, for ParaView
        and others. The file appears whole or not at all.

            mesh.write("charge.vtk", surface_charge=sigma)
        """
        faces: Mapping[str, np.ndarray] = {name: reals(name, values) for name, values in numbers.items()}
        for name, values in faces.items():
            if values.shape != (self.unknowns,):
                cause = f"'{name}' has shape {values.shape}, and there are {self.unknowns} triangles"
                raise Error(operation="write a surface", file=os.fsdecode(path), cause=cause)
        _hmatrix.write_surface(file_name(path, "write a surface"), self.vertices, self.triangles, dict(faces))


def _report(facts: dict[str, Any]) -> MeshReport:
    text = facts.pop("text")
    return MeshReport(text, facts)


def read_mesh(path: FileName, *, unit_metres: float = 1.0) -> Mesh:
    """A mesh from PLY, OBJ, STL, OFF or HACApK's .pbf, told by content.

    Args:
        path: the file.
        unit_metres: length of the file's unit, 1e-3 for millimetres.

    Raises:
        Error: with the line or byte of what is malformed.
    """
    return Mesh(*_hmatrix.read_mesh(file_name(path, "read a mesh"), unit_metres))


def shape_names() -> list[str]:
    """Names for shape()."""
    return _hmatrix.shape_names()


def shape(name: str, triangles: int) -> Mesh:
    """A closed surface made by rule, of at least as many triangles: "sphere" (radius 1 m), "cube" (edge 1 m, graded),
    "torus", "bumpy", "mirrored-spheres" (-1 V and +1 V).
    """
    return Mesh(*_hmatrix.shape(name, triangles))


def capacitance(mesh: Mesh, density: Any) -> float:
    """C / (4 pi eps0) in metres, of a conductor at 1 V with this charge density over eps0 (V/m) on its triangles; of
    several bodies, their charges together. A sphere has its radius.
    """
    density = reals("density", density)
    if density.shape != (mesh.unknowns,):
        cause = f"the density has shape {density.shape}, and the mesh {mesh.unknowns} triangles"
        raise Error(operation="capacitance", cause=cause)
    return float(density @ mesh.areas) / (4 * math.pi)
