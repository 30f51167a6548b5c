"""The grid of a model whose files a history writes: what ScaleGrid tells the preset "scale"."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Numbers = Sequence[float] | np.ndarray[Any, Any]


@dataclass(frozen=True)
class ScaleGrid:
    """The cartesian grid of SCALE-RM, and the part of it that this process has.

        grid = penstock.ScaleGrid(x_faces, y_faces, z_faces, halo=(2, 2, 2), processes=(4, 2), process=comm.rank)
        history = penstock.History(grid.file_name("history"), time_units="seconds since 2000-01-01 00:00:00")
        history.define("T", ("z", "y", "x"), shape=grid.shape("z", "y", "x"))
        history.use_preset("scale", grid, title="a run")

    Args:
        x_faces, y_faces, z_faces: positions of the faces of all cells of the domain, in m, with the halo at both ends:
            one more than there are cells.
        halo: cells of it at each end of x, y and z. Fields of the file have none, but with `boundary`.
        processes: that share x and y, each with as many cells as the others.
        process: the number of this one, from 0 on, along x first.
        periodic: x and y.
        boundary: fields have the halo too at those ends of the domain that are not periodic.
        ocean_faces, land_faces, urban_faces: of layers, in m below the ground.
        pressures_hpa: of pressure levels.
        factors: how much the boundary damps, by the names "CBFX", "FBFX", "CBFY", "FBFY", "CBFZ", "FBFZ": of centres
            and of faces, of the domain with its halo. What is not there does not damp.
    """

    x_faces: Numbers
    y_faces: Numbers
    z_faces: Numbers
    halo: tuple[int, int, int] = (0, 0, 0)
    processes: tuple[int, int] = (1, 1)
    process: int = 0
    periodic: tuple[bool, bool] = (False, False)
    boundary: bool = False
    ocean_faces: Numbers = ()
    land_faces: Numbers = ()
    urban_faces: Numbers = ()
    pressures_hpa: Numbers = ()
    factors: dict[str, Numbers] | None = None

    def file_name(self, base: str, start: datetime.datetime | None = None) -> str:
        """As SCALE-RM names the file of a process: base.pe000003.nc; with the date of its first step
        base_20000101-120000.000.pe000003.nc."""
        label = f"_{start:%Y%m%d-%H%M%S}.{start.microsecond // 1000:03}" if start else ""
        return f"{base}{label}.pe{self.process:06}.nc"

    def shape(self, *dims: str) -> tuple[int, ...]:
        """Elements that this process writes along dimensions of these names: x, xh, y, yh, z, zh; oz, ozh and the like
        of layers; pressure."""
        return tuple(self._length(one) for one in dims)

    def told(self) -> dict[str, Any]:
        """As the core takes it."""
        factors, faces = dict(self.factors or {}), (self.x_faces, self.y_faces, self.z_faces)
        if unknown := set(factors) - {f"{kind}F{axis}" for kind in ("CB", "FB") for axis in "XYZ"}:
            raise ValueError(f"there are no factors {min(unknown)!r}; use CBFX, FBFX, CBFY, FBFY, CBFZ or FBFZ")
        shared, periodic = (*self.processes, 1), (*self.periodic, False)
        found: dict[str, Any] = {
            axis: (
                _numbers(faces[i]),
                self.halo[i],
                shared[i],
                periodic[i],
                _numbers(factors.get(f"CBF{axis.upper()}", ())),
                _numbers(factors.get(f"FBF{axis.upper()}", ())),
            )
            for i, axis in enumerate("xyz")
        }
        for name in ("ocean_faces", "land_faces", "urban_faces", "pressures_hpa"):
            found[name] = _numbers(getattr(self, name))
        return {**found, "process": self.process, "boundary": self.boundary}

    def _length(self, dim: str) -> int:
        layers = {"oz": self.ocean_faces, "lz": self.land_faces, "uz": self.urban_faces}
        if dim == "pressure":
            return len(self.pressures_hpa)
        is_face = dim[1:].endswith("h")
        name = dim.removesuffix("h") if is_face else dim
        if name in layers:
            return len(layers[name]) - (0 if is_face else 1)
        if name not in ("x", "y", "z"):
            raise ValueError(f"there is no dimension {dim!r} of the grid")
        axis = "xyz".index(name)
        cells = len((self.x_faces, self.y_faces, self.z_faces)[axis]) - 1 - 2 * self.halo[axis]
        if name == "z":
            return cells + is_face
        count = self.processes[axis]
        place = self.process % count if name == "x" else self.process // self.processes[0]
        if self.periodic[axis]:
            return cells // count
        if self.boundary:
            return cells // count + self.halo[axis] * ((place == 0) + (place == count - 1))
        return cells // count + (is_face and place == 0)


def _numbers(values: Numbers) -> list[float]:
    return [float(one) for one in values]
