"""The work of `penstock hmatrix`: matrix, solve, files, and all that came of it as one dict."""

from __future__ import annotations

import math
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock import Error, hmatrix
from penstock._shared import shared_context
from penstock.calibration.machine import fingerprint
from penstock.calibration.workspace import Scratch
from penstock.cli.hmatrix.given import KERNEL, Surface
from penstock.cli.hmatrix.lines import VACUUM, assembling, bar, solving
from penstock.hmatrix._close import all_but_coincident
from penstock.hmatrix._memory import cache_for_a_tier

if TYPE_CHECKING:
    from penstock.hmatrix import HMatrix, Mesh, MeshReport, Solution, View

_MOST_CHARGES = 16  # bodies at different potentials that are told apart


@dataclass(frozen=True)
class Work:
    """What is to be done.

    Attributes:
        surface: None where the matrix exists and the user asks for no charges.
        device: where products run.
        matrix: a file that is there; None to build one.
        store: where the built one stays; None for a scratch file under `directory`.
        build: for assemble().
        opened: for open().
        solve: for solve(); None to build only.
    """

    command: str
    surface: Surface | None
    device: str = "auto"
    matrix: Path | None = None
    store: Path | None = None
    directory: Path = Path()
    build: dict[str, Any] = field(default_factory=dict)
    opened: dict[str, Any] = field(default_factory=dict)
    solve: dict[str, Any] | None = None
    out: Path | None = None
    picture: Path | None = None
    view: View | None = None
    width: int = 1200


def run(work: Work) -> tuple[dict[str, Any], Error | None]:
    """Does it, and tells all of it by the names that --json has; and what kept it from writing the charges, for a disk
    that is full in the end must not cost what was found."""
    mesh, report = work.surface.load() if work.surface else (None, None)
    began = time.monotonic()
    with _matrix(work, mesh) as matrix:
        kernel = _check_problem(work, matrix, mesh)
        solution = None
        if work.solve is not None:
            with bar(f"solve, {work.solve['method']}") as tell:
                told = solving(tell, work.solve["tol"])
                given = _right_hand_side(mesh, kernel, matrix)
                with _naming_triangles(mesh):
                    solution = hmatrix.solve(matrix, given, callback=told, **work.solve)
        fields = _facts(work, matrix, mesh, report)
        fields |= _solve_facts(work, matrix, mesh, solution)
    fields["total_s"] = time.monotonic() - began
    fields["other_s"] = max(
        0.0, fields["total_s"] - sum(fields[f"{phase}_s"] for phase in ("assemble", "write", "read"))
    )
    failure = None
    if mesh is not None and solution is not None:
        try:
            _write(work, mesh, solution)
        except Error as error:
            failure = error
    return fields, failure


def made_by(work: Work) -> dict[str, Any]:
    """What a reader of the numbers asks next: the command line, and the machine with the revision of the package."""
    folder = (work.matrix or work.store or work.directory / "matrix").absolute().parent
    return {
        "command": shlex.join(["penstock", *sys.argv[1:]]),
        "machine": fingerprint(shared_context(work.device), folder),
    }


@contextmanager
def _matrix(work: Work, mesh: Mesh | None) -> Iterator[HMatrix]:
    if work.matrix is not None or mesh is None:
        with hmatrix.open(work.matrix or "", context=shared_context(work.device), **work.opened) as matrix:
            yield matrix
    elif work.store is not None:
        with _built(work, mesh, work.store) as matrix:
            yield matrix
    else:
        with (
            Scratch(work.directory, (work.command, "--dir")) as scratch,
            _built(work, mesh, scratch.directory / "matrix.hmat") as matrix,
        ):
            yield matrix


def _built(work: Work, mesh: Mesh, store: Path) -> HMatrix:
    context = shared_context(work.device)
    with bar("assemble") as tell:
        progress = assembling(tell)
        return hmatrix.assemble(mesh, store=store, context=context, progress=progress, open=work.opened, **work.build)


def _check_problem(work: Work, matrix: HMatrix, mesh: Mesh | None) -> str:
    """The kernel. A matrix that was built of another mesh is refused."""
    if work.matrix is None:
        return work.build["kernel"]
    about, name = matrix.about, str(work.matrix)
    if mesh is not None and (mesh.unknowns != matrix.shape[0] or about.get("mesh", mesh.digest) != mesh.digest):
        cause = f"it was built of another mesh than {work.surface.name if work.surface else ''}"
        raise Error(
            operation=work.command, file=name, cause=cause, advice="give that mesh, its --unit too, or build anew"
        )
    kernel = about.get("kernel", KERNEL)
    if mesh is None and kernel != KERNEL:
        cause = f"its kernel is {kernel}, and 1 V on that takes areas"
        raise Error(operation=work.command, file=name, cause=cause, advice="give the mesh")
    return kernel


@contextmanager
def _naming_triangles(mesh: Mesh | None) -> Iterator[None]:
    """A singular block is told by its rows in the file; whoever made the mesh knows triangles."""
    try:
        yield
    except Error as error:
        pair = all_but_coincident(mesh) if mesh is not None and "is singular" in (error.cause or "") else None
        if mesh is None or pair is None:
            raise
        one, other, distance = pair
        place = ", ".join(f"{value:.6g}" for value in mesh.centroids[one])
        close = f"triangles {one} and {other}, counted from 0, are {distance:.1e} m apart at ({place})"
        cause = f"{error.cause} (rows in the file's order); {close}"
        advice = "remove one of them from the mesh, or solve with --no-preconditioner"
        raise Error(code=error.code, operation=error.operation, file=error.file, cause=cause, advice=advice) from None


