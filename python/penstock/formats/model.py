"""What a format knows about a file, as data: datasets, and where their bytes lie.

This is the seam between formats and the rest. A format's own library (or our parser, where there is none worth having)
answers questions about metadata; it never moves the bytes of a dataset, except those it must decode. What must stay
true: everything here is pure data and can be asked without a device; extents are absolute byte ranges of named files;
an extent never reaches over the end of its file (a format checks that when it is asked for extents, and refuses with
the dataset's name).

Two implementations of each protocol prove the seam: every format, and `formats.memory`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from penstock._selection import Box, Shape

if TYPE_CHECKING:
    import numpy as np

    from penstock._dtype import DType


class Extent(NamedTuple):
    """A byte range of a file."""

    file: str
    offset_bytes: int
    bytes: int


@dataclass(frozen=True)
class Recipe:
    """How a device undoes the encoding of a chunk: cut the framing off, decode the stream, turn the bytes back.

    `codec`: deflate (without framing, RFC 1951), gzip (RFC 1952), zstd (one frame of RFC 8878) or lz4 (one block).
    `checksum` of the decoded stream: what _core.checksums knows; stored `check_at` bytes before the end of the chunk.
    """

    codec: str
    header_bytes: int = 0  # before the stream
    trailer_bytes: int = 0  # behind it
    checksum: str = ""
    check_at: int = 0
    check_order: str = ">"  # of its 4 bytes
    shuffle_bytes: int = 1  # of an element whose bytes were put into planes, first bytes of all first; 1: were not


# RFC 1950: deflate with 2 bytes before it and a checksum behind.
ZLIB = Recipe("deflate", header_bytes=2, trailer_bytes=4, checksum="adler32", check_at=4)


@dataclass(frozen=True)
class ChunkTable:
    """Stored chunks that meet a box, one row each, as NumPy arrays (so that a million chunks stay cheap).

    A chunk holds `DatasetInfo.chunk_shape` elements in C order, edge chunks included, unless `edge_cut` says that edge
    chunks stop at the dataset's end. Chunks of the box that have no row are not stored: they read as the fill value.
    """

    files: tuple[str, ...]
    file_index: np.ndarray  # int32 [n], into files
    origin: np.ndarray  # int64 [n, ndim], first element of the chunk in the dataset
    offset_bytes: np.ndarray  # int64 [n], in the file
    bytes: np.ndarray  # int64 [n], as stored
    encoded: np.ndarray  # bool [n]: the bytes must be decoded; without extents (compact, ...): one such row, bytes 0
    host_only: np.ndarray | None = None  # bool [n]: encoded otherwise than `DatasetInfo.recipe` says; None: no row is
    missing: tuple[str, ...] = ()  # why parts of the box read as fill values that were meant to be data


@dataclass(frozen=True)
class DatasetInfo:
    """One dataset. `shape` and `chunk_shape` are as stored; with order "F" both are those of the transposed (C order)
    dataset, and the array handed to the user is transposed back without a copy."""

    name: str
    shape: Shape
    dtype: DType  # as stored, byte order included
    chunk_shape: Shape  # equal to shape when contiguous
    order: str = "C"
    fill: bytes | None = None  # one element as stored; None: zeros
    edge_cut: bool = False
    resizable: tuple[int | None, ...] | None = None  # largest shape, None: unlimited; None as a whole: fixed
    dimensions: tuple[str, ...] | None = None  # names of the dimensions, where the format has them
    filters: tuple[str, ...] = ()  # in the order they were applied on writing
    layout: str = "contiguous"  # contiguous chunked compact external virtual record sharded empty
    refusal: str = ""  # why the dataset cannot be read at all; empty: it can
    recipe: Recipe | str = "only the format's library decodes it"  # of encoded chunks; a text: why there is none
    attributes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def chunk_bytes(self) -> int:
        """Bytes of the elements of a whole chunk."""
        return math.prod(self.chunk_shape) * self.dtype.itemsize


# Bytes of a box of one dataset, decoded on the host by the format's library: C order, stored dtype.
HostDecoder = Callable[[str, Box], bytes | bytearray | memoryview]


class Container(Protocol):
    """A file of one format, opened for reading its metadata. Not safe for threads; its owner serialises.

    May have `part_bytes`: that one call of decode should make, where less than usual serves as well."""

    format: str  # "hdf5", "netcdf3", ...
    name: str

    def names(self) -> Sequence[str]:
        """Full names of all datasets, without loading any."""

    def info(self, name: str) -> DatasetInfo:
        """Raises KeyError with the names that come closest when there is none."""

    def table(self, name: str, box: Box) -> ChunkTable:
        """Chunks that meet the box. Raises penstock.Error where the file is damaged (naming dataset and reason)."""

    def decode(self, name: str, box: Box) -> bytes | bytearray | memoryview:
        """The box, decoded on the host by the format's library. Only for datasets with encoded chunks, and for layouts
        without extents (compact, ...)."""

    def attributes(self, group: str = "") -> Mapping[str, Any]:
        """Attributes of the file or of a group."""

    def close(self) -> None: ...


@dataclass(frozen=True)
class NewDataset:
    """A dataset to create."""

    name: str
    shape: Shape
    dtype: DType
    chunk_shape: Shape | None = None  # None: contiguous, or one step per chunk if resizable
    resizable: tuple[int | None, ...] | None = None
    dimensions: tuple[str, ...] | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    shard_shape: Shape | None = None  # Zarr: of the chunks that share a file; None: a file a chunk

    def checked(self) -> NewDataset:
        """Itself. ValueError of what no format could mean."""
        if not isinstance(self.name, str):
            raise TypeError(f"names of datasets are text, not {self.name!r}")
        if "\0" in self.name:
            raise ValueError(f"the name {self.name!r} has a zero character in it")
        if min(self.shape, default=0) < 0 or math.prod(self.shape) * self.dtype.itemsize >= 1 << 63:
            raise ValueError(f"dataset {self.name!r}: shape {self.shape} of {self.dtype} is negative, or too large")
        for name in ("chunk_shape", "shard_shape", "resizable", "dimensions"):
            value = getattr(self, name)
            if value is not None and len(value) != len(self.shape):
                raise ValueError(f"dataset {self.name!r}: {name}={value} does not have the rank of shape {self.shape}")
        for extent, most in zip(self.shape, self.resizable or self.shape, strict=True):
            if most is not None and most < extent:
                raise ValueError(f"dataset {self.name!r}: resizable={self.resizable} is less than shape {self.shape}")
        return self


class Writer(Protocol):
    """Creates datasets' metadata and tells where their bytes must go. The mover writes the bytes.

    A new file is built under a temporary name in the same directory and renamed by `publish`. A file that is appended
    to is changed in place, in an order that leaves it readable by stock tools whenever the writer dies.

    `table` says where bytes go, so it may give places to chunks that are not stored. A writer that does has a
    `reading`: a Container of the file as it is being written, which gives none.
    """

    format: str
    name: str

    def names(self) -> Sequence[str]:
        """Of all datasets, those that are not published included."""

    def attributes(self, group: str = "") -> Mapping[str, Any]:
        """Attributes of the file or of a group, as they will be published."""

    def create(self, datasets: Sequence[NewDataset]) -> Sequence[ChunkTable]:
        """Adds datasets, in one go, and says where all of their bytes go (files named as they are now, temporary names
        included). Space is reserved: a full disk shows here."""

    def extend(self, name: str, shape: Shape) -> ChunkTable:
        """Grows a dataset to `shape`; the table holds the chunks that are new."""

    def table(self, name: str, box: Box) -> ChunkTable: ...

    def info(self, name: str) -> DatasetInfo:
        """Facts of a dataset created here or, when appending, found in the file: chunk shape, byte order and all that
        the format decided. `shape` is the present one."""

    def set_attributes(self, name: str, attributes: Mapping[str, Any]) -> None:
        """Sets attributes of a dataset, a group, or ("") the file."""

    def publish(self, durable: bool) -> None:
        """All bytes are written: the file takes its name. Durable: file and directory entry are on stable storage."""

    def abandon(self) -> None:
        """The end of writing: what was not published leaves nothing behind, and an older file of the same name is
        untouched. Whoever appends holds a lock until then."""
