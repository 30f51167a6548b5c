"""What a format knows about a file, as data: datasets, and where their bytes lie.

This is the seam between formats and the rest. A format's own library (or our parser, where there is none worth having)
answers questions about metadata; it never moves the bytes of a dataset, except those it must decode. What must stay
true: everything here is pure data and can be asked without a device; extents are absolute byte ranges of named files;
an extent never reaches over the end of its file (a format checks that when it is asked for extents, and refuses with
the dataset's name).

Every format, and `described.py`, prove the seam: they have Container and Writer as their base, and nothing outside asks
for more.
"""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from penstock._arrays.selection import Box, Shape
from penstock._error import Error

if TYPE_CHECKING:
    import numpy as np

    from penstock._arrays.dtype import DType


class Extent(NamedTuple):
    """A byte range of a file: so many `bytes` from `offset_bytes` on."""

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


class Filter(NamedTuple):
    """A filter that chunks went through, by a name of _core.decoded_filters(), and the values that its writer left."""

    name: str
    values: tuple[int, ...] = ()


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
    skipped: np.ndarray | None = None  # int64 [n]: a bit for each of `DatasetInfo.pipeline` that a chunk did not go
    # through; -1: only the format's library knows how it is encoded; None: all went through all
    missing: tuple[str, ...] = ()  # why parts of the box read as fill values that were meant to be data


class Places(NamedTuple):
    """Where encoded chunks go: files, and a row for each chunk: which of them, and where in it (int64 [n])."""

    files: tuple[str, ...]
    file_index: np.ndarray
    offset_bytes: np.ndarray


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
    conversion: str = ""  # why stored bytes are not the elements, so that the format's library makes them, and none are
    # written; empty: they are. If `dtype.host_only`, Container.values gives them, and no table has them.
    recipe: Recipe | str = "only the format's library decodes it"  # of encoded chunks; a text: why there is none
    pipeline: tuple[Filter, ...] | str = "only the format's library decodes it"  # as recipe, for the host's cores
    attributes: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def plain(cls, name: str, shape: Shape, dtype: DType, **more: Any) -> DatasetInfo:
        """One that is contiguous and has no more to tell, in a fifth of the time: all that is left out is said by the
        class."""
        made = cls.__new__(cls)
        made.__dict__.update(name=name, shape=shape, dtype=dtype, chunk_shape=shape, attributes={})
        made.__dict__.update(more)
        return made

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def chunk_bytes(self) -> int:
        """Bytes of the elements of a whole chunk."""
        return math.prod(self.chunk_shape) * self.dtype.itemsize


class Watch(NamedTuple):
    """A file, and what of it must stay as it is for an answer about it to hold; None: that may change."""

    file: str
    device: int
    inode: int
    bytes: int | None = None
    modified_ns: int | None = None


# (file offset, bytes, filters that it did not go through) of the chunk at this place in the grid of chunks, in the
# watched file; None: it is not simply there.
ChunkLookup = Callable[[Sequence[int]], "tuple[int, int, int] | None"]
# Bytes of a box of one dataset, decoded on the host by the format's library: C order, stored dtype.
HostDecoder = Callable[[str, Box], bytes | bytearray | memoryview]


class FilePart(NamedTuple):
    """A file that holds a part of a dataset, from element `origin` on, in C order and in `shape`, and nothing else."""

    file: str
    origin: Shape
    shape: Shape


class Share(NamedTuple):
    """A part of a dataset that several files have: a dataset of its own, whose name `table` and `decode` know; the box
    of it that counts, and the element of the whole where that begins."""

    info: DatasetInfo
    box: Box
    origin: Shape


