"""DataFile: an open file of a scientific format, as a mapping of lazy datasets.

The user's face of a FileState, which does the work. What must stay true: as a context manager it closes; a new file
gets its name only if no error passed.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import fields
from types import TracebackType
from typing import TYPE_CHECKING, Any

from penstock._api import Context, Outcome
from penstock._arrays.dtype import DType
from penstock._options import meant
from penstock._told import Evidence
from penstock.formats.dataset import Dataset
from penstock.formats.group import Group
from penstock.formats.model import NewDataset
from penstock.formats.packing import compression
from penstock.formats.packing.one_chunk import may_be_one
from penstock.formats.packing.texts import TEXT
from penstock.formats.pending import Pending
from penstock.formats.reading.target import stream_handle
from penstock.formats.state import FileState
from penstock.formats.writing import values_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from penstock._options import LayoutOptions, TransferOptions

_NONE: Mapping[str, Any] = {}
_PACKING = ("compression", "compression_level", "shuffle")
_LAYOUT = tuple(one.name for one in fields(NewDataset) if one.name not in ("name", "shape", "dtype"))


class DataFile(Group):
    """A mapping from names of datasets to Dataset. As a context manager: closes; a new file gets its name only if no
    error passed. Made by penstock.open and penstock.create."""

    _kind = "DataFile"

    def __init__(self, state: FileState) -> None:
        super().__init__(state, "")
        self.format = state.format

    def __reduce__(self) -> tuple[Any, ...]:
        """For another process, which opens the file of that name itself. TypeError where none can."""
        return DataFile, (self._file,)

    # -- what is known of the file

    @property
    def name(self) -> str:
        """The path of the file."""
        return self._file.name

    @property
    def filename(self) -> str:
        """As name: h5py calls it so."""
        return self._file.name

    @property
    def mode(self) -> str:
        """As h5py has it: "r", or "r+" of a file that is written."""
        return "r+" if self.writable else "r"

    @property
    def writable(self) -> bool:
        """Whether datasets can be written, made or appended to."""
        return self._file.writable

    @property
    def closed(self) -> bool:
        """Whether close() was called, or the block has ended."""
        return self._file.closed

    @property
    def device(self) -> str:
        """Where arrays are read to."""
        return self._file.device

    @property
    def context(self) -> Context:
        """That moves its bytes."""
        return self._file.context

    def evidence(self) -> Evidence:
        """How all bytes of this file went so far: paths, fallbacks, and under "formats" the bytes that were requested,
        read in ranges, filled in, and decoded, by whom."""
        return self._file.evidence()

    # -- writing

    def create_dataset(self, name: str, shape: Sequence[int], dtype: Any, **layout: Unpack[LayoutOptions]) -> Dataset:
        """Adds a dataset without writing it; `dataset[...] = value` and `append` fill it.

        Args:
            shape: elements per dimension.
            dtype: anything DType.of takes.
            layout: chunk_shape, resizable (largest extents, None: unlimited), dimensions (names), attributes,
                compression, compression_level, shuffle; see LayoutOptions.
        """
        return self.create_datasets({name: (shape, dtype, layout)})[name]

    def create_datasets(self, datasets: Mapping[str, Sequence[Any]]) -> dict[str, Dataset]:
        """Adds datasets in one go, which some formats do much faster than one by one. Values are (shape, dtype), or
        (shape, dtype, layout) with a dict of what create_dataset takes as `layout`."""
        new = [_new_dataset(name, *description) for name, description in datasets.items()]
        if not self._file.kind.has_shards and any(one.shard_shape is not None for one in new):
            raise TypeError(f"shard_shape is for Zarr; {self.format} has no shards")
        self._need_compression(new)
        self._need_text(new)
        self._file.create(new)
        return {name: Dataset(self._file, name) for name in datasets}

    def __setitem__(self, name: str, value: Any) -> None:
        """A new dataset with this content: an array of any library, on the file's device or in host memory."""
        self._write_many({name: value}, background=False).result()

    def write_many(
        self,
        values: Mapping[str, Any],
        *,
        stream: Any = None,
        layout: LayoutOptions | None = None,
        **options: Unpack[TransferOptions],
    ) -> Pending[Outcome]:
        """Starts writing new datasets in one submission. The values must not change until it is done. `layout`: of all
        of them, as create_dataset takes it; arrays without dimensions, or without elements, are not compressed."""
        return self._write_many(values, stream, layout, options)

    def _write_many(
        self,
        values: Mapping[str, Any],
        stream: Any = None,
        layout: LayoutOptions | None = None,
        options: Mapping[str, Any] = _NONE,
        *,
        background: bool = True,
    ) -> Pending[Outcome]:
        handle = stream_handle(stream)
        targets = values_of(values, handle)
        shapes = {name: () if one.dtype == TEXT else one.shape for name, one in targets.items()}
        layouts = {name: _fitting(layout or {}, shape) for name, shape in shapes.items()}
        new = [_new_dataset(name, one.shape, one.dtype.native, layouts[name]) for name, one in targets.items()]
        self._need_compression(new)
        self._need_text(new)
        return self._file.start_new(new, list(targets.values()), (handle, options), background=background)

    def _write_new(self, values: Mapping[str, Any], layout: LayoutOptions, options: Mapping[str, Any]) -> Outcome:
        """As write_many, for a caller who waits."""
        name: str = next(iter(values), "")
        value: Any = values.get(name)
        if len(values) == 1 and not options and may_be_one(value) and layout.get("compression") is not None:
            dtype = DType.of(value.dtype).native
            return self.create_dataset(name, value.shape, dtype, **_fitting(layout, value.shape)).write(value)
        return self._write_many(values, layout=layout, options=options, background=False).result()

    def _need_compression(self, new: Sequence[NewDataset]) -> None:
        if not self._file.kind.has_compression and any(one.compression is not None for one in new):
            raise TypeError(f"compression is for HDF5, netCDF-4 and Zarr; {self.format} has none")

    def _need_text(self, new: Sequence[NewDataset]) -> None:
        for one in new if not self._file.kind.writes_text else ():
            if one.dtype == TEXT:
                raise TypeError(
                    f"dataset {one.name!r}: {self.format} has no text of variable length; HDF5, netCDF-4 and Zarr have"
                )
        for one in new:
            if one.dtype == TEXT and one.compression is not None:
                cause = "text of variable length is not compressed: leave compression out"
                raise TypeError(f"dataset {one.name!r}: {cause}")

    # -- the end

    def close(self) -> None:
        """Waits for what is under way. A new file gets its name. Does nothing the second time. Raises Error when the
        file cannot be finished, or a write failed or was cancelled; then it is let go as by abandon()."""
        self._file.close()

    def abandon(self) -> None:
        """Cancels what is under way and lets go: a new file never appears."""
        self._file.abandon()

    def __enter__(self) -> DataFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            if kind is None:
                self.close()
        finally:  # an interrupt may come before close() has begun
            self._file.abandon()


def _fitting(layout: Mapping[str, Any], shape: tuple[int, ...]) -> Mapping[str, Any]:
    """What of a layout for many arrays fits one of this shape."""
    if 0 not in shape and shape:
        return layout
    return {key: value for key, value in layout.items() if key not in ("chunk_shape", *_PACKING)}


def _new_dataset(name: str, shape: Sequence[int], dtype: Any, layout: Mapping[str, Any] | None = None) -> NewDataset:
    if isinstance(shape, int):
        shape = (shape,)
    unknown = [one for one in layout or {} if one not in _LAYOUT]
    if unknown:
        there = f"there are {', '.join(_LAYOUT)}{meant(unknown[0], _LAYOUT)}"
        raise TypeError(f"dataset {name!r}: there is no {unknown[0]}=; {there}")
    try:
        extents = tuple(operator.index(extent) for extent in shape)
        kind = TEXT if dtype is str or dtype == TEXT else DType.of(dtype)
    except TypeError as error:
        raise TypeError(f"dataset {name!r}: {error}") from error
    return compression.checked(NewDataset(name, extents, kind, **(layout or {})).checked())
