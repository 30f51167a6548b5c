"""Building an H-matrix into a file."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, SupportsFloat, TypedDict

import numpy as np

from penstock._error import Error
from penstock._files.file_name import file_name
from penstock._shared import shared_context
from penstock._sizes import parse_bytes
from penstock.hmatrix import _hmatrix
from penstock.hmatrix._matrix import HMatrix, OpenOptions
from penstock.hmatrix._mesh import Mesh
from penstock.hmatrix._numbers import reals, whole_number

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from penstock._api import Context, FileName

PROBLEM = "Laplace single layer"
ENCODINGS = ("tiers", "fp64")
KERNELS = ("collocation", "galerkin")
PLACES = ("auto", "host", "gpu")
BATCH_BYTES = 64 << 20
FINEST_EPS_ON_GPU = 5e-7  # of tiers: a GPU's products of them are of single precision
_OPERATION = "assemble a matrix"
Entries = Callable[[np.ndarray, np.ndarray], np.ndarray]
Progress = Callable[[int, int, int], "bool | None"]


class AssembleOptions(TypedDict, total=False):
    """How a matrix is built; what is left out has the value after the colon."""

    eta: float  # admissibility: blocks are approximated when the smaller diameter is at most eta times the distance: 2
    leaf_size: int  # clusters of at most this many unknowns are not divided: 15
    aca_plus: bool  # pivots of the cross approximation by reference rows and columns (ACA+): False
    encoding: str  # "tiers" (compressed, most significant bytes first) or "fp64" (doubles, as published codes): tiers,
    # but fp64 for an eps below 5e-7 in a context with a GPU, whose products of tiers are of single precision
    accuracies: list[float]  # of the tiers, falling, at most 6: tenfold steps from 0.1 to eps
    batch_bytes: int | str  # of doubles that one batch of leaves would take: 64 MiB, or a tenth of open's cache_bytes
    batches: int  # instead: this many batches of about equal bytes: 0
    check_rows: int  # compared with the true matrix at the end; 0 for no check, -1 for 128 or 2**22 entries: -1
    refuse_error: float  # a sampled error above this many eps is an error, and no file: 10
    assemble_on: str  # "host", "gpu", or "auto": the context's GPU for a Mesh without aca_plus, else the host: "auto"
    gpu_bytes: int | str  # of the GPU's memory for blocks under way, at most half of what is free: 512 MiB
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
        eps: relative accuracy of a product that is aimed at. How far off sampled rows are is facts["sampled_error"]; up
            to refuse_error * eps, ten times eps, is accepted without a word. refuse_error=1 is strict.
        entries: a function of two int64 arrays, rows (r,) and columns (c,), that returns their entries, (r, c) float64;
            called on this thread, one row or one column at a time. Always on the host.
        kernel: of a Mesh: "collocation" (Laplace single layer at centroids) whose integrals are exact, or
            "galerkin", which is quadrature but for a triangle with itself: an eps below 1e-6 is of no use with it.
        context: used instead of the one that this process keeps.
        progress: called after each batch with (leaves done, leaves, bytes written); False ends the work.
        open: options for the matrix that is returned, see open().

    Returns:
        The matrix. `matrix.built` holds what assembly counted: "entries_evaluated", "assemble_s", "write_s",
        "assembled_on" ("host", "cuda:0"), ...

    Raises:
        Error: options out of range, triangles that make no sound matrix, entries that are not finite, a matrix that is
            further off than refuse_error * eps, assemble_on="gpu" where that is not possible, a full disk. There is no
            file then, or the one before.
    """
    if kernel not in KERNELS:
        raise Error(operation=_OPERATION, cause=f"there is no kernel '{kernel}'", advice="use " + ", ".join(KERNELS))
    if not isinstance(eps, SupportsFloat):
        raise TypeError(f"eps must be a number such as 1e-4, not {type(eps).__name__}")
    how = _options(dict(options), open or {}) | {"eps": eps, "progress": progress}
    context = context or shared_context()
    how.setdefault("encoding", _usual_encoding(context, eps))
    if entries is None:
        built = _of_mesh(context, problem, kernel, store, how)
    else:
        built = _of_entries(context, problem, entries, store, how)
    return HMatrix(context, store, open or {}, built)


def _usual_encoding(context: Context, eps: float) -> str:
    return "fp64" if eps < FINEST_EPS_ON_GPU and not context.device["emulated"] else "tiers"


def _of_mesh(context: Context, mesh: Any, kernel: str, store: FileName, how: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(mesh, Mesh):
        raise Error(operation=_OPERATION, cause="points alone have no entries", advice="pass entries=, or a Mesh")
    about = {"problem": PROBLEM, "kernel": kernel, "unknowns": mesh.unknowns, "mesh": mesh.digest}
    how |= {"about": json.dumps(about), "galerkin": kernel == "galerkin"}
    return _hmatrix.assemble_mesh(context._raw, file_name(store, _OPERATION), mesh.vertices, mesh.triangles, how)


def _of_entries(
    context: Context, problem: Any, entries: Entries, store: FileName, how: dict[str, Any]
) -> dict[str, Any]:
    points = problem.centroids if isinstance(problem, Mesh) else reals("the points", problem)
    if points.ndim != 2 or points.shape[1] != 3:
        raise Error(operation=_OPERATION, cause=f"points have shape {points.shape}", advice="give (n, 3)")
    if not np.isfinite(points).all():
        row = int(np.flatnonzero(~np.isfinite(points).all(axis=1))[0])
        raise Error(operation=_OPERATION, cause=f"point {row} is not finite", advice="leave it out")
    if not callable(entries):
        raise TypeError(f"entries must be a function of two arrays, not {type(entries).__name__}")
    how["about"] = json.dumps({"problem": "entries by a function", "unknowns": len(points)})
    how.pop("workers")
    return _hmatrix.assemble_entries(context._raw, file_name(store, _OPERATION), points, entries, how)


def _options(options: dict[str, Any], open_with: OpenOptions) -> dict[str, Any]:
    """As the compiled module takes them. Batches are small enough for the cache that is asked for."""
    options["workers"] = whole_number("workers", options.get("workers", 0))
    if "accuracies" in options:
        options["accuracies"] = reals("accuracies", options["accuracies"]).tolist()
    for name in ("batch_bytes", "gpu_bytes"):
        if isinstance(options.get(name), str):
            options[name] = parse_bytes(options[name])
    cache = open_with.get("cache_bytes", 0)
    if isinstance(cache, str):
        cache = 0 if cache == "auto" else parse_bytes(cache)
    cache = whole_number("cache_bytes", cache)
    if cache > 0 and not {"batch_bytes", "batches"} & set(options):
        options["batch_bytes"] = min(BATCH_BYTES, max(1, cache // 10))
    return options
