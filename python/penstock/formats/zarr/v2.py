"""Zarr version 2 arrays, read as if they were version 3: the same chunks, described by another document.

What must stay true: compressors that need arbitrary code (numcodecs knows some) are never run; filters that are not
known are refused by name. Version 2 is not written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from penstock._arrays.dtype import DType
from penstock._files.documents import Unsupported, integers, member, short
from penstock.formats.zarr.array import ArrayMeta, ChunkKeys, check_chain, check_sizes
from penstock.formats.zarr.codecs import NUMBERS, OBJECTS, ROUNDED, Packer, Pipeline, parse_numbers, parse_packer
from penstock.formats.zarr.types import parse_fill

_PACKERS = ("zlib", "gzip", "zstd", "blosc", "lz4", "bz2", "lzma")
_FILTERS = (*_PACKERS, "shuffle", "crc32c", "crc32", "adler32", "fletcher32")
_TYPE = re.compile(r"[<>|=]?(?:[biufcVSU][0-9]{1,6}|[Mm]8(?:\[[0-9]{0,9}[a-zA-Zμ]{1,7}\])?)")
_OBJECT_NAMES = {"utf8": "text", "bytes": "bytes"}
_DIMENSIONS = "_ARRAY_DIMENSIONS"  # where xarray keeps names of dimensions, which version 2 has not


def parse_array_v2(document: dict[str, Any], attributes: Mapping[str, Any]) -> ArrayMeta:
    """From .zarray and .zattrs. Raises ValueError."""
    if member(document, "zarr_format", int) != 2:
        raise ValueError(f"zarr_format {document['zarr_format']} in .zarray is not 2")
    shape = integers(member(document, "shape", list), "shape", 0)
    chunks = integers(member(document, "chunks", list), "chunks", 1)
    if len(chunks) != len(shape):
        raise ValueError(f"chunks {chunks} has {len(chunks)} dimensions, the array {len(shape)}")
    separator = document.get("dimension_separator", ".")
    if separator not in ("/", "."):
        raise ValueError(f"dimension_separator is {short(separator)}")
    names = attributes.get(_DIMENSIONS)
    is_named = isinstance(names, list) and len(names) == len(shape) and all(isinstance(one, str) for one in names)
    kept = {key: value for key, value in attributes.items() if key != _DIMENSIONS or not is_named}
    try:
        pipeline = _pipeline(document, len(shape))
        dtype = _type(document.get("dtype"), pipeline.objects)
        check_chain(pipeline, dtype)
        fill, refusal = _fill(document.get("fill_value"), dtype), ""
    except Unsupported as error:
        dtype, pipeline, fill, refusal = DType("void8", 1, "V"), Pipeline((), None, None, ()), b"\0", str(error)
    meta = ArrayMeta(2, shape, chunks, dtype, fill, ChunkKeys("", separator), pipeline)
    check_sizes(meta, dtype)
    return ArrayMeta(
        **(vars(meta) | {"dimensions": tuple(names) if is_named else None, "attributes": kept, "refusal": refusal})
    )


def _type(value: Any, objects: str) -> DType:
    if value == "|O" and objects:
        return DType.objects(_OBJECT_NAMES[objects])
    try:
        if isinstance(value, str) and _TYPE.fullmatch(value):
            return DType.of(np.dtype(value))
        if isinstance(value, list) and 0 < len(value) <= 1000 and all(map(_is_member, value)):
            return DType.of(np.dtype([(name, kind, *map(tuple, shape)) for name, kind, *shape in value]))
    except (TypeError, ValueError):
        pass
    what = "; a filter vlen-utf8 or vlen-bytes would say what the objects are" if value == "|O" else ""
    raise Unsupported(f"its elements are of type {short(value)}, which Penstock does not read{what}")


def _is_member(value: Any) -> bool:
    plain = isinstance(value, list) and len(value) in (2, 3) and all(isinstance(one, str) for one in value[:2])
    shape = value[2] if plain and len(value) == 3 else []
    is_shape = isinstance(shape, list) and len(shape) <= 8 and all(type(n) is int and 0 < n < 1 << 20 for n in shape)
    return plain and is_shape and bool(_TYPE.fullmatch(value[1]))


def _pipeline(document: dict[str, Any], rank: int) -> Pipeline:
    objects, packers = _filters(document.get("filters"))
    order = document.get("order", "C")
    if order not in ("C", "F"):
        raise ValueError(f"order is {short(order)}")
    compressor = document.get("compressor")
    if isinstance(compressor, dict) and compressor.get("id") in _PACKERS:
        packers.append(parse_packer(compressor["id"], compressor, compressor["id"]))
    elif compressor is not None:
        raise Unsupported(
            f"its chunks are compressed by {short(compressor)}, which is not one of {', '.join(_PACKERS)}"
        )
    orders = (tuple(range(rank))[::-1],) if order == "F" else ()
    return Pipeline(orders, None, None, tuple(packers), objects)


def _filters(value: Any) -> tuple[str, list[Packer]]:
    """(what makes bytes of objects, the others in the order in which they were applied)."""
    if value is None:
        return "", []
    if not isinstance(value, list) or len(value) > 32 or not all(isinstance(one, dict) for one in value):
        raise ValueError(f"filters is {short(value)}; a short list is expected")
    objects, packers = "", []
    for place, one in enumerate(value):
        name = one.get("id")
        if not isinstance(name, str):
            raise ValueError(f"a filter's id is {short(name)}; text is expected")
        if place == 0 and name in OBJECTS:
            objects = OBJECTS[name]
        elif name in NUMBERS or name == ROUNDED:
            packers.append(parse_numbers(name, one))
        elif name in _FILTERS:
            packers.append(parse_packer(name, one, name))
        else:
            raise Unsupported(f"its chunks went through filter {short(one)}")
    return objects, packers


def _fill(value: Any, dtype: DType) -> bytes:
    if value is None:
        return bytes(dtype.itemsize)
    if dtype.kind == "b" and value in (0, 1):
        value = bool(value)
    if dtype.kind == "V" and value == 0:
        return bytes(dtype.itemsize)
    return parse_fill(value, dtype)
