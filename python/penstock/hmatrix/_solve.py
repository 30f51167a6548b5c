"""Solving with a stored H-matrix."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from penstock._error import Error
from penstock.hmatrix._numbers import reals

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from penstock._api import FileName
    from penstock.hmatrix._matrix import HMatrix

METHODS = ("fgmres", "gmres", "bicgstab", "gcr", "idr")


@dataclass(frozen=True)
class Solution:
    """What a solve found.

    Attributes:
        x: the solution, of the shape of b.
        converged: the true residual of every right-hand side is below the tolerance.
        stopped_by: "tolerance", "iterations", "callback", "breakdown: ...", "stagnation: ...".
        iterations: the most of any right-hand side; with fgmres, of the outer method.
        inner_iterations: of fgmres: products with the part of the matrix that is in memory.
        sweeps: products with the whole matrix, the check of the residual not counted.
        relative_residual: true ||b - A x|| / ||b||, the largest of all right-hand sides.
        residuals: of each.
        history: the residual as the method believed, after each iteration.
        seconds: of the solve, reading included.
        read_s: of these, starting reads and waiting for them.
        bytes_read: from storage, by this solve.
        continued: "no"; "repeated" from a checkpoint: the steps before it were made again with the products kept beside
            it, so that all is as if nothing had happened; "restarted" from its iterate, the method begun anew.
        restarted_because: why its steps could not be repeated; else "".
        sweeps_before: of `sweeps`, those before the checkpoint, which this solve did not make.
    """

    x: np.ndarray
    converged: bool
    stopped_by: str
    iterations: int
    inner_iterations: int
    sweeps: int
    relative_residual: float
    residuals: list[float]
    history: list[float]
    seconds: float
    read_s: float
    bytes_read: int
    continued: str
    restarted_because: str
    sweeps_before: int


class SolveOptions(TypedDict, total=False):
    """How a method works; what is left out has the value after the colon."""

    max_iterations: int  # of the outer method: 500
    restart: int  # gmres, fgmres: vectors before a restart, 0 for none; gcr: m, 0 for 8; idr: s, 0 for 4: 0
    relaxed: bool  # gmres, fgmres: products only as accurate as the residual needs, so less is read: False
    inner_tolerance: float  # fgmres: of the inner solve: 1e-2
    inner_iterations: int  # fgmres: at most, of an inner solve: 60
    surrogate: bool  # fgmres: solve inside with the tiers in memory: True
    preconditioner: bool  # block-Jacobi: True


def solve(  # noqa: PLR0913 - one keyword a choice
    matrix: HMatrix,
    b: Any,
    *,
    method: str = "fgmres",
    tol: float = 1e-5,
    x0: Any = None,
    cache_bytes: int | str | None = None,
    path: str | None = None,
    callback: Callable[[int, int, float], bool | None] | None = None,
    checkpoint: FileName | None = None,
    checkpoint_sweeps: int = 5,
    **options: Unpack[SolveOptions],
) -> Solution:
    """Solves A x = b.

    "fgmres", the default, keeps the most significant bytes of every batch in memory, solves with them inside (GMRES
    with block-Jacobi), and reads the whole matrix only for the outer residual: few sweeps over storage. "gmres",
    "bicgstab" (as HACApK runs it: 2 sweeps an iteration), "gcr" (truncated) and "idr" (van Gijzen & Sonneveld 2011)
    sweep in each iteration.

    Args:
        matrix: from open() or assemble().
        b: right-hand sides, (n,) or (n, k); k of them share each sweep.
        tol: of the true residual, relative to b.
        x0: the first guess, of the shape of b; None for 0.
        cache_bytes, path: open the matrix again with this memory, or this path, before the solve.
        callback: called after each iteration with (iteration, sweeps, residual); False ends the solve.
        checkpoint: a file to keep the state in every `checkpoint_sweeps` sweeps, and beside it CHECKPOINT.products with
            a vector for each sweep. When it is there and of this matrix and right-hand side, the solve goes on from it:
            to the same numbers where method and options are the same, else with the method begun anew from its iterate.
            Both are removed when the solve has converged.

    Raises:
        Error: unknown methods, options out of range, numbers that are not finite, a checkpoint of another problem, and
            whatever reading the matrix raises. A solve that does not converge is no error: see Solution.
    """
    if method not in METHODS:
        raise Error(operation="solve", cause=f"there is no method '{method}'", advice="use " + ", ".join(METHODS))
    _reopen(matrix, cache_bytes, path)
    given = reals("b", b)
    if given.ndim not in (1, 2) or given.shape[0] != matrix.shape[0] or given.size == 0:
        raise Error(operation="solve", cause=f"b has shape {given.shape}, and the matrix {matrix.shape}")
    first = np.zeros(given.shape) if x0 is None else reals("x0", x0)
    if first.shape != given.shape:
        raise Error(operation="solve", cause=f"x0 has shape {first.shape}, and b {given.shape}")
    how: dict[str, Any] = dict(options, method=method, tol=tol, progress=callback)
    if checkpoint is not None:
        checkpoint = os.path.abspath(checkpoint)  # noqa: PTH100 - it may be bytes
        how |= {"checkpoint": checkpoint, "checkpoint_sweeps": checkpoint_sweeps}
    with matrix._lock:
        before, began = matrix.counts, time.monotonic()
        x, found = matrix._raw.solve(matrix._context._raw, _columns(given), _columns(first), how)
        seconds, after = time.monotonic() - began, matrix.counts
    if checkpoint is not None and found["converged"]:
        _remove(checkpoint)
    return Solution(
        x=x[0] if given.ndim == 1 else np.asfortranarray(x.T),
        seconds=seconds,
        read_s=after["read_s"] - before["read_s"],
        bytes_read=after["bytes_read"] - before["bytes_read"],
        **found,
    )


def _reopen(matrix: HMatrix, cache_bytes: int | str | None, path: str | None) -> None:
    """Not where it is open that way already: what is in memory would be read again."""
    asked: dict[str, Any] = {"cache_bytes": cache_bytes, "path": path}
    asked = {name: value for name, value in asked.items() if value is not None}
    if any(matrix._options.get(name, "auto") != value for name, value in asked.items()):
        matrix.reopen(**asked)


def _columns(values: np.ndarray) -> np.ndarray:
    """(k, n), each right-hand side in one piece."""
    return np.ascontiguousarray(values.reshape(values.shape[0], -1).T)


def _remove(checkpoint: FileName) -> None:
    import contextlib

    name = os.fsencode(checkpoint)  # it may be bytes
    for one in (name, name + b".products"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(one)  # noqa: PTH108
