"""Building an H-matrix into a file."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from penstock import _core
from penstock._error import Error
from penstock._shared import shared_context
from penstock._sizes import parse_bytes
from penstock.hmatrix._matrix import HMatrix, OpenOptions
from penstock.hmatrix._mesh import Mesh

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from penstock._api import Context, FileName

Entries = Callable[[np.ndarray, np.ndarray], np.ndarray]
Progress = Callable[[int, int, int], "bool | None"]


class AssembleOptions(TypedDict, total=False):
    """How a matrix is built; what is left out has the value after the colon."""

    eta: float  # admissibility: blocks are approximated when the smaller diameter is at most eta times the distance: 2
    leaf_size: int  # clusters of at most this many unknowns are not divided: 15
    aca_plus: bool  # pivots of the cross approximation by reference rows and columns (ACA+): False
    encoding: str  # "tiers" (compressed, most significant bytes first) or "fp64" (doubles, as published codes): "tiers"
    accuracies: list[float]  # of the tiers, falling, at most 6: tenfold steps from 0.1 to eps
    batch_bytes: int | str  # of doubles that one batch of leaves would take: 64 MiB
    batches: int  # instead: this many batches of about equal bytes: 0
    check_rows: int  # compared with the true matrix at the end; 0 for no check: 32
    refuse_error: float  # a sampled error above this many eps is an error, and no file: 10
    workers: int  # threads; 0 for one a core. A function of your own is called by one: 0


def assemble(  # noqa: PLR0913 - one keyword a choice
    problem: Mesh | Any,
    *,
    store: FileName,
    eps: float = 1e-4,
    entries: Entries | None = None,
    kernel: str = "collocation",
    context: Context | None = None,
    progress: Progress | None = None,
    open: OpenOptions | None = None,  # noqa: A002 - what it is for
    **options: Unpack[AssembleOptions],
) -> HMatrix:
    """Builds the H-matrix of a boundary-element problem into a file, and opens it.

    Clustering and admissibility as in HACApK; low-rank blocks by adaptive cross approximation with partial pivoting
    (Bebendorf 2000), each checked at entries drawn by a fixed rule. Batch by batch: memory holds two batches, never the
    matrix.

    Args:
        problem: a Mesh; or, with `entries`, the points of the unknowns, (n, 3).
        store: the file, conventionally .hmat. It appears when it is complete.
        eps: relative accuracy of a product.
        entries: a function of two int64 arrays, rows (r,) and columns (c,), that returns their entries, (r, c) float64;
            called on this thread, one row or one column at a time.
        kernel: of a Mesh: "collocation" (Laplace single layer at centroids) or "galerkin", both exact.
        context: used instead of the one that this process keeps.
        progress: called after each batch with (leaves done, leaves, bytes written); False ends the work.
        open: options for the matrix that is returned, see open().

    Returns:
        The matrix. `matrix.built` holds what assembly counted: "entries_evaluated", "assemble_s", "write_s", ...

    Raises:
        Error: options out of range, triangles that make no sound matrix, entries that are not finite, a matrix that is
            further off than refuse_error * eps, a full disk. There is no file then, or the one before.
    """
    if kernel not in ("collocation", "galerkin"):
        raise Error(
            operation="assemble a matrix", cause=f"there is no kernel '{kernel}'", advice="collocation, galerkin"
        )
    how: dict[str, Any] = dict(options, eps=eps, progress=progress)
    if "batch_bytes" in how and isinstance(how["batch_bytes"], str):
        how["batch_bytes"] = parse_bytes(how["batch_bytes"])
    context = context or shared_context()
    if isinstance(problem, Mesh) and entries is None:
        how["about"] = json.dumps({"problem": "Laplace single layer", "kernel": kernel, "unknowns": problem.unknowns})
        how |= {"galerkin": kernel == "galerkin", "workers": how.get("workers", 0)}
        raw = context._raw
        built = _core.hmatrix_assemble_mesh(raw, store, problem.vertices, problem.triangles, how)
    elif entries is not None:
        points = problem.centroids if isinstance(problem, Mesh) else problem
        points = np.ascontiguousarray(points, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != 3:
            raise Error(operation="assemble a matrix", cause=f"points have shape {points.shape}, and need (n, 3)")
        how["about"] = json.dumps({"problem": "entries by a function", "unknowns": len(points)})
        how.pop("workers", None)
        built = _core.hmatrix_assemble_entries(context._raw, store, points, entries, how)
    else:
        raise Error(
            operation="assemble a matrix", cause="points alone have no entries", advice="pass entries=, or a Mesh"
        )
    return HMatrix(context, store, open or {}, built)
