"""Writing datasets: from values to a job for the mover.

What must stay true: shape and type of a value are compared with the dataset before anything moves, and nothing is
converted (the byte order of the file is the file's matter); the bytes of the caller are not changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from penstock import _core
from penstock._arrays.array import c_strides
from penstock._arrays.selection import Selection
from penstock.formats.faults import refused, unsupported
from penstock.formats.model import ChunkTable, DatasetInfo, Filter, Writer
from penstock.formats.packing.compression import is_whole
from penstock.formats.packing.encoding import MOST_FILE_BYTES, Placing, encoding_of
from penstock.formats.packing.texts import Texts, is_written, text_for, texts_of
from penstock.formats.reading import picked
from penstock.formats.reading.execution import Job
from penstock.formats.reading.mover import Mover
from penstock.formats.reading.pieces import PIECE_BYTES
from penstock.formats.reading.plan import BatchPlan
from penstock.formats.reading.request import Request, is_one_range, ordered_after, wanted_at
from penstock.formats.reading.target import Target, target_of

_MOST_IN_FILES = 64 << 20  # bytes of one dataset that the page cache may take


def value_of(value: Any, stream: int | None = None) -> Target | Texts:
    """A value to write: an array of any library; numbers and lists of numbers become one of NumPy, text too."""
    texts = texts_of(value)
    if texts is not None:
        return texts
    if isinstance(value, (bool, int, float, complex, list, tuple)):
        import numpy as np

        value = np.asarray(value)
    if type(value).__module__.startswith("numpy.ma") and value.mask.any():
        raise TypeError("a masked array has elements without a value: pass array.filled(value), or array.data")
    try:
        return target_of(value, stream)
    except TypeError:
        if not hasattr(value, "__array__") or hasattr(value, "__cuda_array_interface__"):
            raise
        import numpy as np

        return target_of(np.asarray(value), stream)  # NumPy scalars, pandas and xarray objects


def values_of(values: Mapping[str, Any], stream: int | None = None) -> dict[str, Target | Texts]:
    """value_of each; errors begin with its name."""
    targets = {}
    for name, value in values.items():
        try:
            targets[name] = value_of(value, stream)
        except TypeError as error:
            raise TypeError(f"dataset {name!r}: {error}") from error
    return targets


def table_for(writer: Writer, one: Request) -> ChunkTable:
    """Where the elements of the selection go. ValueError of a list that names one twice."""
    name, selection = one.info.name, one.stored
    if picked.is_repeated(selection):
        cause = "an index of the list is there twice, and no order is promised in which rows are written"
        raise ValueError(f"dataset {name!r}: {cause}: name each once")
    if not selection.size:
        return writer.table(name, selection.box)
    if writer.reading is None and one.info.layout == "chunked":
        writer.make_room(name, picked.cells_of(selection, one.info.chunk_shape))
    find = picked.table_of if writer.reading is None else picked.table_to_write
    return find(one.info, selection, lambda box: writer.table(name, box))


class Way(NamedTuple):
    """How a request goes to its file: to the places of a table as it is, or as whole chunks, through filters where
    there are any, to places that `placing` then gives."""

    table: ChunkTable | None = None
    filters: tuple[Filter, ...] = ()
    placing: Placing | None = None


def way_of(writer: Writer, request: Request, table: ChunkTable | None, how: tuple[Mover, Placing]) -> Way:
    """`table`: of a dataset that was just made. Raises Error when the request meets a part of a chunk to be packed."""
    (mover, placing), info = how, request.info
    filters = writer.packing(info.name, request.stored.box) if request.bytes else ()
    if not filters:
        if table is None and _is_in_files(mover, writer, request):
            return Way(None, (), placing)
        return Way(table_for(writer, request) if table is None else table)
    if not _has_whole_chunks(request):
        cause = f"its chunks of {info.chunk_shape} are compressed, and the selection has parts of some"
        raise refused(writer.name, cause, "write whole chunks at a time", info.name)
    return Way(None, filters, placing)


def _has_whole_chunks(request: Request) -> bool:
    selection, box, info = request.stored, request.stored.box, request.info
    apart = selection.picks is not None or any(abs(step) != 1 for step in selection.steps)
    return not apart and is_whole(box.start, box.stop, info.chunk_shape, info.shape)


def _is_in_files(mover: Mover, writer: Writer, request: Request) -> bool:
    """Whether its chunks are files that are written whole, at once, from memory of the host. Many bytes are left to a
    queue, which writes past the page cache."""
    info = request.info
    if not mover.emulated or not 0 < request.bytes <= _MOST_IN_FILES or info.chunk_bytes > MOST_FILE_BYTES:
        return False
    if not info.ndim or info.dtype.host_only:
        return False
    return _has_whole_chunks(request) and writer.is_in_files(info.name, request.stored.box)


def write_job(mover: Mover, requests: Sequence[Request], ways: Sequence[Way], stream: int | None = None) -> Job:
    """The job that writes `out` of each request to its dataset."""
    plan, targets = BatchPlan(writes=True), []
    numbers: dict[int, int] = {}  # of targets, by memory: parts of one buffer go in one transfer
    for request, (table, filters, placing) in zip(requests, ways, strict=True):
        value = checked_value(mover, request, stream)
        one = _relative(request, value)
        if not one.bytes:
            continue
        if table is None:
            assert placing is not None
            number = numbers.setdefault(id(value.memory), len(targets))
            targets += [value] if number == len(targets) else []
            plan.add_encoding(encoding_of(wanted_at(one, value, number), filters, placing))
            continue
        straight = is_one_range(one, table) and value.is_order(one.info.order) and not one.info.dtype.big_endian
        if value.device != mover.device and not (straight and one.bytes >= PIECE_BYTES):
            value = _uploaded(mover, value)
        number = numbers.setdefault(id(value.memory), len(targets))
        targets += [value] if number == len(targets) else []
        if straight:
            plan.add_line(one.info, table, number, value.base)
        else:
            plan.add(wanted_at(one, value, number), table)
    return Job(plan, targets, stream=ordered_after(stream, True))


def checked_value(mover: Mover, one: Request, stream: int | None) -> Target:
    """What `out` of a request is as memory, of the type and shape that the selection takes."""
    return _checked(mover, one, _plain(value_of(one.out, stream), one.info))


def _relative(one: Request, value: Target) -> Request:
    """With the type seen from the value: "big-endian" then means that bytes are reversed on their way."""
    reversed = one.info.dtype.big_endian != value.dtype.big_endian
    return one._replace(info=replace(one.info, dtype=replace(one.info.dtype, big_endian=reversed)))


def _plain(value: Target | Texts, info: DatasetInfo) -> Target:
    if isinstance(value, Texts):
        raise TypeError(f"the value has elements of {value.dtype}, dataset {info.name!r} of {info.dtype}")
    return value


def _checked(mover: Mover, one: Request, value: Target) -> Target:
    check_kind(mover, one.info, value)
    if value.shape != one.selection.shape:
        name = one.info.name
        raise ValueError(f"the value has shape {value.shape}, the selection of dataset {name!r} {one.selection.shape}")
    return value


def appended(info: DatasetInfo, value: Target | Texts) -> Selection:
    """The new rows that a value makes: one, or as many as its first dimension says."""
    if info.order != "C" or not info.ndim:
        raise TypeError(f"dataset {info.name!r} has no first dimension that grows")
    row = value.ndim == info.ndim - 1
    if value.ndim not in (info.ndim, info.ndim - 1) or value.shape[value.ndim - info.ndim + 1 :] != info.shape[1:]:
        raise ValueError(f"the value has shape {value.shape}, dataset {info.name!r} rows of {info.shape[1:]}")
    rest = (0,) * (info.ndim - 1)
    counts = (1 if row else value.shape[0], *info.shape[1:])
    return Selection((info.shape[0], *rest), counts, (1,) * info.ndim, (row, *(False for _ in rest)))


def check_kind(mover: Mover, info: DatasetInfo, value: Target | Texts) -> None:
    """Type and device of a value."""
    if is_written(info):
        text_for(info, value)
        return
    value = _plain(value, info)
    if info.conversion:
        advice = "write it anew, or with the format's own library"
        cause = f"{info.conversion}, and Penstock writes plain bytes"
        raise unsupported(mover.name, cause, advice, info.name)
    if value.dtype.native != info.dtype.native:
        raise TypeError(f"the value has elements of {value.dtype}, dataset {info.name!r} of {info.dtype}")
    if value.device not in (mover.device, "host"):
        raise ValueError(
            f"the value lies on {value.device}, the file writes from {mover.device}: open it with "
            f"device={value.device!r}"
        )


def _uploaded(mover: Mover, value: Target) -> Target:
    """Host memory, where boxes will be copied from it: a GPU cannot address it."""
    if not value.is_order("C"):
        raise ValueError(
            f"a host array with strides {value.strides} cannot be written from {mover.device}; pass a contiguous copy"
        )
    buffer = _core.allocate(mover.raw, value.nbytes, "device", "none")
    memory = value.memory if value.base == 0 else memoryview(value.memory).cast("B")[value.base :]
    mover.raw.copy_to_device(buffer, memory)
    strides = c_strides(value.shape, value.dtype.itemsize)
    return replace(value, memory=buffer, base=0, strides=strides, device=mover.device, keep=buffer)