def _volts(mesh: Mesh) -> np.ndarray:
    return np.ones(mesh.unknowns) if mesh.values is None else mesh.values


def _right_hand_side(mesh: Mesh | None, kernel: str, matrix: HMatrix) -> np.ndarray:
    if mesh is None:
        return np.ones(matrix.shape[0])
    return _volts(mesh) if kernel == KERNEL else _volts(mesh) * mesh.areas


def _facts(work: Work, matrix: HMatrix, mesh: Mesh | None, report: MeshReport | None) -> dict[str, Any]:
    """Of mesh, file and assembly."""
    fields: dict[str, Any] = dict(matrix.facts)
    error = fields["sampled_error"]
    fields["sampled_error"] = error if error >= 0 else None
    fields |= {"mesh": None, "mesh_report": [], "mesh_facts": None, "duplicates_removed": 0}
    if work.surface is not None and report is not None:
        fields["mesh"], fields["mesh_facts"] = work.surface.name, report.facts
        fields["mesh_report"] = [line for line in report.text.splitlines() if line]
        fields["duplicates_removed"] = report.facts["duplicate_triangles"]
    kept = work.matrix or work.store
    fields["store"] = None if kept is None else str(kept)
    fields["assembled_on"] = matrix.built.get("assembled_on")
    return fields | {name: matrix.built.get(name, 0.0) for name in ("assemble_s", "write_s")}


def _solve_facts(work: Work, matrix: HMatrix, mesh: Mesh | None, solution: Solution | None) -> dict[str, Any]:
    fields: dict[str, Any] = dict.fromkeys(
        (
            "method",
            "tol",
            "converged",
            "stopped_by",
            "relative_residual",
            "cache_hit_rate",
            "pinned_batches",
            "pinned_tiers",
            "cache_for_a_tier",
        )
    )
    fields |= dict.fromkeys(("iterations", "inner_iterations", "sweeps", "bytes_read"), 0)
    fields |= {"read_s": 0.0, "bytes_by_path": {}, "capacitance_over_4pi_eps0": None, "capacitance_farad": None}
    fields |= {"charges": [], "history": [], "continued": "no", "restarted_because": "", "sweeps_before": 0}
    if solution is None or work.solve is None:
        return fields
    counts = matrix.counts
    for name in ("converged", "stopped_by", "relative_residual", "iterations", "inner_iterations", "sweeps", "history"):
        fields[name] = getattr(solution, name)
    for name in ("continued", "restarted_because", "sweeps_before"):
        fields[name] = getattr(solution, name)
    for name in ("bytes_read", "bytes_by_path", "read_s", "pinned_batches", "pinned_tiers", "pinned_bytes"):
        fields[name] = counts[name]
    fields |= {"method": work.solve["method"], "tol": work.solve["tol"]}
    fields["cache_hit_rate"] = counts["hit_rate"]
    fields["cache_for_a_tier"] = _tier_wanted(work, matrix, fields)
    return fields | (_charges(mesh, solution.x) if mesh is not None else {})


def _tier_wanted(work: Work, matrix: HMatrix, fields: dict[str, Any]) -> int | None:
    """The cache in which the method would have found a tier; None where it found one, or no cache makes it."""
    whole_batches = work.opened.get("path") == "gpu" or "pinned_tiers" in work.opened
    if fields["method"] != "fgmres" or fields["pinned_tiers"] > 0 or whole_batches:
        return None
    if len(matrix.facts["accuracies"]) < 2:
        return None
    return cache_for_a_tier(hmatrix.info(matrix.path, context=shared_context(work.device)))


def _charges(mesh: Mesh, density: np.ndarray) -> dict[str, Any]:
    """Charge of the triangles at each potential; a capacitance where there is one potential only, and it is not 0."""
    volts, charge = _volts(mesh), density * mesh.areas / (4 * math.pi)
    levels = np.unique(volts)
    fields: dict[str, Any] = {}
    if len(levels) <= _MOST_CHARGES:
        fields["charges"] = [
            {
                "volts": float(level),
                "triangles": int((volts == level).sum()),
                "charge_over_4pi_eps0": float(charge[volts == level].sum()),
                "coulombs": float(charge[volts == level].sum()) * 4 * math.pi * VACUUM,
            }
            for level in levels
        ]
    if len(levels) == 1 and levels[0] != 0:
        fields["capacitance_over_4pi_eps0"] = float(charge.sum() / levels[0])
        fields["capacitance_farad"] = fields["capacitance_over_4pi_eps0"] * 4 * math.pi * VACUUM
    return fields


def _write(work: Work, mesh: Mesh, solution: Solution) -> None:
    """Charges in C/m²."""
    charge = solution.x * VACUUM
    if work.out is not None:
        mesh.write(work.out, surface_charge=charge, potential=_volts(mesh))
    if work.picture is not None:
        at = f" at {_volts(mesh)[0]:g} V" if len(np.unique(_volts(mesh))) == 1 else ""
        label = f"surface charge density{at}"
        hmatrix.picture(mesh, charge, work.picture, label=label, unit="C/m²", view=work.view, width=work.width)
