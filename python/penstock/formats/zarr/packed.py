"""Compressed chunks of Zarr arrays that are written: codecs as documents, codecs for an Encoder, and chunk files.

What must stay true: a chunk file has just the bytes of its chunk; only codecs that zarr-python undoes are written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from penstock import _core
from penstock.formats.faults import unsupported
from penstock.formats.model import Filter, NewDataset, Places, Shape
from penstock.formats.packing.compression import LEVELS, level_of
from penstock.formats.zarr.allocate import Index, make_packed
from penstock.formats.zarr.array import ArrayMeta, pipeline_of, storage_of

PathOf = Callable[[Index], str]


def packers(new: NewDataset) -> list[dict[str, Any]]:
    """Codecs behind the one that makes bytes. ValueError where Zarr has none for what is asked."""
    if new.compression is None:
        return []
    if new.shuffle:
        raise ValueError("shuffle=True, but no codec of Zarr version 3 only shuffles: leave it out, zstd does without")
    if new.shard_shape is not None:
        raise ValueError("compressed chunks are not written into shards: leave out shard_shape, or compression")
    if new.compression == "gzip":
        return [{"name": "gzip", "configuration": {"level": level_of(new)}}]
    if new.compression == "zstd":
        return [{"name": "zstd", "configuration": {"level": level_of(new), "checksum": False}}]
    return [{"name": "numcodecs.lz4", "configuration": {"acceleration": 1}}]


def encoder_of(meta: ArrayMeta, document: Mapping[str, Any]) -> tuple[Filter, ...]:
    """What its chunks go through, for an Encoder; nothing where there is none for one of its codecs."""
    pipeline, known = pipeline_of(meta), _core.encoded_filters()
    if storage_of(meta).sharded or isinstance(pipeline, str) or any(one.name not in known for one in pipeline):
        return ()
    told = {
        one["name"].removeprefix("numcodecs."): one.get("configuration", {}).get("level")
        for one in document["codecs"]
        if isinstance(one, dict)
    }
    filters = []
    for name, _ in pipeline:
        if name in LEVELS:
            usual, least, most = LEVELS[name]
            level = told.get(name)
            filters.append(Filter(name, (level if isinstance(level, int) and least <= level <= most else usual,)))
        else:
            filters.append(Filter(name, (LEVELS["gzip"][0],) if name == "zlib" else ()))
    return tuple(filters)


def need_encoder(file: str, name: str, meta: ArrayMeta, filters: tuple[Filter, ...]) -> None:
    """Raises Error unless chunks of a compressed array can be made."""
    if not filters:
        how = "+".join(meta.pipeline.names)
        raise unsupported(file, f"its chunks are encoded ({how}), and new ones are not made", "write it anew", name)


def need_full(file: str, name: str, meta: ArrayMeta, shape: Shape) -> None:
    """Raises Error unless a compressed array can grow to `shape` and its chunks stay as they are: in the dimensions
    that grow the last ones are full."""
    sides = zip(meta.shape, shape, meta.file_chunk, strict=True)
    if any(extent % chunk and after > extent for extent, after, chunk in sides):
        cause = f"its chunks of {meta.file_chunk} are compressed, and the last ones of {meta.shape} are not full"
        raise unsupported(file, cause, "append whole chunks", name)


def place_files(meta: ArrayMeta, chunks: tuple[np.ndarray, np.ndarray], path_of: PathOf) -> Places:
    """`chunks`: first elements, as stored, and bytes."""
    origin, sizes = chunks
    storage = storage_of(meta)
    numbers = origin // np.array(storage.chunk, np.int64)
    paths = []
    for index, size in zip((numbers[:, ::-1] if storage.backwards else numbers).tolist(), sizes.tolist(), strict=True):
        paths.append(path_of(tuple(index)))
        make_packed(paths[-1], size)
    return Places(tuple(paths), np.arange(len(paths)), np.zeros(len(paths), np.int64))
