"""NPY, NumPy's file of one array: versions 1 to 3 read, 1 and 2 written. The one dataset is called "data".

The header is parsed here, as a literal of Python within limits, and nothing in it is run. What must stay true: any
bytes give a dataset that lies in the file, or an Error; no more memory than the header's limit is taken. A header that
is written is padded with spaces, so that the data begin at a multiple of 4096, as the format allows.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from penstock import _core
from penstock._arrays.dtype import DType, not_taken
from penstock._files.descriptor import read_at
from penstock.formats.faults import cut_short, damaged, foreign, refused, unsupported
from penstock.formats.model import DatasetInfo, NewDataset, Writer
from penstock.formats.simple.in_place import InPlaceWriter
from penstock.formats.simple.single import ContiguousFile, FromHeader, bytes_of, identity_of, reading
from penstock.formats.simple.single_write import ContiguousWriter, aligned

DATASET = "data"
MAGIC = b"\x93NUMPY"
_FIXED_BYTES = 10  # in all versions: magic, version, two bytes of the dictionary's size
_MOST_HEADER = 1 << 20  # bytes, nearly all of them padding
_MOST_TEXT = 64 << 10  # characters without padding; NumPy itself stops at 10 000 for files it does not trust
_MOST_RANK = 64
# Text, or an integer of Python 2. Text without an end is a match too: else each of its quotes would look for an end.
_LONG = re.compile(r"""('(?:[^'\\]|\\.)*'?|"(?:[^"\\]|\\.)*"?)|\b([0-9]+)L\b""", re.DOTALL)
# As NumPy writes it, of elements that are plain numbers.
_USUAL = re.compile(
    r"\{'descr': '([<>|=]?[biufc][0-9]{1,2})', 'fortran_order': (False|True), "
    r"'shape': \(((?:[0-9]{1,18}, ?)*[0-9]{0,18})\), \}"
)
_USUAL_TYPE = re.compile(r"[<>|=]?(?:[iuf][248]|[biu]1|c8|c16)")
_FIRST_READ = 4096  # bytes; most headers are shorter


def open_npy(name: str | os.PathLike[str]) -> ContiguousFile:
    name = os.fspath(name)
    known = _core.read_header("npy", name)
    if known is not None:
        return FromHeader(name, "npy", known, lambda _: {})
    with reading(name) as (descriptor, status):
        header, start = _header(name, descriptor)
    info, there = _info(name, header), status.st_size
    if start + bytes_of(info) > there:
        cause = (
            f"the header promises {bytes_of(info)} bytes of {info.shape} {info.dtype} at {start}, the file has {there}"
        )
        raise cut_short(name, cause, DATASET)
    return ContiguousFile(name, "npy", {DATASET: (info, start)}, identity=identity_of(status))


def _header(name: str, descriptor: int) -> tuple[dict[str, Any], int]:
    """(the dictionary, where data begin)."""
    begin = read_at(descriptor, _FIRST_READ, 0)
    if not begin.startswith(MAGIC):
        raise foreign(name, "npy", begin)
    if len(begin) < _FIXED_BYTES:
        raise cut_short(name, f"the header begins with {_FIXED_BYTES} bytes, the file has {len(begin)}")
    version = begin[6]
    if version not in (1, 2, 3) or begin[7] != 0:
        raise unsupported(name, f"NPY version {version}.{begin[7]}", "versions 1.0, 2.0 and 3.0 are known")
    size_bytes = 2 if version == 1 else 4
    size = int.from_bytes(begin[8 : 8 + size_bytes], "little")
    if size > _MOST_HEADER:
        raise damaged(name, f"a header of {size} bytes; the limit is {_MOST_HEADER}")
    start = 8 + size_bytes + size
    raw = begin[8 + size_bytes : start] if start <= len(begin) else read_at(descriptor, size, 8 + size_bytes)
    if len(raw) != size:
        raise cut_short(name, f"the header ends at byte {start}, the file at {8 + size_bytes + len(raw)}")
    return _literal(name, raw, "utf-8" if version == 3 else "latin-1"), start


def _literal(name: str, raw: bytes, encoding: str) -> dict[str, Any]:
    try:
        text = raw.decode(encoding).strip()
        if len(text) > _MOST_TEXT:
            raise ValueError(f"{len(text)} characters; the limit is {_MOST_TEXT}")
        if not text.startswith("{"):
            raise ValueError("it begins with no dictionary")
        header = _usual(text) or _evaluated(text)
        if not isinstance(header, dict):
            raise ValueError("it is not a dictionary")
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError) as error:
        raise damaged(name, f"the header is not understood: {str(error)[:200]}") from None
    if set(header) != {"descr", "fortran_order", "shape"}:
        raise damaged(name, f"the header has the keys {sorted(map(str, header))}, not descr, fortran_order and shape")
    return header


def _usual(text: str) -> dict[str, Any] | None:
    """What _evaluated gives, in a tenth of its time."""
    found = _USUAL.fullmatch(text)
    if found is None:
        return None
    extents = [extent for extent in found[3].replace(" ", "").split(",") if extent]
    is_tuple = found[3] == "" or "," in found[3]
    if not is_tuple or any(extent[0] == "0" and extent != "0" for extent in extents):  # a number, or one that is none
        return None
    shape = tuple(int(extent) for extent in extents)
    return {"descr": found[1], "fortran_order": found[2] == "True", "shape": shape}


