"""safetensors: names, types and byte ranges as JSON, then the data of all tensors without gaps.

What the reference implementation refuses is refused: a header above 100 MB, duplicate names, ranges that overlap, leave
gaps, do not fit shape and type, or do not end where the file ends. A tensor of a type that has no plain bytes, or that
is not known, is listed with its `refusal`; the others can be read. What must stay true: any bytes give tensors that lie
in the file, or an Error. A header that is written is padded with spaces, so that the data begin at a multiple of 4096,
as the format allows.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from penstock import _core
from penstock._arrays.dtype import DType
from penstock._files.descriptor import read_at
from penstock.formats.faults import FOREIGN_BYTES, cut_short, damaged, foreign, refused
from penstock.formats.model import DatasetInfo, NewDataset, Writer
from penstock.formats.simple.in_place import InPlaceWriter
from penstock.formats.simple.single import ContiguousFile, FromHeader, bytes_of, identity_of, reading
from penstock.formats.simple.single_write import ContiguousWriter, aligned

_MOST_HEADER = 100_000_000  # of the reference implementation
_ROOM = 32 << 10  # left in a new header for what is added later
_FIRST_READ = 8192  # bytes; the headers of few tensors are shorter
_METADATA = "__metadata__"
_TYPES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F8_E8M0": "float8_e8m0fnu",
    "I16": "int16",
    "U16": "uint16",
    "F16": "float16",
    "BF16": "bfloat16",
    "I32": "int32",
    "U32": "uint32",
    "F32": "float32",
    "C64": "complex64",
    "F64": "float64",
    "I64": "int64",
    "U64": "uint64",
}
_TOO_FEW = "look whether it is the right file, and copy or download it again"
_BITS = {"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6}  # types without whole bytes
_NAMES = {type: name for name, type in _TYPES.items()}


def open_safetensors(name: str | os.PathLike[str]) -> ContiguousFile:
    name = os.fspath(name)
    header = _core.read_header("safetensors", name)
    if header is not None:
        return FromHeader(name, "safetensors", header, _metadata_of)
    with reading(name) as (descriptor, status):
        found = parse(name, lambda size, offset: read_at(descriptor, size, offset), status.st_size)
    return replace(found, identity=identity_of(status))


def _metadata_of(begin: bytes) -> Mapping[str, Any]:
    """From the first bytes of a file whose header lies in them; none, where it has no attributes."""
    if not begin:
        return {}
    return _JSON.decode(begin[8 : 8 + int.from_bytes(begin[:8], "little")].decode()).get(_METADATA, {})


def parse(name: str, read: Callable[[int, int], bytes], there: int) -> ContiguousFile:
    """A file of `there` bytes; read(size, offset) gives them."""
    header, start = _header(name, read, there)
    metadata = header.pop(_METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise damaged(name, f"{_METADATA} is not a mapping from text to text")
    found = {tensor: _tensor(name, tensor, entry) for tensor, entry in header.items()}
    datasets = dict(sorted(found.items(), key=lambda pair: pair[1][1:]))
    _check_ranges(name, datasets, there - start)
    placed = {tensor: (info, start + first) for tensor, (info, first, _) in datasets.items()}
    return ContiguousFile(name, "safetensors", placed, metadata)


def _header(name: str, read: Callable[[int, int], bytes], there: int) -> tuple[dict[str, Any], int]:
    """(the JSON object, where data begin)."""
    begin = read(_FIRST_READ, 0)
    if 0 < len(begin) < 8:
        raise damaged(name, f"it has {len(begin)} bytes, too few for a safetensors file", advice=_TOO_FEW)
    size = int.from_bytes(begin[:8], "little")
    is_ours = bool(begin) and begin[8:9] in (b"", b"{") and not (size > _MOST_HEADER and begin[:8].isascii())
    if not is_ours:
        raise foreign(name, "safetensors", begin[:FOREIGN_BYTES])
    if size > _MOST_HEADER:
        raise damaged(name, f"a header of {size} bytes; the limit is {_MOST_HEADER}")
    if 8 + size > there:
        raise cut_short(name, f"the header ends at byte {8 + size}, the file at {there}")
    raw = begin[8 : 8 + size] if 8 + size <= len(begin) else read(size, 8)
    if len(raw) != size:
        raise cut_short(name, f"the header ends at byte {8 + size}, the file at {8 + len(raw)}")
    try:
        header = _JSON.decode(raw.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise damaged(name, f"the header is not JSON: {str(error)[:200]}") from None
    return header, 8 + size


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"a name is there twice: {next(name for name in names if names.count(name) > 1)[:100]!r}")
    return found


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


_JSON = json.JSONDecoder(object_pairs_hook=_no_duplicates, parse_constant=_no_constant)


def _tensor(name: str, tensor: str, entry: Any) -> tuple[DatasetInfo, int, int]:
    """(description, first byte, end) in the data section."""
    if not isinstance(entry, dict) or not set(entry) >= {"dtype", "shape", "data_offsets"}:
        raise damaged(name, "its entry lacks dtype, shape or data_offsets", tensor)
    type, shape, ends = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(type, str):
        raise damaged(name, f"its type is {str(type)[:100]}", tensor)
    if not _counts(shape) or len(shape) > 64:
        raise damaged(name, f"its shape is {str(shape)[:200]}", tensor)
    if not _counts(ends) or len(ends) != 2 or ends[0] > ends[1]:
        raise damaged(name, f"its data_offsets are {str(ends)[:200]}", tensor)
    info = _described(tensor, type, shape)
    bits = _BITS.get(type, 8 * info.dtype.itemsize) * math.prod(shape)
    if bits != 8 * (ends[1] - ends[0]) and (type in _TYPES or type in _BITS):
        need = f"{bits} bits" if bits % 8 else f"{bits // 8} bytes"
        cause = f"shape {tuple(shape)} of {type} needs {need}, its data_offsets {ends} give another number"
        raise damaged(name, cause, tensor)
    return info, ends[0], ends[1]


def _described(tensor: str, type: str, shape: list[int]) -> DatasetInfo:
    if type in _TYPES:
        return DatasetInfo(tensor, tuple(shape), DType.of(_TYPES[type]), tuple(shape))
    what = f"its elements have {_BITS[type]} bits" if type in _BITS else f"known are {', '.join(_TYPES)}"
    refusal = f"it is of type {type[:100]!r}; {what}"
    return DatasetInfo(tensor, tuple(shape), DType.raw(1), tuple(shape), refusal=refusal)


def _counts(numbers: Any) -> bool:
    return isinstance(numbers, list) and all(type(n) is int and 0 <= n < 1 << 62 for n in numbers)


def _check_ranges(name: str, datasets: Mapping[str, tuple[DatasetInfo, int, int]], there: int) -> None:
    """Sorted by place: each begins where the one before ends, the last ends where the file does."""
    end = 0
    for tensor, (_, first, last) in datasets.items():
        if first != end:
            what = "overlaps the one before" if first < end else "leaves a gap before it"
            raise damaged(name, f"it begins at {first} of the data and {what}, which ends at {end}", tensor)
        end = last
    if end != there:
        cause = f"the header describes {end} bytes of data, the file has {there}"
        raise cut_short(name, cause) if there < end else damaged(name, cause)


def safetensors_writer(name: str | os.PathLike[str], *, append: bool = False) -> Writer:
    return InPlaceWriter(name, open_safetensors) if append else SafetensorsWriter(name)


class SafetensorsWriter(ContiguousWriter):
    """Tensors in the order they are created. Those of one call are sorted so that each is aligned for its type."""

    format = "safetensors"

    def __init__(self, name: str | os.PathLike[str]) -> None:
        super().__init__(name)
        self._metadata: dict[str, str] = {}
        self._start = self._end = 0

    def _place(self, datasets: Sequence[NewDataset]) -> list[int]:
        for one in datasets:
            if one.dtype.name not in _NAMES or one.name == _METADATA:
                raise refused(self.name, f"safetensors has no type {one.dtype}", f"use {', '.join(_NAMES)}", one.name)
        if not self._datasets:
            entries = {one.name: _entry(one.dtype, one.shape, 1 << 62, 1 << 62) for one in datasets}
            self._start = self._end = aligned(8 + len(self._json(entries)) + _ROOM)
        offsets, end = [0] * len(datasets), self._end
        for number in sorted(range(len(datasets)), key=lambda i: (-datasets[i].dtype.itemsize, i)):
            one = datasets[number]
            if end % one.dtype.word_bytes:
                cause = f"{one.dtype} would begin at byte {end}, which is not aligned; the format has no gaps"
                raise refused(
                    self.name, cause, "write all tensors in one call, or those of large types first", one.name
                )
            offsets[number] = end
            end += bytes_of(DatasetInfo(one.name, tuple(one.shape), one.dtype, ()))
        self._end = end
        return offsets

    def attributes(self, group: str = "") -> Mapping[str, Any]:
        return self._metadata

    def set_attributes(self, name: str, attributes: Mapping[str, Any]) -> None:
        if name:
            raise refused(self.name, "tensors have no attributes in safetensors", "set them for the file", name)
        for key, value in attributes.items():
            if not isinstance(key, str) or not isinstance(value, str):
                raise refused(self.name, f"attribute {key!r}: safetensors keeps text only", "convert it with str()")
        self._metadata |= attributes

    def _json(self, entries: Mapping[str, Any]) -> bytes:
        header = ({_METADATA: self._metadata} if self._metadata else {}) | dict(entries)
        return json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode("utf-8")

    def _head(self) -> bytes:
        start = self._start or aligned(8 + len(self._json({})))
        entries = {
            name: _entry(info.dtype, info.shape, offset - start, offset - start + bytes_of(info))
            for name, (info, offset) in self._datasets.items()
        }
        raw = self._json(entries)
        if 8 + len(raw) > start or len(raw) > _MOST_HEADER:
            cause = f"the header has {len(raw)} bytes, there is room for {start - 8}"
            raise refused(self.name, cause, "write all tensors in one call, after the attributes")
        return (start - 8).to_bytes(8, "little") + raw.ljust(start - 8)


def _entry(dtype: DType, shape: Sequence[int], first: int, last: int) -> dict[str, Any]:
    return {"dtype": _NAMES[dtype.name], "shape": list(shape), "data_offsets": [first, last]}
