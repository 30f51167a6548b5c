"""The metadata of one Zarr array, as data: from zarr.json (version 3) to shapes, types, names of chunk files, codecs.

What must stay true: a document that is wrong is a ValueError that says what is wrong; one that is right but uses what
Penstock does not do is kept, with `refusal` saying what. Names of chunk files are made of integers here, never taken
from the document.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from penstock._arrays.dtype import DType
from penstock._files.documents import LARGEST, Unsupported, integers, member, named, short, texts
from penstock.formats.model import ZLIB, Filter, Recipe, Shape
from penstock.formats.zarr.codecs import Packer, Pipeline, parse_pipeline
from penstock.formats.zarr.types import parse_fill, parse_type, with_order

_KNOWN = {
    *("zarr_format", "node_type", "shape", "data_type", "chunk_grid", "chunk_key_encoding", "fill_value", "codecs"),
    *("attributes", "dimension_names", "storage_transformers"),
}


# numcodecs' lz4 is one block behind its length.
_RECIPES = {
    "gzip": Recipe("gzip", checksum="crc32", check_at=8, check_order="<"),
    "zlib": ZLIB,
    "zstd": Recipe("zstd"),
    "lz4": Recipe("lz4", header_bytes=4),
}


_PIPELINE = frozenset(
    {"gzip", "zlib", "zstd", "lz4", "blosc", "bz2", "crc32c", "fletcher32", "shuffle"}
)  # packers that the core undoes under the same name
_PLACED_SUMS = frozenset({"adler32", "crc32"})  # as these, and they may stand before the bytes


@dataclass(frozen=True)
class ChunkKeys:
    """How chunk files are named. `prefix`: the first part of the name, empty in version 2."""

    prefix: str
    separator: str

    def path(self, index: Sequence[int]) -> str:
        """Relative to the array's folder."""
        if not index:
            return self.prefix or "0"
        joined = self.separator.join(map(str, index))
        return f"{self.prefix}{self.separator}{joined}" if self.prefix else joined


@dataclass(frozen=True)
class ArrayMeta:
    """One array. `file_chunk`: elements of one chunk file (a shard, where there are shards)."""

    version: int
    shape: Shape
    file_chunk: Shape
    dtype: DType
    fill: bytes
    keys: ChunkKeys
    pipeline: Pipeline
    dimensions: tuple[str | None, ...] | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    refusal: str = ""


@dataclass(frozen=True)
class Storage:
    """How the chunks of an array look from outside.

    `backwards`: their elements lie in Fortran order, so as stored all dimensions are the other way round.
    `chunk`: what one row of a table holds, as stored; with `sharded` a chunk file holds many.
    `packed`: chunks must be decoded. `turned`: decoded, a chunk has its dimensions in the user's order all the same.
    """

    backwards: bool
    chunk: Shape
    turned: bool
    packed: bool
    sharded: bool

    def stored(self, shape: Shape) -> Shape:
        return shape[::-1] if self.backwards else shape


def storage_of(meta: ArrayMeta) -> Storage:
    """A reversal of all dimensions is Fortran order, which costs nothing. Any other order is decoded on the host."""
    outer, rank = meta.pipeline, len(meta.shape)
    outside = _order(outer.order, rank)
    if outer.sharding is None:
        backwards = outside == "F"
        chunk = meta.file_chunk[::-1] if backwards else meta.file_chunk
        packed = bool(outer.packers or outer.objects) or outside == "other"
        return Storage(backwards, chunk, backwards, packed, False)
    inner = outer.sharding.inner
    orders = {outside, _order(inner.order, rank)}
    if outer.packers or inner.sharding is not None or orders == {"F"} or "other" in orders:
        return Storage(False, meta.file_chunk, False, True, False)  # a shard can only be decoded as a whole
    turned = "F" in orders and outside == "C"
    chunk = outer.sharding.shape[::-1] if turned else outer.sharding.shape  # of shards that are turned themselves
    return Storage("F" in orders, chunk, turned, bool(inner.packers or inner.objects), True)


def pipeline_of(meta: ArrayMeta) -> tuple[Filter, ...] | str:
    """How the host's cores undo the packing of a chunk; or why only our decoder in Python can."""
    packers = _packers_of(meta)
    if isinstance(packers, str):
        return packers
    filters = [_filter_of(one) for one in packers]
    others = [one.name for one, found in zip(packers, filters, strict=True) if found is None]
    return f"the cores do not undo {', '.join(others)}" if others else tuple(filter(None, filters))


def _filter_of(packer: Packer) -> Filter | None:
    """None where the cores do not undo it: a delta that is stored as numbers of another type, say."""
    if packer.name in _PLACED_SUMS:
        return Filter(packer.name, (int(packer.at_start),))
    if packer.name == "delta":
        made = np.dtype(packer.made)
        if made != np.dtype(packer.stored) or (made.kind == "f" and made.itemsize < 4):
            return None
        return Filter("delta", (made.itemsize, int(made.byteorder == ">"), int(made.kind == "f")))
    return Filter(packer.name, packer.values) if packer.name in _PIPELINE and not packer.at_start else None


def _packers_of(meta: ArrayMeta) -> tuple[Packer, ...] | str:
    """Of what a row of a table holds, when it holds its elements in C or Fortran order; or what else it holds."""
    storage, pipeline = storage_of(meta), meta.pipeline
    if storage.sharded and pipeline.sharding is not None:
        pipeline = pipeline.sharding.inner
    elif pipeline.sharding is not None:
        return "shards that are compressed as a whole, and shards in shards, are decoded on the host"
    if _order(pipeline.order, len(meta.shape)) == "other":
        return f"its elements have the order {pipeline.order}, neither C nor Fortran"
    return pipeline.packers


