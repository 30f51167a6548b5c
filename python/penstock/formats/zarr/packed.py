"""Compressed chunks of Zarr arrays that are written: codecs as documents, codecs for an Encoder, and chunk files.

What must stay true: a chunk file has just the bytes of its chunk; only codecs that zarr-python undoes are written.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from penstock import _core
from penstock.formats.faults import refused, unsupported
from penstock.formats.model import Box, Filter, NewDataset, Places, Shape
from penstock.formats.packing.compression import LEVELS, is_whole, level_of
from penstock.formats.zarr.allocate import Index, make_packed
from penstock.formats.zarr.array import ArrayMeta, pipeline_of, storage_of

_MOST_SHUFFLED = 256

PathOf = Callable[[Index], str]


def packers(new: NewDataset) -> list[dict[str, Any]]:
    """Codecs behind the one that makes bytes. ValueError where Zarr has none for what is asked."""
    if new.compression is None:
        return []
    if new.shuffle and new.dtype.itemsize >= _MOST_SHUFFLED:
        raise ValueError(f"shuffle=True, but numcodecs.shuffle takes elements of less than {_MOST_SHUFFLED} bytes")
    return [*_shuffle(new), _packer(new)]


def _shuffle(new: NewDataset) -> list[dict[str, Any]]:
    """Only where it is asked for: the specification of Zarr has none, so some readers have none."""
    size = new.dtype.itemsize
    return [{"name": "numcodecs.shuffle", "configuration": {"elementsize": size}}] if new.shuffle and size > 1 else []


def _packer(new: NewDataset) -> dict[str, Any]:
    if new.compression == "gzip":
        return {"name": "gzip", "configuration": {"level": level_of(new)}}
    if new.compression == "zstd":
        return {"name": "zstd", "configuration": {"level": level_of(new), "checksum": False}}
    return {"name": "numcodecs.lz4", "configuration": {"acceleration": 1}}


def encoder_of(meta: ArrayMeta, document: Mapping[str, Any]) -> tuple[Filter, ...]:
    """What its chunks go through, for an Encoder; nothing where there is none for one of its codecs."""
    pipeline, known, storage = pipeline_of(meta), _core.encoded_filters(), storage_of(meta)
    if isinstance(pipeline, str) or any(one.name not in known for one in pipeline):
        return ()
    codecs = document["codecs"]
    if storage.sharded:
        if storage.backwards or storage.turned or not storage.packed:
            return ()
        codecs = next(one["configuration"]["codecs"] for one in codecs if one["name"] == "sharding_indexed")
    told = {
        one["name"].removeprefix("numcodecs."): one.get("configuration", {}).get("level")
        for one in codecs
        if isinstance(one, dict)
    }
    filters = []
    for name, values in pipeline:
        if name in LEVELS:
            usual, least, most = LEVELS[name]
            level = told.get(name)
            filters.append(Filter(name, (level if isinstance(level, int) and least <= level <= most else usual,)))
        else:
            filters.append(Filter(name, (LEVELS["gzip"][0],) if name == "zlib" else values))
    return tuple(filters)


def encoder_for(file: str, array: tuple[str, ArrayMeta, Mapping[str, Any]], box: Box) -> tuple[Filter, ...]:
    """The same, for a box of the array (name, metadata and document). Raises Error where it has a part of a shard: the
    other chunks of it would have to be moved."""
    name, meta, document = array
    filters = encoder_of(meta, document)
    if filters and storage_of(meta).sharded and not is_whole(box.start, box.stop, meta.file_chunk, meta.shape):
        cause = f"its shards of {meta.file_chunk} hold compressed chunks, and the selection has parts of some"
        raise refused(file, cause, "write whole shards at a time", name)
    return filters


def need_encoder(file: str, name: str, meta: ArrayMeta, filters: tuple[Filter, ...]) -> None:
    """Raises Error unless chunks of a compressed array can be made."""
    if not filters:
        how = "+".join(meta.pipeline.names)
        raise unsupported(file, f"its chunks are encoded ({how}), and new ones are not made", "write it anew", name)


def unit_of(meta: ArrayMeta, document: Mapping[str, Any]) -> Shape | None:
    """Chunks, or shards, that are written whole. None of an array that is stored as it is, or cannot be encoded."""
    return meta.file_chunk if storage_of(meta).packed and encoder_of(meta, document) else None


def place_files(meta: ArrayMeta, chunks: tuple[np.ndarray, np.ndarray], path_of: PathOf) -> Places:
    """`chunks`: first elements, as stored, and bytes."""
    origin, sizes = chunks
    paths = [path_of(index) for index in _indices(meta, origin)]
    for path, size in zip(paths, sizes.tolist(), strict=True):
        make_packed(path, size)
    return Places(tuple(paths), np.arange(len(paths)), np.zeros(len(paths), np.int64))


def chunk_files(meta: ArrayMeta, origin: np.ndarray, path_of: PathOf, folders: set[str]) -> list[str]:
    """The same files, for who makes them. `folders`: those that were made; what is missing is made."""
    paths = [path_of(index) for index in _indices(meta, origin)]
    for folder in {os.path.dirname(path) for path in paths} - folders:
        os.makedirs(folder, exist_ok=True)
        folders.add(folder)
    return paths


def _indices(meta: ArrayMeta, origin: np.ndarray) -> list[Index]:
    """In the user's order of dimensions."""
    storage = storage_of(meta)
    numbers = origin // np.array(storage.chunk, np.int64)
    return [tuple(index) for index in (numbers[:, ::-1] if storage.backwards else numbers).tolist()]
