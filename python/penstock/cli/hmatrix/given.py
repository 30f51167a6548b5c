"""Options that the commands of `penstock hmatrix` share, and their values as the work takes them.

All that can be refused is refused here, before a matrix is built for an hour.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock._files.publish import check_target
from penstock.cli import options

if TYPE_CHECKING:
    from penstock.hmatrix import Mesh, MeshReport

MOST = 1_000_000_000
MOST_CUTS = 12
LENGTHS = {"nm": 1e-9, "um": 1e-6, "mm": 1e-3, "cm": 1e-2, "m": 1.0, "km": 1e3, "in": 0.0254, "ft": 0.3048}
EPS, KERNEL, TRIANGLES, UNIT = 1e-4, "collocation", "5120", "1m"

MeshFile = Annotated[
    str | None,
    typer.Argument(metavar="MESH", help="A file of PLY, OBJ, STL, OFF or .pbf (HACApK), recognised by its content."),
]
Shape = Annotated[
    str | None, typer.Option("--shape", help="A shape in place of MESH: sphere, cube, torus, bumpy, mirrored-spheres.")
]
Triangles = Annotated[str | None, typer.Option("--triangles", help="Least number of triangles of the shape (5120).")]
Subdivide = Annotated[str, typer.Option("--subdivide", help="Cut each triangle into four, so many times.")]
Unit = Annotated[
    str | None, typer.Option("--unit", help="Length of the unit in MESH, such as 1mm, 0.0254m or in (1m).")
]
Eps = Annotated[float | None, typer.Option("--eps", help="Relative accuracy of the matrix (1e-4).")]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        help="tiers (compressed) or fp64 (doubles). The default is tiers; on a GPU with an eps below 5e-7, fp64.",
    ),
]
Batches = Annotated[
    str | None, typer.Option("--batches", help="Number of parts of the file; a part is always read whole.")
]
Kernel = Annotated[str | None, typer.Option("--kernel", help="collocation (the default) or galerkin.")]
AssembleOn = Annotated[
    str | None, typer.Option("--assemble-on", help="host, gpu, or auto (the default): the GPU if --device is one.")
]
AcaPlus = Annotated[
    bool, typer.Option("--aca-plus", help="Choose pivots by reference rows and columns (ACA+), on the host.")
]
Workers = Annotated[str, typer.Option("--workers", help="Threads; auto is one for each core.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@dataclass(frozen=True)
class Surface:
    """Where the mesh comes from: a file, or a shape made by rule."""

    command: str
    file: Path | None
    shape: str
    triangles: int
    unit_metres: float
    subdivisions: int

    @classmethod
    def of(cls, command: str, asked: dict[str, Any]) -> Surface | None:
        """The surface that the command's options name. None when neither a file nor a shape is given."""
        file, shape = asked["mesh"], asked["shape"]
        if file is not None and shape is not None:
            raise options.refusal(command, "both MESH and --shape are given", "give one of them")
        if file is None and shape is None:
            _refuse_without_mesh(command, asked)
            return None
        if file is not None and asked["triangles"] is not None:
            raise options.refusal(command, "--triangles is of a --shape, and MESH is a file", "leave it out")
        if shape is not None and asked["unit"] is not None:
            raise options.refusal(command, "--unit is of a MESH file, and a --shape is in metres", "leave it out")
        from penstock.hmatrix import shape_names

        if shape is not None and shape not in shape_names():
            raise options.refusal(command, f"--shape: '{shape}' is not known", "use " + ", ".join(shape_names()))
        number = options.count(command, "--triangles", _or(asked["triangles"], TRIANGLES), MOST)
        place = options.place(command, "MESH", file) if file is not None else None
        cuts = 0 if asked["subdivide"] == "0" else options.count(command, "--subdivide", asked["subdivide"], MOST_CUTS)
        return cls(command, place, shape or "", number, _metres(command, _or(asked["unit"], UNIT)), cuts)

    @property
    def name(self) -> str:
        name = str(self.file) if self.file else f"{self.shape} of {self.triangles}"
        times = "once" if self.subdivisions == 1 else f"{self.subdivisions} times"
        return f"{name}, subdivided {times}" if self.subdivisions else name

    def load(self) -> tuple[Mesh, MeshReport]:
        """The mesh as a matrix can be made of it, and what it was like."""
        from penstock import hmatrix

        if self.file is None:
            mesh = hmatrix.shape(self.shape, self.triangles)
        else:
            mesh = hmatrix.read_mesh(self.file, unit_metres=self.unit_metres)
        clean, report = mesh.clean()
        return (clean.subdivided(self.subdivisions) if self.subdivisions else clean), report


