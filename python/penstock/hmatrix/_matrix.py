"""An H-matrix in a file, as an operator."""

from __future__ import annotations

import json
import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from penstock._error import Error
from penstock._files.file_name import file_name
from penstock._shared import shared_context
from penstock._sizes import parse_bytes
from penstock.hmatrix import _hmatrix
from penstock.hmatrix._memory import cache_by_memory
from penstock.hmatrix._numbers import is_complex, reals

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from penstock._api import Context, FileName


class OpenOptions(TypedDict, total=False):
    """Options of an open matrix; what is left out has the value after the colon."""

    cache_bytes: int | str  # memory for matrix bytes, as "8 GiB"; 0 for what the whole matrix takes: half of the free
    path: str  # how batches are read: "auto", "buffered", ..., "gpu" (by the device's own threads): "auto"
    on_host: bool  # products on the host though the context has a GPU: False
    pinned_tiers: int  # first tiers of every batch that stay in memory; -1 for as many as help: -1
    pinned_batches: int  # batches, from the first, that stay in memory whole; -1 for as many as fit: -1
    read_ahead: int  # batches under way beside the one in use; -1 for as many as there is room for: -1
    zig_zag: bool  # every other sweep backwards: False
    verify: str  # checksums of what is read: "first" time, "always", "never": "first"
    workers: int  # threads; 0 for one a core: 0
    block_size: int  # of the block-Jacobi preconditioner, at most 1024; 0 for none: 64


class HMatrix:
    """A stored matrix. Made by open() and assemble(); `A @ x`, `A.shape` and `A.dtype` are what SciPy asks of an
    operator (scipy.sparse.linalg.aslinearoperator(A)). Threads may share it: they wait for each other.

    Attributes:
        path: its file.
        built: what assembly counted, when this object assembled it; else {}.
    """

    __array_ufunc__ = None  # x @ A is a TypeError: products are from the left only

    def __init__(self, context: Context, path: FileName, options: OpenOptions, built: dict[str, Any]) -> None:
        self.path = os.path.abspath(file_name(path, "open a matrix"))  # noqa: PTH100 - it is opened again, anywhere
        self.built = built
        self._context = context
        self._options: dict[str, Any] = dict(options)
        self._lock = threading.RLock()  # of the system: its products and solves; a solve's callback may multiply
        self._closed = False
        self._system: _hmatrix.HMatrixSystem | None = None  # opened when first needed
        self._file: tuple[int, ...] | None = None  # which file it is: a name may come to mean another
        if built:
            self._refuse_another_file()

    def _open(self, options: dict[str, Any]) -> _hmatrix.HMatrixSystem:
        how = dict(options)
        cache = how.get("cache_bytes", "auto")
        if cache == "auto":
            how["cache_bytes"] = min(
                cache_by_memory(self._context.device, bool(how.get("on_host"))), _enough_for(self.path)
            )
        elif isinstance(cache, str):
            how["cache_bytes"] = parse_bytes(cache)
        self._refuse_another_file()
        system = _hmatrix.HMatrixSystem(self._context._raw, self.path, how)
        self._refuse_another_file()  # nor one that came while it was opened
        return system

    def _refuse_another_file(self) -> None:
        """Notes which file it is the first time. Opening says what is wrong with one that is not there."""
        found = _identity(self.path)
        if found is None or found == self._file:
            return
        if self._file is not None:
            cause = "another file has its name since it was opened, or it was changed"
            advice = "open it anew with penstock.hmatrix.open"
            raise Error(operation="open a matrix again", file=self.path, cause=cause, advice=advice)
        self._file = found

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"{self.shape[0]} x {self.shape[1]}"
        return f"<penstock.hmatrix.HMatrix {self.path!r}, {state}>"

    @property
    def _raw(self) -> _hmatrix.HMatrixSystem:
        with self._lock:
            if self._closed:
                raise Error(operation="use a matrix", file=self.path, cause="it is closed", advice="open it again")
            if self._system is None:
                self._system = self._open(self._options)
            return self._system

    def reopen(self, **options: Unpack[OpenOptions]) -> None:
        """Opens the file again with these options in place of those given before: another cache, another path. When
        that fails the options are as they were before.

        Raises:
            Error: as open(); and when another file has its name by now: it would be another matrix.
        """
        with self._lock:
            before, self._system = self._options, None  # its memory goes first
            self._options = before | options
            try:
                _ = self._raw
            except BaseException:
                self._options = before
                raise

    def close(self) -> None:
        """Lets go of memory and file. Idempotent."""
        with self._lock:
            self._system, self._closed = None, True

    def __enter__(self) -> HMatrix:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def shape(self) -> tuple[int, int]:
        """(unknowns, unknowns)."""
        unknowns = self.facts["unknowns"]
        return (unknowns, unknowns)

    @property
    def dtype(self) -> np.dtype:
        """float64."""
        return np.dtype(np.float64)

    @property
    def facts(self) -> dict[str, Any]:
        """Facts of the file: unknowns, low_rank_leaves, dense_leaves, batches, bytes_fp64 (of the factors as doubles,
        at eps), bytes_stored (of the file), encoding, accuracies of its tiers, eps, sampled_error, ..."""
        return self._raw.head if not self.built or self._system is not None else dict(self.built)

    @property
    def about(self) -> dict[str, Any]:
        """The problem, as whoever built the file described it."""
        return _described(self._raw.about, self.path)

    @property
    def counts(self) -> dict[str, Any]:
        """Since it was opened: bytes_read from storage, bytes_by_path (what the transfers' evidence says), sweeps,
        batches_taken, bytes_taken and bytes_hit (those that needed no read), hit_rate (the share of them),
        read_s (starting reads and waiting for them), pinned_bytes, ...
        """
        with self._lock:  # a product of another thread counts while it runs
            return self._raw.counts

    def matvec(self, x: Any, *, accuracy: float = 0.0) -> np.ndarray:
        """A x.

        Args:
            x: (n,) or (n, k): k vectors at once cost one sweep. Complex vectors count as two.
            accuracy: 0 for all that is stored; else only as much is read as this relative accuracy needs.
        """
        if is_complex(x):
            given = np.asarray(x)
            parts = self.matvec(np.stack([given.real, given.imag], -1).reshape(len(given), -1), accuracy=accuracy)
            return (parts[:, 0::2] + 1j * parts[:, 1::2]).reshape(given.shape)
        given = reals("x", x)
        if given.ndim not in (1, 2) or given.shape[0] != self.shape[1]:
            cause = f"x has shape {given.shape}, and the matrix {self.shape}"
            raise Error(operation="multiply", file=self.path, cause=cause, advice="give (n,) or (n, k)")
        columns = np.ascontiguousarray(given.reshape(given.shape[0], -1).T)
        if columns.size == 0:
            return np.empty(given.shape)
        with self._lock:
            made = self._raw.multiply(columns, accuracy).T
        return made[:, 0] if given.ndim == 1 else np.asfortranarray(made)

    matmat = matvec

    def product_seconds(self, products: int = 1, *, accuracy: float = 0.0) -> float:
        """Seconds of so many products, one after the other, with a vector that is in the device's memory already: what
        a sweep of a solver takes. `matvec` also turns vectors between the user's order and the matrix's.
        """
        if products < 1:
            cause = f"products cannot be {products}"
            raise Error(operation="time products", file=self.path, cause=cause, advice="give a number above 0")
        with self._lock:
            return self._raw.product_seconds(products, accuracy)

    def __matmul__(self, x: Any) -> np.ndarray:
        return self.matvec(x)


