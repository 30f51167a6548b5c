"""Datasets as xarray's lazy arrays: reads are made when values are needed, and only of what is needed.

What must stay true: the keys that xarray passes (integers, slices, arrays of positions per dimension) give what NumPy's
outer indexing gives; positions with even steps are read as slices, others in runs; arrays can be pickled, because they
know the name of their file and open it again where it is not open.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from xarray.backends import BackendArray
from xarray.core import indexing

from penstock._open import open as open_file
from penstock.formats.datafile import DataFile
from penstock.formats.dataset import Dataset

_DENSE = 4  # positions that are at least one in this many are read with what lies between them


class SharedFile:
    """A file that many lazy arrays read, opened when it is needed and closed by the xarray.Dataset."""

    def __init__(self, name: str, options: dict[str, Any]) -> None:
        self.name, self.options = os.path.abspath(name), options  # noqa: PTH100 - opened later, and elsewhere
        self._lock = threading.Lock()
        self._open: DataFile | None = None

    def get(self) -> DataFile:
        with self._lock:
            if self._open is None or self._open.closed:
                self._open = open_file(self.name, **self.options)
            return self._open

    def close(self) -> None:
        with self._lock:
            opened, self._open = self._open, None
        if opened is not None:
            opened.close()

    def __getstate__(self) -> dict[str, Any]:
        """For another process: it opens the file itself. A context cannot go there."""
        if self.options.get("context") is not None:
            raise TypeError("an xarray.Dataset that was opened with context= cannot be pickled; use device=")
        return {"name": self.name, "options": self.options}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]


class LazyArray(BackendArray):
    """One dataset. `dtype` is that of the result (text differs from the raw bytes that are stored); `decode`: makes it
    of what was read, on the GPU; None: the result is NumPy's, wherever the file reads to."""

    def __init__(
        self, file: SharedFile, dataset: Dataset, dtype: np.dtype[Any], decode: Callable[[Any], Any] | None
    ) -> None:
        self._file, self._name = file, dataset.name
        self.shape, self.dtype, self._decode = dataset.shape, dtype, decode

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._read)

    def _read(self, key: tuple[Any, ...]) -> Any:
        dataset = self._file.get()[self._name]
        result = read_outer(key, self.shape, lambda index: self._taken(dataset.read(index)))
        return result if self._decode is None else self._decode(result)

    def _taken(self, array: Any) -> Any:
        if self._decode is not None:
            import cupy

            return cupy.asarray(array)
        plain = np.asarray(array) if array.on_host else array.to_numpy()
        return plain if plain.dtype == self.dtype else plain.view(self.dtype)


def unchanged(array: Any) -> Any:
    """The decoding of what needs none."""
    return array


def read_outer(key: tuple[Any, ...], shape: tuple[int, ...], read: Callable[[tuple[Any, ...]], Any]) -> Any:
    """What outer indexing gives, by reads of integers and slices only."""
    plain: list[Any] = []
    after: list[Any] = []  # what is left to index in memory, for dimensions that are still there
    uneven: list[tuple[int, np.ndarray]] = []
    for axis, (one, length) in enumerate(zip(key, shape, strict=True)):
        if not isinstance(one, np.ndarray):
            plain.append(one)
            if isinstance(one, slice):
                after.append(slice(None))
            continue
        positions = np.where(one < 0, one + length, one)
        wanted = np.unique(positions)
        even = as_slice(wanted)
        if even is None:
            uneven.append((axis, wanted))
        plain.append(even)
        is_sorted = len(wanted) == len(positions) and bool((wanted == positions).all())
        after.append(slice(None) if is_sorted else np.searchsorted(wanted, positions))
    result = _read_runs(plain, uneven, read)
    for axis, one in enumerate(after):
        if isinstance(one, np.ndarray):
            result = result[(slice(None),) * axis + (one,)]
    return result


def as_slice(positions: np.ndarray) -> slice | None:
    """Ascending positions as a slice; None where their steps are uneven."""
    if len(positions) == 0:
        return slice(0, 0)
    steps = np.diff(positions)
    if len(steps) and (steps != steps[0]).any():
        return None
    return slice(int(positions[0]), int(positions[-1]) + 1, int(steps[0]) if len(steps) else 1)


def _read_runs(plain: list[Any], uneven: list[tuple[int, np.ndarray]], read: Callable[[tuple[Any, ...]], Any]) -> Any:
    """Uneven positions that lie close are read with their gaps, and picked in memory; others run by run."""
    if not uneven:
        return read(tuple(plain))
    (axis, wanted), rest = uneven[0], uneven[1:]
    here = sum(not isinstance(one, int | np.integer) for one in plain[:axis])  # the axis of the result
    hull = int(wanted[-1] - wanted[0]) + 1
    if hull <= _DENSE * len(wanted):
        plain[axis] = slice(int(wanted[0]), int(wanted[-1]) + 1)
        whole = _read_runs(plain, rest, read)
        return whole[(slice(None),) * here + (wanted - wanted[0],)]
    parts = []
    for run in np.split(wanted, np.flatnonzero(np.diff(wanted) > 1) + 1):
        parts.append(_read_runs([*plain[:axis], as_slice(run), *plain[axis + 1 :]], rest, read))
    library = np if isinstance(parts[0], np.ndarray) else __import__("cupy")
    return library.concatenate(parts, axis=here)
