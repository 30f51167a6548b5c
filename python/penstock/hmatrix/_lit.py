"""A surface in perspective, lit by two lamps, with less light in its hollows: pixels, no picture yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from penstock._error import Error
from penstock.hmatrix import _raster as raster

if TYPE_CHECKING:
    from penstock.hmatrix._mesh import Mesh

OPERATION = "draw a surface"
_BAND = 256  # rows lit at a time, to take little memory
_FINER = 2  # pixels drawn for one shown, each way
_EYE = 4.0  # distance of the eye, in radii of the surface
_CREASE = 0.8  # cosine of the angle to the mean of the neighbours beyond which an edge is sharp


@dataclass(frozen=True)
class View:
    """Where a picture is taken from.

    Attributes:
        azimuth: degrees around the upward axis from the front, to the right.
        elevation: degrees above the horizon.
        up: the axis that points upwards in the picture: "x", "y" or "z". The front is -y, and with y upwards +z.
    """

    azimuth: float = 30.0
    elevation: float = 20.0
    up: str = "z"

    def axes(self) -> np.ndarray:
        """Right, up and towards the eye, as rows."""
        if self.up not in ("x", "y", "z"):
            raise Error(operation=OPERATION, cause=f"there is no axis '{self.up}'", advice="use x, y or z")
        if not np.isfinite([self.azimuth, self.elevation]).all():
            raise Error(operation=OPERATION, cause="the view's angles are not finite", advice="give degrees")
        upward = np.eye(3)["xyz".index(self.up)]
        front = np.array([0.0, -1.0, 0.0]) if self.up != "y" else np.array([0.0, 0.0, 1.0])
        side = np.cross(upward, front)
        a, e = np.radians([self.azimuth, self.elevation])
        level = np.cos(a) * front + np.sin(a) * side
        towards = np.cos(e) * level + np.sin(e) * upward
        right = np.cross(upward, level)
        return np.stack([right, np.cross(towards, right), towards])


def draw(mesh: Mesh, colours: np.ndarray, view: View, width: int) -> np.ndarray:
    """`colours` of the triangles, (m, 3). The lit surface, cut out: (height, width, 4), all between 0 and 1."""
    axes = view.axes()
    used = mesh.vertices[np.unique(mesh.triangles)]
    middle = (used.min(axis=0) + used.max(axis=0)) / 2
    places = (mesh.vertices - middle) @ axes.T
    radius = float(np.linalg.norm(places[np.unique(mesh.triangles)], axis=1).max()) or 1.0
    depth = _EYE - places[:, 2] / radius
    flat = places[:, :2] / radius / depth[:, None] * [1, -1]
    shown = flat[np.unique(mesh.triangles)]
    low, high = shown.min(axis=0), shown.max(axis=0)
    finer = _FINER * width
    zoom = 0.98 * min(finer / (high[0] - low[0]), finer / (high[1] - low[1]))
    size = (finer, _FINER * int(np.ceil(zoom * (high[1] - low[1]) / 0.98 / _FINER)))
    screen = (flat - (low + high) / 2) * zoom + np.array(size) / 2
    seen = raster.look(screen[mesh.triangles], (1 / depth)[mesh.triangles], size)
    hit = seen.triangle != raster.NOTHING
    image = np.zeros((size[1], size[0], 4), np.float32)
    image[..., 3] = hit
    normals = _normals(mesh, places)
    for begin in range(0, size[1], _BAND):
        rows, columns = np.nonzero(hit[begin : begin + _BAND])
        triangle = seen.triangle[rows + begin, columns]
        at = np.stack([columns + 0.5, rows + begin + 0.5], axis=1)
        weights = raster.shares(screen[mesh.triangles[triangle]], at)
        normal = (normals[triangle] * weights[:, :, None]).sum(axis=1)
        image[rows + begin, columns, :3] = _light(colours[triangle], normal)
    image[..., :3] *= _hollows(seen, hit)[..., None]
    return _smaller(image)


def _light(colours: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """Of points with these normals, in the light of a lamp at the upper left and a softer one from the right."""
    normal = normal / (np.linalg.norm(normal, axis=1, keepdims=True) + 1e-30)
    normal *= np.where(normal[:, 2:] < 0, -1, 1)  # of an open surface the back is seen, too
    lamp, fill = _unit(-0.45, 0.65, 0.8), _unit(0.8, 0.1, 0.5)
    light = 0.34 + 0.62 * np.clip(normal @ lamp, 0, None) + 0.16 * np.clip(normal @ fill, 0, None)
    shine = 0.16 * np.clip(normal @ _unit(*(lamp + [0, 0, 1])), 0, None) ** 40
    return np.clip(colours * light[:, None] + shine[:, None], 0, 1)


def _unit(*direction: float) -> np.ndarray:
    return np.array(direction) / np.linalg.norm(direction)


def _normals(mesh: Mesh, places: np.ndarray) -> np.ndarray:
    """Of each corner of each triangle, (m, 3, 3): that of the smooth surface, or at a sharp edge of the triangle."""
    corners = places[mesh.triangles]
    faces = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    smooth = np.zeros_like(places)
    for corner in range(3):
        for axis in range(3):
            smooth[:, axis] += np.bincount(mesh.triangles[:, corner], faces[:, axis], len(places))
    smooth /= np.linalg.norm(smooth, axis=1, keepdims=True) + 1e-300
    faces /= np.linalg.norm(faces, axis=1, keepdims=True) + 1e-300
    found = smooth[mesh.triangles]
    sharp = (found * faces[:, None]).sum(axis=2) < _CREASE
    return np.where(sharp[:, :, None], faces[:, None], found)


def _hollows(seen: raster.Seen, hit: np.ndarray) -> np.ndarray:
    """How much light comes to each pixel: less where what surrounds it lies nearer (Luft and others 2006)."""
    coarse = (slice(None, None, _FINER),) * 2
    near, there = seen.nearness[coarse], hit[coarse]
    reach = max(2, near.shape[1] // 60)
    around = _blurred(np.where(there, near, 0), reach) / np.maximum(_blurred(there.astype(float), reach), 1e-6)
    span = float(np.ptp(near[there])) if there.any() else 0.0
    found = 1 - np.clip((around - near) / (span or 1.0) * 2.2, 0, 0.45)
    return np.repeat(np.repeat(found, _FINER, axis=0), _FINER, axis=1)


def _blurred(values: np.ndarray, reach: int) -> np.ndarray:
    """Means over squares of 2 reach + 1 pixels, twice."""
    for _ in range(2):
        for axis in (0, 1):
            values = np.moveaxis(values, axis, 0)
            padded = np.pad(values, ((reach + 1, reach), (0, 0)), mode="edge")
            total = np.cumsum(padded, axis=0)
            values = np.moveaxis((total[2 * reach + 1 :] - total[: -2 * reach - 1]) / (2 * reach + 1), 0, axis)
    return values


def _smaller(image: np.ndarray) -> np.ndarray:
    """Several pixels to one; colours weighted by what they cover."""
    high, wide = image.shape[0] // _FINER, image.shape[1] // _FINER
    parts = image[: high * _FINER, : wide * _FINER].reshape(high, _FINER, wide, _FINER, 4)
    alpha = parts[..., 3].mean(axis=(1, 3))
    colour = parts[..., :3].sum(axis=(1, 3)) / np.maximum(parts[..., 3].sum(axis=(1, 3)), 1e-9)[..., None]
    return np.concatenate([colour, alpha[..., None]], axis=2)