def _evaluated(text: str) -> Any:
    """Python 2 wrote some integers as 10L."""
    try:
        return ast.literal_eval(text)
    except SyntaxError:
        return ast.literal_eval(_LONG.sub(lambda found: found[1] or found[2], text))


def _info(name: str, header: dict[str, Any]) -> DatasetInfo:
    shape, order = header["shape"], header["fortran_order"]
    plain = isinstance(shape, tuple) and all(type(n) is int and 0 <= n < 1 << 62 for n in shape)
    if not plain or len(shape) > _MOST_RANK:
        raise damaged(name, f"its shape is {str(shape)[:200]}")
    if not isinstance(order, bool):
        raise damaged(name, f"fortran_order is {str(order)[:200]}")
    dtype = _dtype(name, header["descr"])
    stored = shape[::-1] if order else shape
    info = DatasetInfo(DATASET, stored, dtype, stored, "F" if order and len(shape) > 1 else "C")
    if bytes_of(info) >= 1 << 62:
        raise damaged(name, f"its shape is {shape}, which is more than a file can hold")
    return info


@lru_cache(maxsize=64)
def _plain_dtype(descr: str) -> DType:
    import numpy as np

    return DType.of(np.dtype(descr))


def _dtype(name: str, descr: Any) -> DType:
    import numpy as np

    if isinstance(descr, str) and _USUAL_TYPE.fullmatch(descr):
        return _plain_dtype(descr)

    try:
        dtype = np.dtype(_fields(descr))
    except (TypeError, ValueError, SyntaxError, RecursionError, MemoryError, OverflowError) as error:
        raise damaged(name, f"its type is {str(descr)[:200]}: {str(error)[:200]}", DATASET) from None
    try:
        return DType.of(dtype)
    except TypeError:
        pickled = "numpy.load(name, allow_pickle=True) unpickles it, which can run any code that the file contains"
        cause = f"its elements ({str(descr)[:200]}) are {not_taken(dtype)[0]}"
        advice = pickled if dtype.hasobject else "numpy.load reads it"
        raise unsupported(name, cause, advice, DATASET) from None


def _fields(descr: Any) -> Any:
    """NumPy's description, with the unnamed padding that it writes turned into named padding's offsets."""
    import numpy as np

    if not isinstance(descr, list):
        if not isinstance(descr, str) or "," in descr:
            raise TypeError("it is neither the name of a type nor a list of fields")
        return descr
    names, types, offsets, end = [], [], [], 0
    for field in descr:
        if not isinstance(field, tuple) or len(field) not in (2, 3):
            raise TypeError("a field is no (name, type) or (name, type, shape)")
        name = field[0][1] if isinstance(field[0], tuple) and len(field[0]) == 2 else field[0]
        type = np.dtype(_fields(field[1]) if len(field) == 2 else (_fields(field[1]), field[2]))
        if name:
            names.append(name)
            types.append(type)
            offsets.append(end)
        end += type.itemsize
    return {"names": names, "formats": types, "offsets": offsets, "itemsize": end}


def npy_writer(name: str | os.PathLike[str], *, append: bool = False) -> Writer:
    return InPlaceWriter(name, open_npy) if append else NpyWriter(name)


class NpyWriter(ContiguousWriter):
    """A file of one array in C order."""

    format = "npy"

    _text = b""

    def _place(self, datasets: Sequence[NewDataset]) -> list[int]:
        if len(self._datasets) + len(datasets) > 1:
            raise refused(self.name, "an NPY file holds one array", "use HDF5, Zarr or safetensors for several")
        for one in datasets:
            self._text = _described(one.shape, one.dtype)  # now: a file may be closed when Python ends, without NumPy
        return [aligned(len(_padded(self._text, 0))) for _ in datasets]

    def _head(self) -> bytes:
        if not self._datasets:
            raise refused(self.name, "an NPY file holds one array, and none was written")
        ((_, start),) = self._datasets.values()
        return _padded(self._text, start)


def _described(shape: Sequence[int], dtype: DType) -> bytes:
    """What the header says. Raises TypeError for what NumPy does not have."""
    plain = dtype.native.dtype
    descr = plain.descr if plain.names else plain.str
    if dtype.kind == "E":
        raise TypeError(f"NPY files have no {dtype.name}; write array.view('uint{8 * dtype.itemsize}')")
    return f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {tuple(shape)!r}, }}".encode("latin-1")


def _padded(text: bytes, bytes: int) -> bytes:
    """The whole header, padded to `bytes`."""
    version, size_bytes = (1, 2) if max(len(text) + 16, bytes) < 1 << 16 else (2, 4)
    room = max(0, bytes - 8 - size_bytes - len(text) - 1)
    text += b" " * room + b"\n"
    return MAGIC + bytearray([version, 0]) + len(text).to_bytes(size_bytes, "little") + text
