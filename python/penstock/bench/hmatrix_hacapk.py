"""HACApK's own program beside, where `hacapk` of the suite names one: the same triangles, partition, tolerance and
method, built, multiplied and solved by both on the host's cores, turn about.

HACApK (https://github.com/Post-Peta-Crest/ppOpenHPC, MIT licence) is not part of Penstock: its Makefile makes the
program, with the BEM-BB framework and the analytic integrals of its template. It tells of itself what is taken here.
"""

from __future__ import annotations

import os
import re
import subprocess
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from penstock import hmatrix
from penstock.bench.rounds import Absent, Probe, Sample
from penstock.bench.workspace import NotPossible

if TYPE_CHECKING:
    from penstock.bench.hmatrix import Bench

THEIRS, OURS = "beside: HACApK", "beside: penstock"
GROUP = "beside"
MOST_ITERATIONS = 500  # of both
MOST_SECONDS = 600.0  # of one run of its program
_NUMBER = r"=\s*([-+0-9.]+(?:[EeDd][-+]?\d+)?)"
_ITERATION = re.compile(r"^\s+(\d+)\s+\S+\s+(-\d\S*)\s*$", re.MULTILINE)  # number, seconds, decades of the residual
_LEAVES = re.compile(r"No\. of nsmtx\s+(\d+)\s+(\d+)")


def probes(bench: Bench) -> list[Probe]:
    program = str(bench.settings["hacapk"])
    if program == "none":
        return []
    return [
        Probe(THEIRS, partial(_theirs, bench, Path(program)), GROUP),
        Probe(OURS, partial(_ours, bench), GROUP),
    ]


def write_pbf(mesh: hmatrix.Mesh, path: Path) -> None:
    """The input of the BEM-BB framework: vertices in metres, triangles that count from 0, and 1 V on each."""
    with path.open("w") as file:
        file.write(f"{len(mesh.vertices)}\n")
        file.writelines(f"{x:.17g} {y:.17g} {z:.17g}\n" for x, y, z in mesh.vertices)
        file.write(f"{mesh.unknowns}\n3\n0\n1\n")  # corners, whole numbers and reals of a triangle
        file.writelines(f"{a} {b} {c}\n" for a, b, c in mesh.triangles)
        file.write("1.0\n" * mesh.unknowns)


def _theirs(bench: Bench, program: Path, _turn: int) -> Sample:
    if not program.is_file():
        raise Absent(f"there is no {program}")
    folder = bench.workspace.directory / "hacapk"
    folder.mkdir()
    try:
        write_pbf(bench.mesh, folder / "mesh.pbf")
        solver = f"1\nBICGSTAB\n{float(bench.settings['eps']):g}\n{MOST_ITERATIONS}\n"
        (folder / "bem-bb-config.txt").write_text(solver)
        said = _run(program.resolve(), folder)
    finally:
        for one in folder.iterdir():
            one.unlink()
        folder.rmdir()
    return parsed(said)


def _run(program: Path, folder: Path) -> str:
    threads = str(len(os.sched_getaffinity(0)))
    environment = os.environ | {"OMP_NUM_THREADS": threads, "OMP_STACKSIZE": "64M"}
    try:
        ran = subprocess.run(
            [program, "mesh.pbf"], cwd=folder, env=environment, capture_output=True, text=True, timeout=MOST_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotPossible(f"HACApK: {error}") from None
    if ran.returncode != 0:
        said = [*ran.stdout.splitlines(), *ran.stderr.splitlines()]
        raise NotPossible(f"HACApK ended with exit code {ran.returncode}: {' | '.join(said[-2:])[-200:]}")
    return ran.stdout


def parsed(said: str) -> Sample:
    """What its program prints, as a sample. Raises NotPossible where it did not come to an end."""
    iterations = _ITERATION.findall(said)
    leaves = _LEAVES.search(said)
    if not iterations or leaves is None:
        raise NotPossible("HACApK told of no leaves, or of no iteration: is it the program of the BEM-BB framework?")
    last, decades = iterations[-1]
    size = int(_value(said, r"Memory of the H-matrix") * 2**20)  # it prints 2**20 bytes as "Mbyte"
    return {
        "subject": "beside",
        "bytes": size,
        "bytes_fp64": size,
        "seconds": _value(said, "time_construction_Hmatrix"),
        "product_s": _value(said, "time_AX_once"),
        "solve_s": _value(said, "time_HACApK_solve"),
        "iterations": int(last),
        "relative_residual": 10.0 ** float(decades),
        "low_rank_leaves": int(leaves[1]),
        "dense_leaves": int(leaves[2]),
    }


def _value(said: str, name: str) -> float:
    found = re.search(rf"{name}\s*{_NUMBER}", said)
    if found is None:
        raise NotPossible(f"HACApK did not tell of its {name}")
    return float(found[1].replace("D", "E").replace("d", "e"))


def _ours(bench: Bench, _turn: int) -> Sample:
    """Doubles, in the number of batches of the suite, by the host; writing them is told apart, for HACApK does not."""
    if not bench.context.device["emulated"]:
        raise NotPossible("HACApK runs on the host: give --device host")
    path, eps = bench.workspace.directory / "beside.hmat", float(bench.settings["eps"])
    batches, sweeps = int(bench.settings["batches"]), int(bench.settings["product_sweeps"])
    try:
        with hmatrix.assemble(
            bench.mesh, store=path, eps=eps, encoding="fp64", batches=batches, context=bench.context
        ) as made:
            built = made.built
            product_s = made.product_seconds(sweeps) / sweeps
            found = hmatrix.solve(
                made, bench.ones(), method="bicgstab", tol=eps, max_iterations=MOST_ITERATIONS, preconditioner=False
            )
    finally:
        path.unlink(missing_ok=True)
    return {
        "subject": "beside",
        "bytes": built["bytes_fp64"],
        "bytes_fp64": built["bytes_fp64"],
        "seconds": built["assemble_s"],
        "write_s": built["write_s"],
        "product_s": product_s,
        "solve_s": found.seconds,
        "iterations": found.iterations,
        "relative_residual": found.relative_residual,
        "low_rank_leaves": built["low_rank_leaves"],
        "dense_leaves": built["dense_leaves"],
    }