def _described(text: str, path: str) -> dict[str, Any]:
    """What a file says about its problem, which any program may have written."""
    with suppress(ValueError, RecursionError):
        found = json.loads(text)
        if isinstance(found, dict):
            return found
    cause = "what it says about its problem is not a JSON object"
    raise Error(operation="open a matrix", file=path, cause=cause, advice="build the matrix again")


def _identity(path: str) -> tuple[int, ...] | None:
    """Equal for the same file with the same content; None where there is no file."""
    with suppress(OSError):
        found = os.stat(path)  # noqa: PTH116 - the name may be bytes
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
    return None


def _enough_for(path: str) -> int:
    """Memory that holds all of a file in pages of any size: a page cache takes all that it is given."""
    with suppress(OSError):  # opening it will say what is wrong
        return 2 * os.stat(path).st_size + (64 << 20)  # noqa: PTH116 - the name may be bytes
    return 64 << 20


def open(  # noqa: A001 - the name says what it does
    file: FileName, /, *, context: Context | None = None, **options: Unpack[OpenOptions]
) -> HMatrix:
    """Opens a .hmat file for products and solves.

        A = ps.hmatrix.open("dragon.hmat", cache_bytes="8 GiB", path="direct")

    Raises:
        Error: not_found, ...; invalid_argument for a file that is none, was cut short or is damaged, and for a cache
            that cannot hold a batch; unsupported for one of another version.
    """
    matrix = HMatrix(context or shared_context(), file, options, {})
    _ = matrix._raw  # what is wrong with file or options is said now
    return matrix


def info(file: FileName, /, *, context: Context | None = None) -> dict[str, Any]:
    """What a .hmat file is, without its batches: HMatrix.facts, and `about`, `largest_batch_bytes` and `tier_bytes`,
    of all batches by tier.

    Raises:
        Error: as open().
    """
    name = file_name(file, "open a matrix")
    found = _hmatrix.info((context or shared_context())._raw, name)
    return found | {"about": _described(found["about"], name)}


def verify(file: FileName, /, *, context: Context | None = None) -> int:
    """Reads all of a .hmat file and checks every checksum, with memory for a few batches. Returns the bytes of batches.

    Raises:
        Error: as open(); io_error that names the batch that is damaged.
    """
    room = 3 * (info(file, context=context)["largest_batch_bytes"] + 4096)
    with open(file, context=context, cache_bytes=room, pinned_tiers=0, pinned_batches=0, verify="always") as matrix:
        matrix @ np.zeros(matrix.shape[1])
        return matrix.counts["bytes_read"]
