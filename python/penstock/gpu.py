"""Arrays in files, larger than GPU memory, that the GPU itself gathers from and writes to, through a page cache.

    import penstock as ps

    with ps.gpu.open("rows.bin", "float32", (-1, 128), cache_bytes="4 GiB") as rows:
        some = rows.gather(indices)  # a ps.Array on the GPU: cupy.asarray(some), torch.from_dlpack(some)
        kernel(grid, block, (rows.ref, ...))  # your own kernel: penstock/ondevice/stored_array.hpp

Without a GPU the device "host" gives the same results by threads. See docs/gpu.md.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from penstock import _core
from penstock._api import Context, FileName
from penstock._dtype import DType
from penstock._error import Error
from penstock._row_numbers import OutOfRange
from penstock._shared import shared_context
from penstock._sizes import parse_bytes
from penstock._stored_array import Place, SharedCache, StoredArray

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["CacheOptions", "OutOfRange", "Source", "StoredArray", "open", "open_many"]


class CacheOptions(TypedDict, total=False):
    """Settings of a cache; what is left out has the value after the colon."""

    page_bytes: int  # a power of two, 512 to 2 MiB: 4096
    cache_bytes: int | str  # of device memory for pages, also "4 GiB": 256 MiB
    policy: str  # "sweep-resistant", "clock", "fifo" or "pinned-range": "sweep-resistant"
    threads: int  # of the host, that serve pages: 0, by the number of cores
    slots: int  # pages under way at once: 0, by page_bytes
    timeout: float | None  # seconds that one page is waited for: 10
    map: bool  # files in memory (tmpfs, hugetlbfs) are reached by the GPU itself where it can: True


@dataclass(frozen=True)
class Source:
    """An array in a file, as open() names it."""

    path: FileName
    dtype: Any = None
    shape: Sequence[int] | int | None = None
    mode: str = "r"
    offset_bytes: int = 0
    dataset: str | None = None


def open(  # noqa: A001, PLR0913 - the name says what it does; one keyword a choice
    path: FileName,
    dtype: Any = None,
    shape: Sequence[int] | int | None = None,
    *,
    mode: str = "r",
    offset_bytes: int = 0,
    dataset: str | None = None,
    device: str = "auto",
    context: Context | None = None,
    **options: Unpack[CacheOptions],
) -> StoredArray:
    """An array in a file, to be indexed along its first dimension.

    Args:
        path: the file. Without `dtype` it is one that says itself what it holds (NPY, safetensors, HDF5, ...), and the
            dataset is stored in one piece.
        dtype, shape, offset_bytes: of a raw file: the type of an element, the extents, of which one may be -1, and
            where the first element lies. Without `shape`, as many elements as there are.
        mode: "r", or "r+" to write too.
        dataset: which one of a file of several.
        device: whose memory the cache and what is read lie in: "auto" (a GPU when there is one), "host", "cuda:0", ...
        context: used instead of the one that this process keeps for the device.
        options: of the cache; see CacheOptions.

    Raises Error (not found, too short, no memory), TypeError and ValueError of arguments that do not fit.
    """
    source = Source(path, dtype, shape, mode, offset_bytes, dataset)
    return open_many([source], device=device, context=context, **options)[0]


def open_many(
    sources: Iterable[Source | tuple[Any, ...]],
    *,
    device: str = "auto",
    context: Context | None = None,
    **options: Unpack[CacheOptions],
) -> list[StoredArray]:
    """Several arrays that share one cache: Sources, or tuples of their fields. The cache goes when the last of them is
    closed. Other arguments as of open()."""
    wanted = [one if isinstance(one, Source) else Source(*one) for one in sources]
    if not wanted:
        raise ValueError("no array is named")
    context = context or shared_context(device)
    places = [_place_of(one) for one in wanted]
    files = [context.open(place.file, write=place.writable) for place in places]
    settings: dict[str, Any] = dict(options)
    if isinstance(settings.get("cache_bytes"), str):
        settings["cache_bytes"] = parse_bytes(settings["cache_bytes"])
    try:
        raw = _core.device_cache(context._raw, [file._raw for file in files], **settings)
    finally:
        for file in files:
            file.abandon()  # the cache holds it
    shared = SharedCache(raw, context, len(places))
    return [StoredArray(shared, number, place) for number, place in enumerate(places)]


def _place_of(source: Source) -> Place:
    if source.mode not in ("r", "r+"):
        raise ValueError(f"mode {source.mode!r} is neither 'r' nor 'r+'")
    name = os.fspath(source.path)
    if source.dtype is None:
        return _place_of_dataset(os.fsdecode(name), source)
    if source.dataset is not None:
        raise TypeError("dataset= is of files that say themselves what they hold, dtype= of raw ones")
    from penstock._open import need_file
    from penstock.formats import registry
    from penstock.formats.raw import DATASET, open_raw

    need_file(os.fsdecode(name), registry.FORMATS["raw"])
    info = open_raw(name, dtype=source.dtype, shape=source.shape, offset_bytes=source.offset_bytes).info(DATASET)
    if not info.shape:
        raise ValueError("an array without dimensions has no rows")
    return Place(os.fsdecode(name), DType.of(source.dtype), info.shape, source.offset_bytes, source.mode == "r+")


def _place_of_dataset(name: str, source: Source) -> Place:
    """Of a dataset that lies in one piece in a file of a known format."""
    from penstock._open import open as open_file

    if source.shape is not None or source.offset_bytes:
        raise TypeError("shape= and offset_bytes= are of raw files, which need dtype= too")
    with open_file(name, device="host") as file:
        names = list(file)
        if source.dataset is None and len(names) != 1:
            listed = ", ".join(names[:8]) or "none"
            raise TypeError(f"{name} has {len(names)} datasets: dataset= names one of {listed}")
        one = file[source.dataset or names[0]]
        info, extents = one.info, one.extents()
    at, end = (extents[0].offset_bytes, extents[0].offset_bytes) if extents else (0, 0)
    for extent in extents:
        whole = extent.file == extents[0].file and extent.offset_bytes == end
        end = extent.offset_bytes + extent.bytes if whole else -1
    if not info.shape or info.order != "C" or info.filters or end - at != one.nbytes:
        raise Error(
            code="unsupported",
            operation="open",
            file=name,
            cause=f"dataset {one.name!r} is not stored as rows in one piece",
            advice="write it contiguous and without filters",
        )
    return Place(extents[0].file if extents else name, info.dtype, info.shape, at, source.mode == "r+")
