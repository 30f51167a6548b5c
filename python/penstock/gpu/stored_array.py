"""StoredArray: an array in a file behind a page cache in device memory; rows are its first dimension.

What must stay true: `array[index]` names the rows that NumPy would take; nothing is converted; an operation that
returned is done, and one that failed raised.
"""

from __future__ import annotations

import operator
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

from penstock import _core
from penstock._arrays.array import Array, Shape, product
from penstock._arrays.as_number import Unread
from penstock._arrays.dtype import DType
from penstock._error import Error
from penstock.formats.reading.target import Target, stream_handle, target_of
from penstock.gpu.row_numbers import OutOfRange, RowCount, RowNumbers, row_numbers

if TYPE_CHECKING:
    from penstock._api import Context

_UPLOAD_BYTES = 64 << 20  # of a GPU's memory for values that come from the host


@dataclass(frozen=True)
class Place:
    """Where an array lies."""

    files: tuple[str, ...]
    dtype: DType
    shape: Shape
    offset_bytes: int
    writable: bool
    stripe_bytes: int = 0  # of several files


class SharedCache:
    """The cache of one or several arrays; closed with the last of them."""

    def __init__(self, raw: _core.DeviceCache, context: Context, arrays: int) -> None:
        self.raw = raw
        self.context = context
        self._open = arrays
        self._lock = threading.RLock()  # an array that is collected leaves, in the midst of another's leaving too

    def leave(self) -> None:
        with self._lock:
            self._open -= 1
            try:
                if self._open == 0:
                    self.raw.close()
                else:
                    self.raw.flush()
            except BaseException:
                self._open += 1
                raise


