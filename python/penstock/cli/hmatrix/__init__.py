"""`penstock hmatrix`: conductors' surface charges by an H-matrix in a file, which may be larger than memory."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock import Error, path_names
from penstock._text import bytes_text, one_line
from penstock.cli import options, show
from penstock.cli.hmatrix import given

if TYPE_CHECKING:
    from penstock.cli.hmatrix.work import Work
    from penstock.hmatrix import View

METHOD, TOL = "fgmres", 1e-5
PAGE_BYTES = 4096  # of a .hmat file
app = typer.Typer(
    name="hmatrix",
    help="Solve boundary-element problems with an H-matrix in a file, which may be larger than memory.",
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def _help(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        sys.stdout.write(context.get_help() + "\n")


@app.command()
def build(
    mesh: given.MeshFile = None,
    store: Annotated[str, typer.Option("--store", help="The file of the matrix, usually .hmat.")] = "matrix.hmat",
    shape: given.Shape = None,
    triangles: given.Triangles = None,
    unit: given.Unit = None,
    subdivide: given.Subdivide = "0",
    eps: given.Eps = None,
    encoding: given.Encoding = None,
    batches: given.Batches = None,
    kernel: given.Kernel = None,
    device: Annotated[str, typer.Option("--device", help="What assembles: auto, host, cuda:0, ...")] = "auto",
    assemble_on: given.AssembleOn = None,
    aca_plus: given.AcaPlus = False,
    workers: given.Workers = "auto",
    json: given.Json = False,
) -> int:
    """Build the matrix of the Laplace single layer on a mesh and write it to a file.

    The file appears when it is complete.

    Example: penstock hmatrix build --shape sphere --triangles 1280 --store sphere.hmat
    """
    asked = locals()
    from penstock.cli.hmatrix.work import Work, run

    command = "hmatrix build"
    surface = _surface(command, asked)
    places = given.check_files(command, {"--store": store}, {"MESH": mesh})
    how = given.build_options(command, asked)
    where = options.device(command, "--device", device)
    work = Work(command, surface, device=where, store=places["--store"], build=how)
    fields, _ = run(work)
    _print(fields, work if json else None, solved=False)
    return 0


@app.command()
def solve(
    mesh: given.MeshFile = None,
    shape: given.Shape = None,
    triangles: given.Triangles = None,
    unit: given.Unit = None,
    subdivide: given.Subdivide = "0",
    matrix: Annotated[str | None, typer.Option("--matrix", help="Use this .hmat file; build none.")] = None,
    eps: given.Eps = None,
    encoding: given.Encoding = None,
    batches: given.Batches = None,
    kernel: given.Kernel = None,
    assemble_on: given.AssembleOn = None,
    aca_plus: given.AcaPlus = False,
    store: Annotated[str | None, typer.Option("--store", help="Keep the matrix in FILE.")] = None,
    directory: Annotated[str, typer.Option("--dir", help="Without --store: folder of a temporary matrix.")] = ".",
    device: Annotated[str, typer.Option("--device", help="Device that computes: auto, host, cuda:0, ...")] = "auto",
    tol: Annotated[float, typer.Option("--tol", help="Relative true residual to reach.")] = TOL,
    method: Annotated[str, typer.Option("--method", help="fgmres, gmres, bicgstab, gcr or idr.")] = METHOD,
    max_iterations: Annotated[str, typer.Option("--max-iterations", help="Limit of outer iterations.")] = "500",
    restart: Annotated[str | None, typer.Option("--restart", help="Vectors of (f)gmres; m of gcr; s of idr.")] = None,
    relaxed: Annotated[bool, typer.Option("--relaxed", help="gmres: read only the tiers still needed.")] = False,
    preconditioner: Annotated[
        bool, typer.Option("--preconditioner/--no-preconditioner", help="Use the block-Jacobi preconditioner.")
    ] = True,
    cache: Annotated[
        str, typer.Option("--cache", help="Memory for the matrix; auto is half of the free memory.")
    ] = "auto",
    path: Annotated[
        str, typer.Option("--path", help="How batches are read: auto, buffered, ..., gpu (by GPU threads).")
    ] = "auto",
    pin: Annotated[
        str | None, typer.Option("--pin", help="Keep the first N batches, and no others, in memory.")
    ] = None,
    zig_zag: Annotated[bool, typer.Option("--zig-zag", help="Read every other sweep backwards.")] = False,
    checkpoint: Annotated[
        str | None, typer.Option("--checkpoint", help="Store the state; continue if FILE exists.")
    ] = None,
    checkpoint_sweeps: Annotated[str, typer.Option("--checkpoint-sweeps", help="Sweeps between checkpoints.")] = "5",
    workers: given.Workers = "auto",
    out: Annotated[str | None, typer.Option("--out", help="File of the surface charge: .vtk or .ply.")] = None,
    picture: Annotated[str | None, typer.Option("--picture", help="Picture of the charge: .png, .pdf, .svg.")] = None,
    view: Annotated[
        str, typer.Option("--view", help="Viewpoint of the picture: azimuth,elevation,upward axis.")
    ] = "30,20,z",
    width: Annotated[str, typer.Option("--width", help="Width of the surface in the picture, in pixels.")] = "1200",
    json: given.Json = False,
) -> int:
    """Solve for the surface charge of a conductor at 1 V, or at the potentials that a .pbf file has for its faces.

    The command removes duplicate triangles, then builds and stores the matrix. Every sweep reads again the part of the
    matrix that does not fit into --cache. The residual refers to the stored matrix. If it is above --tol in the end,
    the exit code is 1.

    Example: penstock hmatrix solve --shape sphere --triangles 1280 --out charge.vtk --picture charge.png
    """
    asked = locals()
    from penstock.cli.hmatrix.work import run

    work = _solve_work("hmatrix solve", asked)
    fields, failure = run(work)
    _print(fields, work if json else None, solved=True)
    if failure is not None:
        sys.stdout.flush()
        raise failure
    return _refuse_unsolved(work.command, fields)


@app.command()
def info(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A .hmat file.")],
    verify: Annotated[bool, typer.Option("--verify", help="Read the whole file and check every checksum.")] = False,
    json: given.Json = False,
) -> int:
    """Say what a .hmat file contains. The checksums of its tables are always checked.

    Example: penstock hmatrix info sphere.hmat --verify
    """
    from penstock import hmatrix
    from penstock.cli.hmatrix.lines import bar, info_lines

    place = options.place("hmatrix info", "FILE", file)
    found = hmatrix.info(place)
    found["sampled_error"] = found["sampled_error"] if found["sampled_error"] >= 0 else None
    if verify:
        with bar("verify"):
            found["verified_bytes"] = hmatrix.verify(place)
    if json:
        show.json_object({"file": str(place)} | found)
        return 0
    lines = [f"file      {one_line(str(place))}", *info_lines(found)]
    if verify:
        lines.append(f"verified  {bytes_text(found['verified_bytes'])}: every checksum fits")
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def _solve_work(command: str, asked: dict[str, Any]) -> Work:
    """All of `penstock hmatrix solve`, refused where it makes no sense; `asked`: its options by name."""
    from penstock.cli.hmatrix.work import Work

    written = {f"--{name}": asked[name] for name in ("store", "checkpoint", "out", "picture")}
    places = given.check_files(command, written, {"MESH": asked["mesh"], "--matrix": asked["matrix"]})
    _check_kinds(command, places)
    if asked["matrix"] is not None:
        _refuse_beside_matrix(command, asked)
    needed = asked["matrix"] is None or "--out" in places or "--picture" in places
    return Work(
        command,
        _surface(command, asked, needed),
        device=options.device(command, "--device", asked["device"]),
        matrix=None if asked["matrix"] is None else options.place(command, "--matrix", asked["matrix"]),
        store=places.get("--store"),
        directory=options.place(command, "--dir", asked["directory"]),
        build=given.build_options(command, asked),
        opened=_opened(command, asked),
        solve=_method(command, asked) | {"checkpoint": places.get("--checkpoint")},
        out=places.get("--out"),
        picture=places.get("--picture"),
        view=_view(command, asked["view"]),
        width=_width(command, asked["width"]),
    )


def _surface(command: str, asked: dict[str, Any], needed: bool = True) -> given.Surface | None:
    found = given.Surface.of(command, asked)
    if found is None and needed:
        raise options.refusal(command, "there is no mesh", "name a file, or give --shape")
    return found


def _refuse_beside_matrix(command: str, asked: dict[str, Any]) -> None:
    building = ("eps", "encoding", "batches", "kernel", "assemble_on", "aca_plus", "store")
    named = [name for name in building if asked[name] not in (None, False)]
    if named:
        cause = f"--{named[0].replace('_', '-')} is about building a matrix, and --matrix names one that is there"
        raise options.refusal(command, cause, "leave one of them out")


def _check_kinds(command: str, places: dict[str, Path]) -> None:
    """Endings, before the work and not after it."""
    from penstock.hmatrix import check_picture

    if "--picture" in places:
        with options.usage():
            check_picture(places["--picture"])
    if "--out" in places and places["--out"].suffix not in (".vtk", ".ply"):
        raise options.refusal(command, f"--out: {places['--out']} is neither .vtk nor .ply", "name one of them")


def _opened(command: str, how: dict[str, Any]) -> dict[str, Any]:
    """For open()."""
    found: dict[str, Any] = {"path": _path(command, how["path"]), "zig_zag": how["zig_zag"]}
    found["workers"] = given.workers(command, how["workers"])
    found["cache_bytes"] = "auto"
    if how["cache"] != "auto":
        found["cache_bytes"] = options.size(command, "--cache", how["cache"])
        if found["cache_bytes"] < PAGE_BYTES:
            cause = f"--cache: {found['cache_bytes']} bytes hold no batch, which takes pages of {PAGE_BYTES}"
            raise options.refusal(command, cause, "leave it out, or use 1GiB, for example")
    if how["pin"] is not None:
        batches = 0 if how["pin"] == "0" else options.count(command, "--pin", how["pin"], given.MOST)
        found |= {"pinned_batches": batches, "pinned_tiers": 0}
    return found


def _path(command: str, name: str) -> str:
    """A path's name, or "gpu": fetched by the device's own threads."""
    known = (*path_names(), "gpu")
    if name not in known:
        raise options.refusal(command, f"--path: there is no path named '{name}'", "use one of " + ", ".join(known))
    return name


def _method(command: str, how: dict[str, Any]) -> dict[str, Any]:
    """For solve()."""
    from penstock.hmatrix import METHODS

    if not 0 < how["tol"] < 1:
        raise options.refusal(command, f"--tol: {how['tol']:g} is out of range", "use a number above 0 and below 1")
    found: dict[str, Any] = {"tol": how["tol"], "method": given.one_of(command, "--method", how["method"], METHODS)}
    found |= {name: how[name] for name in ("relaxed", "preconditioner")}
    sweeps = options.count(command, "--checkpoint-sweeps", how["checkpoint_sweeps"], given.MOST)
    found["checkpoint_sweeps"] = sweeps
    if how["relaxed"] and how["method"] not in ("gmres", "fgmres"):
        raise options.refusal(command, f"--relaxed means nothing to {how['method']}", "use gmres or fgmres")
    if how["restart"] is not None and how["method"] == "bicgstab":
        raise options.refusal(command, "--restart means nothing to bicgstab", "leave it out")
    found["max_iterations"] = options.count(command, "--max-iterations", how["max_iterations"], given.MOST)
    if how["restart"] is not None:
        found["restart"] = options.count(command, "--restart", how["restart"], given.MOST)
    return found


def _view(command: str, text: str) -> View:
    from penstock.hmatrix import View

    parts = text.split(",")
    try:
        found = View(float(parts[0]), float(parts[1]), parts[2] if len(parts) == 3 else "z")
        found.axes()
    except (ValueError, IndexError, Error):
        raise options.refusal(command, f"--view: '{text}' is not a view", "use 30,20,z, for example") from None
    return found


def _width(command: str, text: str) -> int:
    from penstock.hmatrix import WIDTHS

    found = options.count(command, "--width", text, given.MOST)
    if not WIDTHS[0] <= found <= WIDTHS[1]:
        raise options.refusal(command, f"--width: {found} pixels", f"use {WIDTHS[0]} to {WIDTHS[1]}")
    return found


def _print(fields: dict[str, Any], machine_readable: Work | None, solved: bool) -> None:
    """As lines, or with the work as an object that also says by what command, which revision and where it was made."""
    from penstock.cli.hmatrix import lines

    if machine_readable is not None:
        from penstock.cli.hmatrix.work import made_by

        show.json_object(fields | made_by(machine_readable))
        return
    text = [*lines.matrix_lines(fields), *(lines.solve_lines(fields) if solved else []), lines.time_line(fields)]
    sys.stdout.write("\n".join(text) + "\n")


def _refuse_unsolved(command: str, fields: dict[str, Any]) -> int:
    """What was found is printed; that it is not what was asked for is told after it."""
    if fields["converged"]:
        return 0
    sys.stdout.flush()
    above = f"the residual is {fields['relative_residual']:.1e}, above --tol {fields['tol']:g}"
    cause = f"{above}; it ended by {fields['stopped_by']}"
    stuck = fields["stopped_by"] != "iterations"
    other = f", use --method {METHOD}," if fields["method"] != METHOD else ", use --method gmres," if stuck else ""
    advice = f"allow more --max-iterations{other} or build with a smaller --eps"
    raise Error(code="not_converged", operation=command, cause=cause, advice=advice)
