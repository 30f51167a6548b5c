"""HACApK's own program beside, where `hacapk` of the suite names one: the same triangles, partition, tolerance and
method, built, multiplied and solved by both on the host's cores, turn about.

HACApK (https://github.com/Post-Peta-Crest/ppOpenHPC, MIT licence) is not part of Penstock: its Makefile makes the
program, with the BEM-BB framework and the analytic integrals of its template. It tells of itself what is taken here.
"""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import time
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import penstock as ps  # brings hmatrix when it is named
from penstock.calibration.workspace import NotPossible
from penstock_bench.engine.rounds import Absent, Probe, Sample
from penstock_bench.suites.children import signals_held

if TYPE_CHECKING:
    from penstock_bench.engine.run import Run
    from penstock_bench.suites.hmatrix.matrices import Matrices

THEIRS, OURS = "beside: HACApK", "beside: penstock"
GROUP = "beside"
MOST_ITERATIONS = 500  # of both
MOST_SECONDS = 600.0  # of one run of its program
MOST_BYTES = 1 << 30  # of each file that it writes
MOST_DECADES = 300.0  # that a double holds
MOST_SAID = 1 << 22  # bytes of what it prints that are looked at: it needs a few thousand
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[EeDd][-+]?\d+)?"
# Its number, its seconds, and the decades of the residual, which may grow.
_ITERATION = re.compile(rf"^[ \t]+(\d+)[ \t]+{_NUMBER}[ \t]+({_NUMBER}|[-+]?NaN|[-+]?Infinity)[ \t]*$", re.MULTILINE)
_LEAVES = re.compile(r"No\. of nsmtx\s+(\d+)\s+(\d+)")


def probes(run: Run, stored: Matrices) -> list[Probe]:
    program = str(run.settings.get("hacapk", "none"))
    if program == "none":
        return []
    return [
        Probe(THEIRS, partial(_theirs, run, stored, Path(program)), GROUP),
        Probe(OURS, partial(_ours, run, stored), GROUP),
    ]


def write_pbf(mesh: ps.hmatrix.Mesh, path: Path) -> None:
    """The input of the BEM-BB framework: vertices in metres, triangles that count from 0, and 1 V on each."""
    with path.open("w") as file:
        file.write(f"{len(mesh.vertices)}\n")
        file.writelines(f"{x:.17g} {y:.17g} {z:.17g}\n" for x, y, z in mesh.vertices)
        file.write(f"{mesh.unknowns}\n3\n0\n1\n")  # corners, whole numbers and reals of a triangle
        file.writelines(f"{a} {b} {c}\n" for a, b, c in mesh.triangles)
        file.write("1.0\n" * mesh.unknowns)


def _theirs(run: Run, stored: Matrices, program: Path, _turn: int) -> Sample:
    if not program.is_file():
        raise Absent(f"there is no {program}")
    eps = float(run.settings["eps"])
    with TemporaryDirectory(prefix="hacapk-", dir=run.workspace.directory, ignore_cleanup_errors=True) as place:
        folder = Path(place)
        write_pbf(stored.mesh, folder / "mesh.pbf")
        (folder / "bem-bb-config.txt").write_text(f"1\nBICGSTAB\n{eps:g}\n{MOST_ITERATIONS}\n")
        sample = parsed(_run(program.resolve(), folder))
    return _solved(sample, sample["relative_residual"] <= eps, "HACApK")


def _solved(sample: Sample, converged: bool, who: str) -> Sample:
    """Seconds of a solve that came to no solution compare with nothing."""
    if not converged:
        iterations, residual = sample["iterations"], sample["relative_residual"]
        raise NotPossible(f"{who} found no solution: {residual:.1e} after {iterations} iterations")
    return sample