class Container(ABC):
    """A file of one format, opened for reading its metadata. Not safe for threads; its owner serialises.

    What is not abstract has a default that serves most formats.
    """

    format: str  # "hdf5", "netcdf3", ...
    name: str
    in_one_file: ClassVar[bool] = False  # all datasets have one Watch
    part_bytes: int | None = None  # that one call of decode should make, where less than usual serves as well

    @abstractmethod
    def names(self) -> Sequence[str]:
        """Full names of all datasets, without loading any."""

    @abstractmethod
    def info(self, name: str) -> DatasetInfo:
        """Raises KeyError with the names that come closest when there is none."""

    @abstractmethod
    def table(self, name: str, box: Box) -> ChunkTable:
        """Chunks that meet the box. Raises penstock.Error where the file is damaged (naming dataset and reason)."""

    @abstractmethod
    def attributes(self, group: str = "") -> Mapping[str, Any]:
        """Attributes of the file or of a group."""

    def has_at_root(self, attribute: str) -> bool:
        return attribute in self.attributes()

    @abstractmethod
    def close(self) -> None: ...

    def decode(self, name: str, box: Box) -> bytes | bytearray | memoryview:
        """The box, decoded on the host by the format's library. Only for datasets with encoded chunks, and for layouts
        without extents (compact, ...)."""
        raise AssertionError(f"{self.format} encodes nothing")

    def values(self, name: str, box: Box) -> np.ndarray:
        """The box as Python objects, of datasets whose elements have no fixed size (`dtype.host_only`)."""
        raise AssertionError(f"{self.format} has only elements of a fixed size")

    def decoding(self, name: str, box: Box) -> Callable[[], bytes | bytearray | memoryview]:
        """What is left of decode() when all was asked of this container: it may run beside anything else."""
        made = self.decode(name, box)
        return lambda: made

    def names_in(self, group: str) -> Sequence[str]:
        """Full names of the datasets below a group; "" is the file."""
        return [name for name in self.names() if name.startswith(f"{group}/")] if group else self.names()

    def is_group(self, name: str) -> bool:
        """Whether the name, which no dataset has, is that of a group: formats that know better keep empty ones too."""
        inside = name.strip("/") + "/"
        return any(one.lstrip("/").startswith(inside) for one in self.names())

    def described(self, name: str) -> DatasetInfo | None:
        """As info(); None of a group."""
        try:
            return self.info(name)
        except KeyError:
            if self.is_group(name):
                return None
            raise

    def watch(self, name: str) -> Watch | None:
        """What must stay as it is for `table` to say the same of the dataset again. None: only `table` can tell."""
        return None

    def place(self, name: str) -> int | None:
        """Where all elements lie in the watched file, one after the other. None: `table` tells more."""
        return None

    def part(self, name: str, box: Box) -> FilePart | None:
        """The one file that holds all elements of the box, as they are read; whether it is there is not asked. None:
        `table` tells more."""
        return None

    def shares(self, name: str, box: Box) -> Sequence[Share] | None:
        """Parts that meet the box, where a dataset is divided over files. None: `table` knows the dataset."""
        return None

    def lookup(self, name: str) -> ChunkLookup | None:
        """Finds one chunk, where that takes no table of all of them. None: `table` tells."""
        return None

    def stored_bytes(self, name: str) -> int | None:
        """That the dataset takes in the file, where `table` does not tell, or no extents: of compact datasets, and of
        elements that are no plain bytes. None: it is not known."""
        return None

    def hindrance(self, name: str) -> str:
        """Why the dataset cannot be read here as things are; empty: nothing is known to hinder. Raises as info()."""
        return self.info(name).refusal


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
    compression: str | None = None  # a name of compression.NAMES
    compression_level: int | None = None  # None: the usual one
    shuffle: bool | None = None  # bytes of the elements in planes before they are compressed; None: as formats do
    is_written_at_once: bool = False  # all of its elements are, by the call that makes it

    def checked(self) -> NewDataset:
        """Itself. ValueError of what no format could mean."""
        if not isinstance(self.name, str):
            raise TypeError(f"names of datasets are text, not {self.name!r}")
        if "\0" in self.name:
            raise ValueError(f"the name {self.name!r} has a zero character in it")
        if min(self.shape, default=0) < 0 or math.prod(self.shape) * self.dtype.itemsize >= 1 << 63:
            raise ValueError(f"dataset {self.name!r}: shape {self.shape} of {self.dtype} is negative, or too large")
        for name in ("chunk_shape", "shard_shape", "resizable", "dimensions"):
            if getattr(self, name) is not None:
                self._check_axes(name)
        for extent, most in zip(self.shape, self.resizable or self.shape, strict=True):
            if most is not None and most < extent:
                raise ValueError(f"dataset {self.name!r}: resizable={self.resizable} is less than shape {self.shape}")
        return self

    def _check_axes(self, name: str) -> None:
        """Of what has a value for each dimension."""
        value = getattr(self, name)
        try:
            given = tuple(value)
            sizes = () if name == "dimensions" else tuple(operator.index(one) for one in given if one is not None)
        except TypeError:
            wanted = "whole numbers, or None" if name == "resizable" else "whole numbers"
            raise TypeError(f"dataset {self.name!r}: {name}={value!r}; it must be a sequence of {wanted}") from None
        if len(given) != len(self.shape):
            raise ValueError(f"dataset {self.name!r}: {name}={value} does not have the rank of shape {self.shape}")
        if name.endswith("_shape") and (len(sizes) < len(given) or min(sizes, default=1) < 1):
            raise ValueError(f"dataset {self.name!r}: {name}={value}; each must be 1 or more")