class StoredArray(Unread):
    """Made by penstock.gpu.open(). As a context manager: closes. It equals itself; other comparison is a TypeError."""

    def __init__(self, shared: SharedCache, number: int, place: Place) -> None:
        self._shared: SharedCache | None = shared
        self._number = number
        self._place = place
        self._row_shape = place.shape[1:]
        self._row_bytes = product(self._row_shape) * place.dtype.itemsize
        self._closing = threading.RLock()
        self._process = os.getpid()

    @property
    def name(self) -> str:
        """Name of the file, or of the first of several."""
        return self._place.files[0]

    @property
    def files(self) -> tuple[str, ...]:
        """That the array lies in: one, or those that it is dealt out over."""
        return self._place.files

    @property
    def shape(self) -> Shape:
        """Elements per dimension; the first are rows."""
        return self._place.shape

    @property
    def dtype(self) -> DType:
        """Type of the elements."""
        return self._place.dtype

    @property
    def ndim(self) -> int:
        """How many dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many elements."""
        return product(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements, in the file."""
        return self.size * self.dtype.itemsize

    @property
    def writable(self) -> bool:
        """Whether it was opened with mode="r+"."""
        return self._place.writable

    @property
    def offset_bytes(self) -> int:
        """Offset of the first element in the file, or in all files put together. A kernel's StoredArray<T> counts
        elements from the first byte."""
        return self._place.offset_bytes

    @property
    def context(self) -> Context:
        """That owns the device and the cache."""
        return self._cache.context

    @property
    def ref(self) -> int:
        """Address of the `penstock::ondevice::StoredRef` in device memory, for your own kernels. They must end before
        the array is closed; check() tells of their failures. Kernels count elements from the first byte of the file:
        Error for numbers that do not lie at a multiple of their size, which no kernel could name."""
        shared, size = self._cache, self.dtype.itemsize
        if self.dtype.kind != "V" and self.offset_bytes % size:
            raise Error(
                code="unsupported",
                operation="give kernels an array",
                file=self.name,
                cause=f"elements of {size} bytes begin at byte {self.offset_bytes}, which is not a multiple of that",
                advice="gather, slices and write work; for kernels, open it as uint8, or write it after another header",
            )
        return shared.raw.ref(self._number)

    @property
    def closed(self) -> bool:
        """Whether close() was called, or the block has ended."""
        return self._shared is None

    @property
    def _cache(self) -> SharedCache:
        if self._shared is None:
            raise ValueError(f"the stored array of {self.name} is closed")
        return self._shared

    def __len__(self) -> int:
        return self.shape[0]

    def gather(self, indices: Any, *, out: Any = None, stream: Any = None) -> Array:
        """The rows of these numbers, in their order, on the device.

        Args:
            indices: whole numbers: a list, or an array of any library on the host or on the device; there, 64-bit ones.
                Negative ones count from the end, unless they lie on a GPU.
            out: device memory to fill, of the same type and the shape of the result.
            stream: of the caller's GPU work on `indices` and `out` that comes first; the default stream when left out.

        Raises OutOfRange, which is an Error and an IndexError, for rows that are not there.
        """
        shared, handle = self._cache, stream_handle(stream)
        rows = row_numbers(indices, RowCount(len(self), self.name), shared.context, handle)
        array, memory = self._fresh_or((*rows.shape, *self._row_shape), out, handle)
        self._move(shared.raw.gather, rows, memory)
        return array

    def scatter(self, indices: Any, values: Any, *, stream: Any = None) -> None:
        """Writes values[i] to row indices[i]. If a row is named twice, it has one of its values."""
        shared, handle = self._writable(), stream_handle(stream)
        rows = row_numbers(indices, RowCount(len(self), self.name), shared.context, handle)
        value = self._value(values, (*rows.shape, *self._row_shape), handle)
        memory = self._uploaded(value.as_bytes()) if value.size and self._is_elsewhere(value) else value.as_bytes()
        self._move(shared.raw.scatter, rows, memory)

    def read(self, start: int = 0, stop: int | None = None, *, out: Any = None, stream: Any = None) -> Array:
        """Rows start to stop, which is what array[start:stop] gives."""
        shared = self._cache
        first, end, _ = slice(start, stop).indices(len(self))
        array, memory = self._fresh_or((max(0, end - first), *self._row_shape), out, stream_handle(stream))
        if array.nbytes:
            shared.raw.read(self._number, self._offset(first), memory)
        return array

    def write(self, start: int, values: Any, *, stream: Any = None) -> None:
        """Writes rows from `start` on: one, or as many as the first dimension of `values` says. They are in the file
        after flush() or close(), if not before."""
        shared, handle = self._writable(), stream_handle(stream)
        value = self._value(values, None, handle)
        count = value.shape[0] if value.ndim == self.ndim else 1
        first = operator.index(start)
        first += len(self) if first < 0 else 0
        if not 0 <= first <= len(self) or count > len(self) - first:
            self._out_of_range(f"{count} rows from row {start} on")
        if not value.size:
            return
        memory, offset = value.as_bytes(), self._offset(first)
        if not self._is_elsewhere(value):
            shared.raw.write(self._number, offset, memory)
            return
        view = memoryview(memory).cast("B")
        for at in range(0, value.nbytes, _UPLOAD_BYTES):
            shared.raw.write(self._number, offset + at, self._uploaded(view[at : at + _UPLOAD_BYTES]))

    def __getitem__(self, index: Any) -> Array:
        """array[i], array[i:j], array[indices]: rows, on the device."""
        if isinstance(index, slice):
            first, end, step = index.indices(len(self))
            return self.read(first, end) if step == 1 else self.gather(range(first, end, step))
        return self.gather(_one_index(index))

    def __setitem__(self, index: Any, values: Any) -> None:
        if not isinstance(index, slice):
            self.scatter(_one_index(index), values)
            return
        first, end, step = index.indices(len(self))
        if step != 1:
            self.scatter(range(first, end, step), values)
            return
        value = self._value(values, (max(0, end - first), *self._row_shape), None)
        self.write(first, value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        raise TypeError("a stored array is not read as a whole by chance: array[:].to_numpy() does it")

    def prefetch(self, start: int = 0, stop: int | None = None) -> None:
        """Begins to load rows and does not wait for the last of them: as many pages as the cache has slots. Whoever
        uses a row hears of its failure."""
        self._cache.raw.prefetch(self._number, *self._range(start, stop))

    def pin(self, start: int = 0, stop: int | None = None) -> None:
        """Loads rows and keeps them in the cache until unpin(). All or none: Error when there is no room."""
        self._cache.raw.pin(self._number, *self._range(start, stop))

    def unpin(self, start: int = 0, stop: int | None = None) -> None:
        """Undoes pin() for the same rows; call it as often."""
        self._cache.raw.unpin(self._number, *self._range(start, stop))

    def keep(self, start: int = 0, stop: int | None = None) -> None:
        """With policy "pinned-range": these rows stay once they are in the cache; one range for all its arrays."""
        self._cache.raw.keep(self._number, *self._range(start, stop))

    def advise(self, advice: str) -> None:
        """How rows will be used: "sweep" in about the same order again and again, "random" some more often than others,
        "once" not again soon, "none"."""
        self._cache.raw.advise(self._number, advice)

    def invalidate(self, start: int = 0, stop: int | None = None) -> None:
        """Forgets rows, so that they are read anew. Error while they are in use or not flushed."""
        self._cache.raw.invalidate(self._number, *self._range(start, stop))

    def flush(self) -> None:
        """Returns when all that was written through the cache, to any of its arrays, is on stable storage."""
        self._cache.raw.flush()

    def check(self) -> None:
        """Raises the first failure of array[i] in your own kernels since the last call."""
        self._cache.raw.check()

    def stats(self) -> dict[str, Any]:
        """What the cache did since it was made, for all its arrays: `hits`, `misses`, `joined`, `evictions`,
        `write_backs`, `failures`; `loaded_bytes` and `written_back_bytes`, `page_bytes` for each miss and write-back;
        `wait_cycles` and `wait_ns`, histograms of (low, count); the same of each multiprocessor in `processors`;
        `served`: requests and bytes that moved by mapping, buffered and direct, `gpu_pages` that the GPU moved itself,
        and `gpu_rows` that it copied past the cache; `arrays`, with `served` of each of their `files`; memory in use.
        Kernels are counted when they end."""
        return self._cache.raw.statistics()

    def close(self) -> None:
        """Flushes what was written and lets the file go; the cache goes with its last array. If the flush fails it
        raises and the array stays open, so that nothing is lost. Does nothing the second time."""
        with self._closing:
            if self._shared is not None:
                self._shared.leave()
                self._shared = None

    def __del__(self, process_now: Callable[[], int] = os.getpid) -> None:
        """Whoever did not close: what was written is not lost in silence, for Python prints what this raises. A forked
        child has nothing to write: its parent has the cache. At the interpreter's end the names of this module may be
        gone, so this and close() use none."""
        if getattr(self, "_process", None) == process_now() and self._shared is not None and self._place.writable:
            self.close()

    def __enter__(self) -> StoredArray:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._shared is None else f"to {self._shared.context._place[0]}"
        return f"<penstock.gpu.StoredArray {self.shape} {self.dtype} of {self.name} {state}>"

    def _offset(self, row: int) -> int:
        return self._place.offset_bytes + row * self._row_bytes

    def _range(self, start: int, stop: int | None) -> tuple[int, int]:
        """Offset and bytes of rows, which must all be there."""
        end = len(self) if stop is None else operator.index(stop)
        first = operator.index(start)
        if not 0 <= first <= end <= len(self):
            self._out_of_range(f"rows {first} to {end}")
        return self._offset(first), (end - first) * self._row_bytes

    def _out_of_range(self, what: str) -> NoReturn:
        raise OutOfRange(operation="index", file=self.name, cause=f"{what} leave the {len(self)} rows of the array")

    def _move(self, function: Any, rows: RowNumbers, memory: Any) -> None:
        """gather or scatter, unless there is nothing to move."""
        if not rows.count or not self._row_bytes:
            return
        try:
            function(self._number, rows.memory, memory, (self._row_bytes, self._place.offset_bytes, len(self)))
        except Error as error:
            if error.code != "invalid_argument" or not error.cause.startswith("the indices name row"):
                raise
            raise OutOfRange(str(error), operation=error.operation, file=error.file, cause=error.cause) from None

    def _fresh_or(self, shape: Shape, out: Any, stream: int | None) -> tuple[Array, Any]:
        """The array to return, and its memory."""
        context = self._cache.context
        if out is None:
            made = Array(context.allocate(max(1, product(shape) * self.dtype.itemsize)), self.dtype, shape)
            return made, made.as_bytes()
        target = self._checked(target_of(out, stream), shape, "out")
        if target.readonly:
            raise ValueError("out is read-only")
        if target.device != context._place[0]:
            raise ValueError(f"out lies on {target.device}, the array is read to {context._place[0]}")
        self._settle(target, stream)
        return out, target.as_bytes()

    def _value(self, values: Any, shape: Shape | None, stream: int | None) -> Target:
        """Values to write; None: of any number of rows."""
        if isinstance(values, (bool, int, float, complex, list, tuple)):
            import numpy as np

            values = np.asarray(values, self.dtype.dtype)
        target = target_of(values, stream)
        if shape is None:
            rows = target.shape[:1] if target.ndim == self.ndim else ()
            shape = (*rows, *self._row_shape)
        self._checked(target, shape, "the value")
        device = self._cache.context._place[0]
        if target.device not in (device, "host"):
            raise ValueError(f"the value lies on {target.device}, the array is written from {device}")
        if self._is_elsewhere(target) and isinstance(target.memory, _core.DLPackMemory):
            import numpy as np

            target = target_of(np.from_dlpack(values), stream)  # bytes that can be uploaded piece by piece
        self._settle(target, stream)
        return target

    def _checked(self, target: Target, shape: Shape, what: str) -> Target:
        if target.dtype != self.dtype:
            raise TypeError(f"{what} has elements of {target.dtype}, the array of {self.dtype}")
        if target.shape != shape:
            raise ValueError(f"{what} has shape {target.shape}, the rows {shape}")
        if not target.is_order("C"):
            raise ValueError(f"{what} is not contiguous; pass a contiguous copy")
        return target

    def _settle(self, target: Target, stream: int | None) -> None:
        """Work of others that is queued on a GPU comes first."""
        if target.device != "host" and not isinstance(target.memory, _core.Buffer):
            _core.synchronize_stream(self._cache.context._raw, stream or 0)

    def _is_elsewhere(self, value: Target) -> bool:
        """In memory of the host, which a GPU cannot address."""
        return value.device == "host" and not self._cache.context._place[1]

    def _uploaded(self, memory: Any) -> Any:
        view = memoryview(memory).cast("B")
        buffer = self._cache.context.allocate(max(1, view.nbytes))
        self._cache.context.copy_to_device(buffer, view)
        return buffer

    def _writable(self) -> SharedCache:
        shared = self._cache
        if not self._place.writable:
            raise Error(
                code="read_only",
                operation="write",
                file=self.name,
                cause="the file was opened for reading",
                advice='open it with mode="r+"',
            )
        return shared


def _one_index(index: Any) -> Any:
    if isinstance(index, tuple) or index is None or index is Ellipsis:
        raise TypeError("a stored array is indexed along its first dimension only; pick from the rows that were read")
    if isinstance(index, (bool, str, bytes, float)):
        raise TypeError(f"{index!r} is not a row number")
    return index