def _run(program: Path, folder: Path) -> str:
    """What the program prints. It is alone with the machine, and ends with all that it started."""
    threads = str(len(os.sched_getaffinity(0)))
    environment = os.environ | {"OMP_NUM_THREADS": threads, "OMP_STACKSIZE": "64M"}
    said, complaints = folder / "said.txt", folder / "complaints.txt"
    with said.open("wb") as output, complaints.open("wb") as errors:
        running = None
        try:
            with signals_held():
                running = subprocess.Popen(
                    [program, "mesh.pbf"],
                    cwd=folder,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=errors,
                    start_new_session=True,
                )
            _wait(running)
        except OSError as error:
            raise NotPossible(f"HACApK: {error}") from None
        finally:
            code = _ended(running) if running is not None else 0
    texts = [_read(file) for file in (said, complaints)]
    if code != 0:
        lines = [line for text in texts for line in text.splitlines()]
        raise NotPossible(f"HACApK ended with exit code {code}: {' | '.join(lines[-2:])[-200:]}")
    return texts[0]


def _wait(running: subprocess.Popen[bytes]) -> None:
    """Until its first process has ended, which is not waited for: until then no other process can have its number."""
    last = time.monotonic() + MOST_SECONDS
    most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    most = MOST_BYTES if most == resource.RLIM_INFINITY else min(most, MOST_BYTES)
    resource.prlimit(running.pid, resource.RLIMIT_FSIZE, (most, most))
    while os.waitid(os.P_PID, running.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() > last:
            raise NotPossible(f"HACApK did not end within {MOST_SECONDS:g} s")
        time.sleep(0.02)


def _ended(running: subprocess.Popen[bytes]) -> int:
    """Its exit code. Its group is ended first."""
    os.killpg(running.pid, signal.SIGKILL)
    return running.wait()


def _read(file: Path) -> str:
    with file.open("rb") as text:
        return text.read(MOST_SAID).decode(errors="replace")


def parsed(said: str) -> Sample:
    """What its program prints, as a sample. Raises NotPossible where it did not come to an end."""
    iterations = _ITERATION.findall(said)
    leaves = _LEAVES.search(said)
    if not iterations or leaves is None:
        raise NotPossible("HACApK told of no leaves, or of no iteration: is it the program of the BEM-BB framework?")
    last, decades = iterations[-1]
    residual = 10.0 ** min(_number(decades), MOST_DECADES)
    size = int(_value(said, r"Memory of the H-matrix") * 2**20)  # it prints 2**20 bytes as "Mbyte"
    return {
        "subject": "beside",
        "bytes": size,
        "bytes_fp64": size,
        "seconds": _value(said, "time_construction_Hmatrix"),
        "product_s": _value(said, "time_AX_once"),
        "solve_s": _value(said, "time_HACApK_solve"),
        "iterations": int(last),
        "relative_residual": residual,
        "low_rank_leaves": int(leaves[1]),
        "dense_leaves": int(leaves[2]),
    }


def _value(said: str, name: str) -> float:
    found = re.search(rf"{name}\s*=\s*({_NUMBER})(?!\S)", said)
    if found is None or not _number(found[1]) > 0:
        raise NotPossible(f"HACApK did not tell of its {name}")
    return _number(found[1])


def _number(text: str) -> float:
    return float(text.upper().replace("D", "E"))


def _ours(run: Run, stored: Matrices, _turn: int) -> Sample:
    """Doubles, in the number of batches of the suite, by the host; writing them is told apart, for HACApK does not."""
    if not run.emulated:
        raise NotPossible("HACApK runs on the host: give --device host")
    path, eps = run.workspace.directory / "beside.hmat", float(run.settings["eps"])
    batches, sweeps = int(run.settings["batches"]), int(run.settings["product_sweeps"])
    try:
        with ps.hmatrix.assemble(
            stored.mesh, store=path, eps=eps, encoding="fp64", batches=batches, context=run.context
        ) as made:
            built = made.built
            product_s = made.product_seconds(sweeps) / sweeps
            found = ps.hmatrix.solve(
                made, stored.ones(), method="bicgstab", tol=eps, max_iterations=MOST_ITERATIONS, preconditioner=False
            )
    finally:
        path.unlink(missing_ok=True)
    sample: Sample = {
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
    return _solved(sample, found.converged, "penstock")