class Writer(Container):
    """Creates datasets' metadata and tells where their bytes must go. The mover writes the bytes.

    A new file is built under a temporary name in the same directory and renamed by `publish`. A file that is appended
    to is changed in place, in an order that leaves it readable by stock tools whenever the writer dies.

    As a container it tells of the file as it will be published: names and shapes, those not published included. `table`
    says where bytes go, so it may give places to chunks that are not stored. A writer that does has a `reading`: a
    container of the file as it is being written, which gives none.
    """

    reading: Container | None = None  # None: it reads the file itself

    @abstractmethod
    def create(self, datasets: Sequence[NewDataset]) -> Sequence[ChunkTable | None]:
        """Adds datasets, in one go, and says where all of their bytes go (files named as they are now, temporary names
        included). Space is reserved: a full disk shows here. None: `table` says it when it is asked, and reserves."""

    def make_room(self, name: str, cells: np.ndarray) -> None:
        """Gives chunks that are not stored a place, which `table` then tells, where elements of them are to be written
        as they are. `cells`: which chunks, as numbers along each dimension (int64 [n, ndim])."""

    def packing(self, name: str, box: Box) -> tuple[Filter, ...]:
        """Filters for an Encoder, with their values, that chunks of the box must go through before they get a place;
        none: `table` tells where elements go as they are. Raises Error where that is so and cannot be done."""
        return ()

    def packing_unit(self, name: str, box: Box) -> Shape | None:
        """Boxes of whole ones of these, of those that meet the box, can be written anew, through filters. None: nothing
        is, or that is refused."""
        return None

    def place(self, name: str, origin: np.ndarray, sizes: np.ndarray) -> Places:
        """Gives encoded chunks a place, by their first elements (int64 [n, ndim]) and bytes, in order."""
        raise AssertionError(f"{self.format} encodes nothing")

    def is_in_files(self, name: str, box: Box) -> bool:
        """Whether chunks of the box, which go through no filters, may be files as chunk_files() says, instead of lying
        where `table` says."""
        return False

    def chunk_files(self, name: str, origin: np.ndarray) -> Sequence[str] | None:
        """Files that each are to hold one whole chunk and nothing else, by first elements as in place(), in folders
        that are there. None: place() says where the chunks go."""
        return None

    def write_values(self, name: str, box: Box, values: np.ndarray) -> None:
        """Writes Python objects, by the format's library, of datasets whose elements have no fixed size."""
        raise AssertionError(f"{self.format} has only elements of a fixed size")

    def takes_one(self, name: str, origin: Shape) -> bool:
        """Whether the chunk that begins there goes through filters, and place_one() gives it its first place."""
        return False

    def place_one(self, name: str, origin: Shape, bytes: int) -> tuple[str, int]:
        """As place(), of one chunk: its file and its offset there."""
        raise AssertionError(f"{self.format} encodes nothing")

    @abstractmethod
    def extend(self, name: str, shape: Shape) -> ChunkTable:
        """Grows a dataset to `shape`; the table holds the chunks that are new."""

    @abstractmethod
    def set_attributes(self, name: str, attributes: Mapping[str, Any]) -> None:
        """Sets attributes of a dataset, a group, or ("") the file."""

    @abstractmethod
    def publish(self, durable: bool) -> None:
        """All bytes are written: the file takes its name. Durable: file and directory entry are on stable storage."""

    @abstractmethod
    def abandon(self) -> None:
        """The end of writing: what was not published leaves nothing behind, and an older file of the same name is
        untouched. Whoever appends holds a lock until then."""

    def close(self) -> None:
        """A writer ends by abandon()."""

    def decode(self, name: str, box: Box) -> bytes | bytearray | memoryview:
        raise Error(
            code="unsupported",
            operation=f"decode dataset {name!r} of",
            file=self.name,
            cause="the file is being written",
            advice="close it, and open it for reading",
        )

    def need_same(self) -> None:
        """Error when another file has taken the name of one that is changed in place."""

    def is_own(self, file: str) -> bool:
        """Whether elements that lie in `file` are of this one. Formats whose elements may lie anywhere know others."""
        return True