def recipe_of(meta: ArrayMeta) -> Recipe | str:
    """How a device undoes the packing of a chunk; or why only the host can."""
    packers = _packers_of(meta)
    if isinstance(packers, str):
        return packers
    names = [packer.name for packer in packers]
    if len(names) == 1 and names[0] in _RECIPES:
        return _RECIPES[names[0]]
    return f"of Zarr's codecs, {', '.join(_RECIPES)} alone are undone on a GPU; this has {', '.join(names) or 'none'}"


def _order(order: tuple[int, ...] | None, rank: int) -> str:
    if order is None or order == tuple(range(rank)):
        return "C"
    return "F" if order == tuple(range(rank))[::-1] else "other"


def parse_array(document: dict[str, Any]) -> ArrayMeta:
    """From zarr.json of an array. Raises ValueError."""
    shape = integers(member(document, "shape", list), "shape", 0)
    named_dimensions = document.get("dimension_names")
    dimensions = None if named_dimensions is None else texts(named_dimensions, "dimension_names", len(shape))
    attributes = member(document, "attributes", dict) if "attributes" in document else {}
    plain = Pipeline((), None, None, ())
    whole, keys = tuple(max(1, extent) for extent in shape), ChunkKeys("c", "/")
    meta = ArrayMeta(3, shape, whole, DType("void8", 1, "V"), b"\0", keys, plain, dimensions, attributes)
    try:
        _check_understood(document)
        meta = replace(meta, file_chunk=_grid(document, len(shape)), keys=_keys(document))
    except Unsupported as error:
        return replace(meta, refusal=str(error))
    return finished(meta, document)


def _check_understood(document: dict[str, Any]) -> None:
    for key in sorted(set(document) - _KNOWN):
        extension = document[key]
        if not isinstance(extension, dict) or extension.get("must_understand") is not False:
            raise Unsupported(f"it has the member {short(key)}, which Penstock does not know")
    if document.get("storage_transformers"):
        raise Unsupported("storage transformers are not known")


def _serialized(pipeline: Pipeline, dtype: DType) -> DType:
    """The elements that become bytes: those of the array, or what its codecs make of them."""
    if pipeline.sharding is not None:
        return _serialized(pipeline.sharding.inner, dtype)
    stored = [packer.stored for packer in pipeline.packers if packer.stored]
    return DType.of(stored[-1]) if stored else dtype


def finished(meta: ArrayMeta, document: dict[str, Any]) -> ArrayMeta:
    """With type, codecs and fill value; or with the reason why there are none."""
    changes: dict[str, Any] = {}
    try:
        dtype = parse_type(document.get("data_type"))
        pipeline = parse_pipeline(document.get("codecs"), meta.file_chunk)
        order, serialized = pipeline.byte_order, _serialized(pipeline, dtype)
        if order is None and serialized.word_bytes > 1 and serialized.kind not in "VO":
            raise ValueError("codec 'bytes' does not say the order of bytes")
        dtype = with_order(dtype, bool(order))
        if "fill_value" not in document:
            raise ValueError("it has no 'fill_value'")
        changes = {"dtype": dtype, "pipeline": pipeline, "fill": parse_fill(document["fill_value"], dtype)}
        check_sizes(meta, dtype)
        check_chain(pipeline, dtype)
    except Unsupported as error:
        changes = {"refusal": str(error)}
    return ArrayMeta(**(vars(meta) | changes))


def check_chain(pipeline: Pipeline, dtype: DType) -> None:
    """The chain makes elements of that type. Raises ValueError."""
    inner = pipeline.sharding.inner if pipeline.sharding is not None else pipeline
    if inner is not pipeline:
        check_chain(inner, dtype)
    elif (dtype.name in ("text", "bytes")) != bool(pipeline.objects) or (dtype.name == "text") != (
        pipeline.objects == "utf8"
    ):
        raise ValueError(f"its chunks hold {pipeline.objects or 'plain elements'}, its elements are {dtype}")
    for packer in pipeline.packers:
        if packer.made and DType.of(packer.made).native != dtype.native:
            raise ValueError(f"codec {packer.name!r} makes {packer.made} of chunks of {dtype}")
        dtype = DType.of(packer.stored) if packer.stored else dtype


def check_sizes(meta: ArrayMeta, dtype: DType) -> None:
    for shape, what in ((meta.shape, "shape"), (meta.file_chunk, "chunk shape")):
        if math.prod(shape) * dtype.itemsize >= LARGEST:
            raise ValueError(f"{what} {shape} of {dtype.itemsize}-byte elements is larger than any file system")


def _grid(document: dict[str, Any], rank: int) -> Shape:
    name, configuration = named(document.get("chunk_grid"), "chunk_grid")
    if name != "regular":
        raise Unsupported(f"chunk grid {short(name)} is not 'regular'")
    chunk = integers(configuration.get("chunk_shape"), "chunk_shape", 1)
    if len(chunk) != rank:
        raise ValueError(f"chunk_shape {chunk} has {len(chunk)} dimensions, the array {rank}")
    return chunk


def _keys(document: dict[str, Any]) -> ChunkKeys:
    name, configuration = named(document.get("chunk_key_encoding"), "chunk_key_encoding")
    if name not in ("default", "v2"):
        raise Unsupported(f"chunk key encoding {short(name)} is not one of 'default' and 'v2'")
    separator = configuration.get("separator", "/" if name == "default" else ".")
    if separator not in ("/", "."):
        raise ValueError(f"the separator of chunk keys is {short(separator)}")
    return ChunkKeys("c" if name == "default" else "", separator)