def _or(text: str | None, usual: str) -> str:
    return usual if text is None else text


def _refuse_without_mesh(command: str, asked: dict[str, Any]) -> None:
    for option, usual in (("subdivide", "0"), ("triangles", None), ("unit", None)):
        if asked[option] != usual:
            raise options.refusal(command, f"--{option}: there is no mesh", "name a file, or give --shape")


def build_options(command: str, given: dict[str, Any]) -> dict[str, Any]:
    """For assemble(), from --eps, --encoding, --batches, --kernel, --assemble-on, --aca-plus and --workers."""
    from penstock.hmatrix import ENCODINGS, KERNELS, PLACES

    eps = EPS if given["eps"] is None else given["eps"]
    if not 1e-12 <= eps <= 0.5:
        raise options.refusal(command, f"--eps: {eps:g} is out of range", "use a number from 1e-12 to 0.5")
    found: dict[str, Any] = {"eps": eps, "workers": workers(command, given["workers"])}
    if given["encoding"] is not None:
        found["encoding"] = one_of(command, "--encoding", given["encoding"], ENCODINGS)
    found["kernel"] = one_of(command, "--kernel", given["kernel"] or KERNEL, KERNELS)
    found["assemble_on"] = one_of(command, "--assemble-on", given["assemble_on"] or "auto", PLACES)
    if given["aca_plus"]:
        if found["assemble_on"] == "gpu":
            raise options.refusal(command, "--aca-plus runs on the host", "leave out --assemble-on gpu")
        found["aca_plus"] = True
    if given["batches"] is not None:
        found["batches"] = options.count(command, "--batches", given["batches"], MOST)
    return found


def workers(command: str, text: str) -> int:
    return 0 if text == "auto" else options.count(command, "--workers", text, options.MAX_WORKERS)


def one_of(command: str, option: str, text: str, known: tuple[str, ...]) -> str:
    if text not in known:
        raise options.refusal(command, f"{option}: '{text}' is not known", "use " + ", ".join(known))
    return text


def check_files(command: str, written: dict[str, str | None], read: dict[str, str | None]) -> dict[str, Path]:
    """Files to be written, by option, none of which is another or one that is read."""
    places = {option: options.place(command, option, name) for option, name in read.items() if name is not None}
    found = {option: options.place(command, option, name) for option, name in written.items() if name is not None}
    for option, place in found.items():
        for other, taken in places.items():
            if place.resolve() == taken.resolve():
                raise options.refusal(command, f"{option} and {other} are one file, {place}", "name another")
        places[option] = place
        check_target(place, command, f"name a file you can write with {option}")
    return found


def _metres(command: str, text: str) -> float:
    """Of "1mm", "0.0254m", "in" or "0.001"."""
    split = re.fullmatch(r"([0-9.]+(?:[eE][+-]?[0-9]+)?)?\s*([a-z]*)", text)
    if split and (split[1] or split[2]) and (split[2] or "m") in LENGTHS:
        try:
            metres = float(split[1] or 1) * LENGTHS[split[2] or "m"]
        except ValueError:
            metres = 0.0
        if 0 < metres < float("inf"):
            return metres
    known = ", ".join(LENGTHS)
    raise options.refusal(command, f"--unit: '{text}' is not a length", f"use 1mm, for example; units are {known}")
