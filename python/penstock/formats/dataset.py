"""Dataset: one array of a file, lazy. Indexing it reads; metadata costs no read.

What must stay true: nothing but the extents of the selection is read (and gaps below a page that are cheaper to read
than to skip); what the host must decode is said in the evidence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np

from penstock import _core
from penstock._arrays.array import Array, product
from penstock._arrays.as_number import Unread
from penstock._arrays.dtype import DType
from penstock._arrays.foreign_words import WordsOfDatasets
from penstock._arrays.selection import is_list, select
from penstock._error import Error
from penstock.formats.attributes import Attributes
from penstock.formats.model import DatasetInfo, Extent
from penstock.formats.reading.quick import QuickReads
from penstock.formats.reading.request import Request, request, user_shape
from penstock.formats.reading.rows import may_read
from penstock.formats.reference import split
from penstock.formats.state import FileState

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from penstock._api import Outcome, Progress, ReadOptions, TransferOptions
    from penstock.formats.pending import Pending


Out = TypeVar("Out")
_NONE: Mapping[str, Any] = {}


class Dataset(WordsOfDatasets, Unread):
    """A dataset of an open DataFile. Keep the file open while reading. Two are equal that are the same dataset of the
    same open file; all other comparison is a TypeError, because its elements were not read."""

    def __init__(self, file: FileState, name: str, known: DatasetInfo | None = None) -> None:
        self._file = file
        self.name = name
        self._known = known
        self._reader: _core.SmallReader | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Dataset, (self._file, self.name)

    @property
    def info(self) -> DatasetInfo:
        """All that the format says of it, dimensions as stored."""
        if self._known is None or self._file.writable:
            self._known = self._file.info(self.name)
        return self._known

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements per dimension."""
        return user_shape(self.info)

    @property
    def dtype(self) -> DType:
        """Type of the array that reading gives: the order of bytes is that of this machine. `info.dtype` is as
        stored."""
        return self.info.dtype.native

    @property
    def ndim(self) -> int:
        """How many dimensions."""
        return self.info.ndim

    @property
    def size(self) -> int:
        """How many elements."""
        return product(self.info.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the array, of text that of the pointers to it; compressed datasets take less in the file."""
        return self.size * self.info.dtype.itemsize

    @property
    def chunks(self) -> tuple[int, ...] | None:
        """Shape of a chunk; None when the dataset is contiguous, or lies in other files."""
        info = self.info
        if info.layout in ("virtual", "external") or (info.chunk_shape == info.shape and info.layout != "chunked"):
            return None
        return info.chunk_shape if info.order == "C" else info.chunk_shape[::-1]

    @property
    def filters(self) -> tuple[str, ...]:
        """Names of the filters of its chunks, in the order they were applied on writing; empty: stored as they are."""
        return self.info.filters

    @property
    def dims(self) -> tuple[str, ...] | None:
        """Names of the dimensions, where the format has them."""
        return self.info.dimensions

    @property
    def attrs(self) -> Attributes:
        """Its attributes, a mapping; of a file open for writing they can be set."""
        return Attributes(self.info.attributes, self._file.attribute_writer(self.name))

    def _is(self, other: object) -> bool:
        return isinstance(other, Dataset) and self._file is other._file and self._path == other._path

    def __hash__(self) -> int:
        return hash((id(self._file), self._path))

    @property
    def _path(self) -> str:
        return self.name.strip("/")

    def __bool__(self) -> bool:
        """Whether its file is open, as of h5py's; its elements were not read."""
        return not self._file.closed

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("a dataset without dimensions has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Array]:
        """Row after row, each read when it is asked for."""
        return (self[row] for row in range(len(self)))

    def extents(self, selection: Any = ...) -> list[Extent]:
        """Byte ranges of files that reading the selection needs, in file order; encoded chunks as they are stored.
        Empty for a dataset that is kept in the file's metadata, or not stored at all."""
        return self._file.extents(self._request(selection, None))

    @overload
    def read(
        self,
        selection: Any = ...,
        *,
        out: None = None,
        stream: Any = None,
        progress: Progress | None = None,
        **options: Unpack[ReadOptions],
    ) -> Array: ...
    @overload
    def read(
        self,
        selection: Any = ...,
        *,
        out: Out,
        stream: Any = None,
        progress: Progress | None = None,
        **options: Unpack[ReadOptions],
    ) -> Out: ...
    def read(
        self,
        selection: Any = ...,
        *,
        out: Any = None,
        stream: Any = None,
        progress: Progress | None = None,
        **options: Unpack[ReadOptions],
    ) -> Any:
        """Reads a selection; returns when it is there.

        Args:
            selection: integers, slices (with steps, also negative) and "...", as of NumPy; and one list of integers or
                mask, for any one dimension, or a mask of the dataset's shape. A list may name elements in any order,
                and twice.
            out: memory to fill: an Array, or anything with DLPack, `__cuda_array_interface__` or the buffer protocol,
                of the same type, shape, order and device.
            stream: of the caller's GPU work that must be finished before bytes land: an integer handle, or a stream of
                CuPy, PyTorch or cuda.core.
            progress: called with (bytes done, bytes in all) about 10 times a second, and at the end.
            options: see TransferOptions; and decode="auto", "host" or "gpu": see penstock.open.

        Returns `out`, or a new Array; of text of variable length, lists and references a HostArray, on every device.
        Raises TypeError and ValueError when `out` does not fit, Error when the bytes cannot be had.
        """
        is_plain = stream is None and progress is None and not options
        if is_plain and out is not None:
            if self._small_into(selection, out):
                return out
        elif is_plain:
            small = self._small(selection)
            if small is not None:
                return small
        wanted = self._request(selection, out)
        some = self._some(wanted) if is_plain else None
        return self._read(wanted, stream, progress, options) if some is None else some

    def _read(
        self, wanted: Request, stream: Any = None, progress: Progress | None = None, options: Mapping[str, Any] = _NONE
    ) -> Any:
        pending = self._file.start_read([wanted], stream, options, background=False)
        if progress is not None:
            pending._settle(progress)
        return pending.result()[0]

    def _small(self, selection: Any) -> Array | None:
        """A small read, or None: all else is left to the other reads."""
        if self._file.writable:
            return self._edited(selection)
        if not self._quick.looked:
            first = self._first(selection)
            if first is not None:
                return first
        reader = self._reader or self._small_reader(selection)
        if reader is None or self._file.context._open is None:
            return None
        found = reader.read(selection)
        if found is False:
            found = self._file.read_small(reader, selection)
        return found if type(found) is Array else None

    def _edited(self, selection: Any) -> Array | None:
        """As _small, of a file that is changed in place."""
        editor = self._file.editor(self.name)
        if editor is None:
            return None
        found = editor.native.read(selection)
        if found is False and self._file.lend(editor.native):
            found = editor.native.read(selection)
        return found if type(found) is Array else None

    def _first(self, selection: Any) -> Array | None:
        """The first read of the file, if it is a small one; None: all else is left to the other reads."""
        try:
            return self._file.read_first(self.info, selection)
        except (Error, KeyError, ValueError):
            return None

    def _some(self, wanted: Request) -> Any:
        """A list of rows, or a part that lies in one file, or None: all else is left to the other reads."""
        is_part = wanted.selection.picks is None and wanted.out is None
        return self._file.read_part(wanted) if is_part else self._some_rows(wanted)

    def _some_rows(self, wanted: Request) -> Any:
        """A list of rows, or None: all else is left to the other reads."""
        if wanted.selection.picks is None or not may_read(wanted.selection) or self._file.context._open is None:
            return None
        quick = self._quick
        if quick.rows is None:
            quick.rows = self._file.known_rows(wanted.info) or False
        return self._file.read_rows(quick.rows, wanted) if quick.rows else None

    def _small_into(self, selection: Any, out: Any) -> bool:
        """A small read into an array of NumPy, or one in memory of the GPU that the file is read to; or False."""
        if type(out) is not np.ndarray and not _tells_memory(out):
            return False
        if self._file.writable:
            editor = self._file.editor(self.name)
            reader = None if editor is None else editor.native
        else:
            reader = self._reader or self._small_reader(selection)
        if reader is None or self._file.context._open is None:
            return False
        if out.dtype is not self._plain and out.dtype != self._plain:
            return False
        found = reader.read_into(selection, out)
        if found is False and self._file.lend(reader):
            found = reader.read_into(selection, out)
        return found is True

    def _small_reader(self, selection: Any) -> _core.SmallReader | None:
        """Of all of it at the first read where that takes less than planning it, else at the second: after the first,
        which gets one of the selection, there need not be another."""
        try:
            found = self._quick.small(lambda first: self._file.small_reader(self.info, (first, selection)))
        except (Error, KeyError, ValueError):
            return None
        self._reader = self._quick.reader
        return found

    @cached_property
    def _quick(self) -> QuickReads:
        return self._file.quick.of(self._path)

    @cached_property
    def _plain(self) -> Any:
        """Its type as NumPy has it."""
        return self.info.dtype.native.dtype

    @overload
    def start_read(
        self, selection: Any = ..., *, out: None = None, stream: Any = None, **options: Unpack[ReadOptions]
    ) -> Pending[Array]: ...
    @overload
    def start_read(
        self, selection: Any = ..., *, out: Out, stream: Any = None, **options: Unpack[ReadOptions]
    ) -> Pending[Out]: ...
    def start_read(
        self, selection: Any = ..., *, out: Any = None, stream: Any = None, **options: Unpack[ReadOptions]
    ) -> Pending[Any]:
        """read(), in the background; `result()` of what it returns is what read() gives."""
        one = self._request(selection, out)
        return self._file.start_read([one], stream, options, take=lambda results: results[0])

    def _request(self, selection: Any, out: Any) -> Request:
        return request(self.info, selection, out, self._file.context)

    @overload
    def gather(self, indices: Any, out: None = None, axis: int = 0) -> Array: ...
    @overload
    def gather(self, indices: Any, out: Out, axis: int = 0) -> Out: ...
    def gather(self, indices: Any, out: Any = None, axis: int = 0) -> Any:
        """Reads the elements of one dimension that a list of integers or a mask names, as numpy.take does.

        Args:
            indices: n integers, in any order; negative ones count from the end. Or a mask of `shape[axis]` elements.
            out: memory to fill, as of read().
            axis: of the dimension; negative ones count from the last.

        All are read at once: what lies near each other in one request, what is named twice once, and each chunk that
        must be decoded once. Returns `out`, or a new Array: the dataset's shape, with n in place of `shape[axis]`.
        Raises IndexError of indices that are none of the dataset, TypeError of those that are no integers; and as
        read()."""
        if not -self.ndim <= axis < self.ndim:
            raise IndexError(f"dataset {self.name!r} has {self.ndim} dimensions, and no dimension {axis}")
        if not is_list(indices):
            raise TypeError(f"indices are a list of integers or a mask, not {type(indices).__name__}")
        return self.read((*(slice(None) for _ in range(axis % self.ndim)), indices), out=out)

    def field(self, name: str, selection: Any = ...) -> Array:
        """One member of compound elements, as an array: reads the elements, and shows or gathers the member."""
        self.info.dtype.member(name)
        return self.read(selection).field(name)

    def __getitem__(self, selection: Any) -> Array:
        """Reads the selection. A name gives that member of compound elements, and several a part of them; beside an
        index it is of the elements that this selects. A Reference to a region gives that."""
        reader = self._reader
        if reader is not None and self._file.context._open is not None:
            found = reader.read(selection)
            if type(found) is Array:
                return found
        small = self._small(selection)
        if small is not None:
            return small
        names, selection = split(selection, self.shape)
        if names:
            for name in names:
                self.info.dtype.member(name)
            found = self[selection]
            return found.field(names[0]) if len(names) == 1 else found.members(names)
        wanted = self._request(selection, None)
        some = self._some(wanted)
        return self._read(wanted) if some is None else some

    def __setitem__(self, selection: Any, value: Any) -> None:
        """Writes an array of the same type and shape as the selection."""
        if type(value) is np.ndarray and self._write_small(selection, value):
            return
        if self._file.write_chunk(self.name, selection, value) is None:
            self._start_write(value, selection, None, _NONE, background=False).result()

    def _write_small(self, selection: Any, value: np.ndarray) -> bool:
        """False: the other writes begin anew."""
        lists = type(selection) in (list, np.ndarray)
        editor = self._file.editor(self.name, lists) if self._file.writable else None
        if editor is None or value.dtype != editor.plain:
            return False
        if lists:
            return self._file.write_rows(editor, selection, value)
        return editor.write(self._file.lend, selection, value)

    def write(
        self, value: Any, selection: Any = ..., *, stream: Any = None, **options: Unpack[TransferOptions]
    ) -> Outcome:
        """Writes an array of the same type and shape as the selection; returns when it is written. A list may name
        elements in any order, each once: ValueError of one that is named twice."""
        if stream is None and not options:
            chunk = self._file.write_chunk(self.name, selection, value)
            if chunk is not None:
                return chunk.outcome
        return self._start_write(value, selection, stream, options, background=False).result()

    def start_write(
        self, value: Any, selection: Any = ..., *, stream: Any = None, **options: Unpack[TransferOptions]
    ) -> Pending[Outcome]:
        """write(), in the background. The value must not change until it is done."""
        return self._start_write(value, selection, stream, options)

    def _start_write(
        self, value: Any, selection: Any, stream: Any, options: Mapping[str, Any], *, background: bool = True
    ) -> Pending[Outcome]:
        info = self.info
        wanted = Request(info, select(user_shape(info), selection, self._file.context), value)
        return self._file.start_write([wanted], stream, options, background=background)

    def append(self, value: Any, *, stream: Any = None, **options: Unpack[TransferOptions]) -> Outcome:
        """Adds rows at the end of the first dimension: an array with that dimension, or one row without it."""
        return self._file.append(self.name, value, stream, options)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """NumPy asks here: on the host device an array that was read, with NumPy's own type."""
        found = self.read()
        if isinstance(found, Array):
            return found.__array__(dtype, copy)
        import numpy as np

        return np.asarray(found, dtype)  # text, lists, references

    def __repr__(self) -> str:
        info = self.info
        chunks = f", chunks {self.chunks}" if self.chunks else ""
        filters = f", {'+'.join(info.filters)}" if info.filters else ""
        refused = f", cannot be read: {info.refusal}" if info.refusal else ""
        return f"<penstock.Dataset {self.name!r} {self.shape} {info.dtype}, {info.layout}{chunks}{filters}{refused}>"


def _tells_memory(out: Any) -> bool:
    """Whether it is an array of NumPy, or one in GPU memory that has a type as NumPy's have."""
    # Some libraries make the description when an array is asked for it, in the time of a small read of the host.
    asked = out if type(out) is Array else type(out)
    told = hasattr(asked, "__cuda_array_interface__") or hasattr(out, "__cuda_array_interface__")
    return type(out).__module__ == "numpy" or (told and hasattr(out, "dtype"))
