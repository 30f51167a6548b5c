"""Documents of Zarr version 3 that are written: of arrays, groups, attributes, and consolidated metadata.

What must stay true: what is written is parsed again by `zarr/array` before anything else is done with it, so a document
that we could not read is never stored; files of metadata are replaced by rename.
"""

from __future__ import annotations

import base64
import io
import json
import math
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from penstock._arrays.dtype import DType
from penstock._error import Error
from penstock._files.open_files import with_room
from penstock.formats.model import NewDataset, Shape
from penstock.formats.new_file import sync_file
from penstock.formats.packing.compression import chunk_of
from penstock.formats.zarr.packed import packers
from penstock.formats.zarr.types import type_document

_CHUNK_BYTES = 128 << 20  # of a chunk whose shape is left to us: large enough for storage, small enough for readers


def array_document(dataset: NewDataset) -> dict[str, Any]:
    """zarr.json of a new array. Raises ValueError where Zarr cannot say it."""
    chunk = dataset.chunk_shape or (_chunk_of(dataset) if dataset.compression is None else chunk_of(dataset))
    if len(chunk) != len(dataset.shape) or any(n < 1 for n in chunk):
        raise ValueError(f"chunks of shape {tuple(chunk)} for an array of shape {tuple(dataset.shape)}")
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(dataset.shape),
        "data_type": type_document(dataset.dtype),
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(dataset.shard_shape or chunk)}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": _zero(dataset.dtype),
        "codecs": _codecs(dataset, tuple(chunk)),
        "attributes": plain_attributes(dataset.attributes),
    }
    if dataset.dimensions is not None:
        if len(dataset.dimensions) != len(dataset.shape):
            raise ValueError(f"{len(dataset.dimensions)} names for {len(dataset.shape)} dimensions")
        document["dimension_names"] = list(dataset.dimensions)
    return document


def group_document() -> dict[str, Any]:
    return {"zarr_format": 3, "node_type": "group", "attributes": {}}


def _chunk_of(dataset: NewDataset) -> Shape:
    """One chunk, or as many as keep each below the limit, cut along the first dimensions. In an array that grows from
    nothing, or without limit, a chunk is one step."""
    shape = tuple(max(1, n) for n in dataset.shape)
    if dataset.resizable is not None and shape and dataset.resizable[0] is None:
        shape = (1, *shape[1:])
    chunk = list(shape)
    for axis, length in enumerate(shape):
        rest = math.prod(chunk[axis + 1 :]) * dataset.dtype.itemsize
        most = max(1, _CHUNK_BYTES // rest)
        chunk[axis] = -(-length // -(-length // most))  # equal parts, so that the last one is not mostly padding
        if chunk[axis] > 1:
            break
    return tuple(chunk)


def _codecs(dataset: NewDataset, chunk: Shape) -> list[Any]:
    if dataset.dtype == DType.objects("text"):
        if dataset.shard_shape is not None:
            raise ValueError("text of variable length is written without shards")
        return [{"name": "vlen-utf8"}]
    plain: dict[str, Any] = {"name": "bytes"}
    if dataset.dtype.word_bytes > 1 and dataset.dtype.kind != "V":
        plain["configuration"] = {"endian": "big" if dataset.dtype.big_endian else "little"}
    codecs = [plain, *packers(dataset)]
    if dataset.shard_shape is None:
        return codecs
    index = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]
    configuration = {"chunk_shape": list(chunk), "codecs": codecs, "index_codecs": index, "index_location": "end"}
    return [{"name": "sharding_indexed", "configuration": configuration}]


def _zero(dtype: DType) -> Any:
    """Zeros, which are what a file reads as before it is written."""
    if dtype.kind in "bO":
        return False if dtype.kind == "b" else ""
    if dtype.kind == "c":
        return [0.0, 0.0]
    if dtype.kind == "V":
        return base64.b64encode(bytes(dtype.itemsize)).decode()  # the one form that zarr-python reads
    if dtype.name == "float8_e8m0fnu":
        return "0x00"  # which is no zero: the type has none
    return 0 if dtype.kind in "iu" else 0.0


def plain_attributes(values: Mapping[str, Any]) -> dict[str, Any]:
    """As JSON has them: numbers and arrays of NumPy become numbers and lists. Raises ValueError."""
    return {key: _plain(key, value) for key, value in values.items()}


def _plain(key: str, value: Any) -> Any:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(key, one) for one in value]
    if isinstance(value, dict):
        return {str(name): _plain(key, one) for name, one in value.items()}
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise ValueError(
        f"attribute {key!r}: {type(value).__name__} is not a type of JSON; use text, numbers, lists of them"
    )


def write_document(path: str, document: Mapping[str, Any], durable: bool, temporary: str) -> None:
    """In place of an older one, in one step; nothing has the temporary name."""
    try:
        # "x" follows no link that came meanwhile.
        with with_room(lambda: io.open(temporary, "x", encoding="utf-8")) as stream:
            stream.write(json.dumps(document, indent=2))
        if durable:
            sync_file(temporary)
        os.replace(temporary, path)
    except OSError as error:
        if os.path.lexists(temporary):
            os.unlink(temporary)
        raise Error.of(error, "write", path, "check the folder, its permissions and its space") from error
    except BaseException:  # an Error of the sync, or an interrupt
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def consolidated(document: dict[str, Any], changed: Mapping[str, dict[str, Any]]) -> dict[str, Any] | None:
    """A group's document with the changed nodes in its consolidated metadata; None when it has none."""
    inside = document.get("consolidated_metadata")
    if not isinstance(inside, dict) or not isinstance(inside.get("metadata"), dict):
        return None
    nested = {"consolidated_metadata": {"kind": "inline", "must_understand": False, "metadata": {}}}
    told = {name: one | (nested if one["node_type"] == "group" else {}) for name, one in changed.items()}
    return document | {"consolidated_metadata": inside | {"metadata": inside["metadata"] | told}}


def retold(group: str, changed: Mapping[str, dict[str, Any]], document: dict[str, Any] | None) -> dict[str, Any] | None:
    """A group's document with the nodes that changed, by name. None: there is nothing to tell. `document`: as it lies
    in the store, where the group itself did not change."""
    head = f"{group}/" if group else ""
    below = {name[len(head) :]: one for name, one in changed.items() if name and name.startswith(head)}
    document = changed.get(group) or document
    whole = consolidated(document, below) if document is not None else None
    return whole or changed.get(group)
