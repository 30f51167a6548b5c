"""An H-matrix in a file, as an operator."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from penstock import _core
from penstock._error import Error
from penstock._shared import shared_context
from penstock._sizes import parse_bytes

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from penstock._api import Context, FileName


class OpenOptions(TypedDict, total=False):
    """Of an open matrix; what is left out has the value after the colon."""

    cache_bytes: int | str  # memory for matrix bytes; 0 for as much as the matrix takes: 0
    path: str  # how batches are read: "auto", "buffered", "direct", ...: "auto"
    pinned_tiers: int  # first tiers of every batch that stay in memory; -1 for as many as help: -1
    pinned_batches: int  # batches, from the first, that stay in memory whole; -1 for as many as fit: -1
    read_ahead: int  # batches under way beside the one in use; -1 for as many as there is room for: -1
    zig_zag: bool  # every other sweep backwards: False
    verify: str  # checksums of what is read: "first" time, "always", "never": "first"
    workers: int  # threads; 0 for one a core: 0
    block_size: int  # of the block-Jacobi preconditioner, at most 1024; 0 for none: 256


class HMatrix:
    """A stored matrix. Made by open() and assemble(); `A @ x`, `A.shape` and `A.dtype` are what SciPy asks of an
    operator (scipy.sparse.linalg.aslinearoperator(A)). One thread uses it at a time.

    Attributes:
        path: its file.
        built: what assembly counted, when this object assembled it; else {}.
    """

    def __init__(self, context: Context, path: FileName, options: OpenOptions, built: dict[str, Any]) -> None:
        self.path = os.fsdecode(path)
        self.built = built
        self._context = context
        self._options: dict[str, Any] = dict(options)
        self._system: _core.HMatrixSystem | None = self._open(self._options)

    def _open(self, options: dict[str, Any]) -> _core.HMatrixSystem:
        how = dict(options)
        if isinstance(how.get("cache_bytes"), str):
            how["cache_bytes"] = parse_bytes(how["cache_bytes"])
        return _core.HMatrixSystem(self._context._raw, self.path, how)

    def __repr__(self) -> str:
        state = "closed" if self._system is None else f"{self.shape[0]} x {self.shape[1]}"
        return f"<penstock.hmatrix.HMatrix {self.path!r}, {state}>"

    @property
    def _raw(self) -> _core.HMatrixSystem:
        if self._system is None:
            raise Error(operation="use a matrix", file=self.path, cause="it is closed")
        return self._system

    def reopen(self, **options: Unpack[OpenOptions]) -> None:
        """Opens the file again with these options in place of those given before: another cache, another path. When that
        fails the matrix is open as it was before.
        """
        before = self._options
        self._system = None  # its memory goes first
        try:
            self._system = self._open(before | options)
            self._options = before | options
        except Error:
            self._system = self._open(before)
            raise

    def close(self) -> None:
        """Lets go of memory and file. Idempotent."""
        self._system = None

    def __enter__(self) -> HMatrix:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def shape(self) -> tuple[int, int]:
        """(unknowns, unknowns)."""
        unknowns = self._raw.head["unknowns"]
        return (unknowns, unknowns)

    @property
    def dtype(self) -> np.dtype:
        """float64."""
        return np.dtype(np.float64)

    @property
    def facts(self) -> dict[str, Any]:
        """Of the file: unknowns, low_rank_leaves, dense_leaves, batches, bytes_fp64 (of the factors as doubles, at eps),
        bytes_stored (of the file), encoding, accuracies of its tiers, eps, sampled_error, ...
        """
        return self._raw.head

    @property
    def about(self) -> dict[str, Any]:
        """The problem, as whoever built the file described it."""
        return json.loads(self._raw.about)

    @property
    def counts(self) -> dict[str, Any]:
        """Since it was opened: bytes_read from storage, bytes_by_path (what the transfers' evidence says), sweeps,
        batches_taken and batches_hit (those that needed no read), read_s (waiting for storage), pinned_bytes, ...
        """
        return self._raw.counts

    def matvec(self, x: Any, *, accuracy: float = 0.0) -> np.ndarray:
        """A x.

        Args:
            x: (n,) or (n, k): k vectors at once cost one sweep.
            accuracy: 0 for all that is stored; else only as much is read as this relative accuracy needs.
        """
        given = np.asarray(x, dtype=np.float64)
        if given.ndim not in (1, 2) or given.shape[0] != self.shape[1]:
            cause = f"x has shape {given.shape}, and the matrix {self.shape}"
            raise Error(operation="multiply", file=self.path, cause=cause)
        columns = np.ascontiguousarray(given.reshape(given.shape[0], -1).T)
        if columns.size == 0:
            return np.empty(given.shape)
        made = self._raw.multiply(columns, accuracy).T
        return made[:, 0] if given.ndim == 1 else np.asfortranarray(made)

    matmat = matvec

    def __matmul__(self, x: Any) -> np.ndarray:
        return self.matvec(x)


def open(  # noqa: A001 - the name says what it does
    path: FileName, *, context: Context | None = None, **options: Unpack[OpenOptions]
) -> HMatrix:
    """Opens a .hmat file for products and solves.

    Raises:
        Error: not_found, ...; invalid_argument for a file that is none, was cut short or is damaged, and for a cache
            that cannot hold a batch; unsupported for one of another version.
    """
    return HMatrix(context or shared_context(), path, options, {})
