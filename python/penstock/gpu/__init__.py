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
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypedDict

from penstock import _core
from penstock._api import Context, File, FileName
from penstock._error import Error
from penstock._files.file_name import file_name
from penstock._options import need_known
from penstock._shared import shared_context
from penstock._sizes import byte_count
from penstock.gpu.calls import Calls
from penstock.gpu.row_numbers import OutOfRange
from penstock.gpu.stored_array import Place, SharedCache, StoredArray

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["CacheOptions", "Calls", "OutOfRange", "Source", "StoredArray", "open", "open_many"]


class CacheOptions(TypedDict, total=False):
    """Settings of a cache; what is left out has the value after the colon."""

    page_bytes: int | str  # a power of two, 512 to 2 MiB, also "64 KiB": 4096
    cache_bytes: int | str  # of device memory for pages, also "4 GiB": 256 MiB
    policy: str  # "sweep-resistant", "clock", "fifo" or "pinned-range": "sweep-resistant"
    threads: int  # of the host, that serve pages, at most 256 and one for each slot: 0, by the number of cores
    slots: int  # pages under way at once, at most 16384: 0, as many as 64 MiB hold, up to 4096
    timeout: float | None  # seconds that one page is waited for: 10; a sync 30 times as long
    map: bool  # files in memory (tmpfs, hugetlbfs) are reached by the GPU itself where it can: True
    fetch: str  # of gathered rows of such files that are not written: "pages", "rows", or by what moves less: "auto"


@dataclass(frozen=True)
class Source:
    """An array in a file, or in several, as open() names it.

    Args:
        path, dtype, shape, mode, offset_bytes, dataset, stripe_bytes, format: as of open().
    """

    path: FileName | Sequence[FileName]
    dtype: Any = None
    shape: Sequence[int] | int | None = None
    mode: str = "r"
    offset_bytes: int | str = 0
    dataset: str | None = None
    stripe_bytes: int | str = "1 MiB"
    format: str | None = None


def open(  # noqa: A001, PLR0913 - the name says what it does; one keyword a choice
    path: FileName | Sequence[FileName],
    dtype: Any = None,
    shape: Sequence[int] | int | None = None,
    *,
    mode: str = "r",
    offset_bytes: int | str = 0,
    dataset: str | None = None,
    stripe_bytes: int | str = "1 MiB",
    format: str | None = None,
    device: str = "auto",
    context: Context | None = None,
    **options: Unpack[CacheOptions],
) -> StoredArray:
    """An array in a file, to be indexed along its first dimension.

    Args:
        path: the file. Without `dtype` it is one that says itself what it holds (NPY, safetensors, HDF5, ...), and the
            dataset is stored in one piece. A list names the files of one raw array that is dealt out over them.
        dtype, shape, offset_bytes: of a raw file: the type of an element, the extents, of which one may be -1, and
            where the first element lies (also "4 KiB"): anywhere, but `ref`, for kernels, is of elements that lie at
            multiples of their size. Without `shape`, as many elements as there are.
        mode: "r", or "r+" to write too.
        dataset: which one of a file of several.
        stripe_bytes: of a list of files: as by RAID 0, so many bytes are in the first, the next so many in the second,
            and so on. A power of two, at least page_bytes; also "4 MiB". Order and size are not told by the files.
        format: of the file; found out when left out. A file of a known format whose `dtype` is told is refused (its
            header would be the first rows), unless format="raw" is given.
        device: whose memory the cache and what is read lie in: "auto" (a GPU when there is one), "host", "cuda:0", ...
        context: used instead of the one that this process keeps for the device.
        options: of the cache; see CacheOptions.

    Raises Error (not found, too short, no memory), TypeError and ValueError of arguments that do not fit.
    """
    source = Source(path, dtype, shape, mode, offset_bytes, dataset, stripe_bytes, format)
    return open_many([source], device=device, context=context, **options)[0]


def open_many(
    sources: Iterable[Source | tuple[Any, ...]],
    *,
    device: str = "auto",
    context: Context | None = None,
    **options: Unpack[CacheOptions],
) -> list[StoredArray]:
    """Several arrays that share one cache: Sources, or tuples of their fields, or names of files that say themselves
    what they hold. Arrays of one file, opened in one mode, share its pages too. The cache goes when the last of them is
    closed. Other arguments as of open()."""
    own = [one.name for one in fields(Source)]
    need_known("a cache", (*CacheOptions.__annotations__, "device", "context", *own), options)
    if isinstance(sources, (str, bytes, os.PathLike, Source)) or not isinstance(sources, Iterable):
        raise TypeError(f"open_many takes a list of arrays, not {sources!r}; open takes one")
    wanted = [_source_of(one) for one in sources]
    if not wanted:
        raise ValueError("no array is named")
    context = context or shared_context(device)
    places = [_place_of(one) for one in wanted]
    settings: dict[str, Any] = dict(options)
    for name in ("page_bytes", "cache_bytes"):
        if name in settings:
            settings[name] = byte_count(name, settings[name])
    files: list[File] = []
    try:
        arrays: dict[Any, tuple[list[_core.File], int]] = {}
        for place in places:
            if _stored(place) in arrays:
                continue
            opened = [context.open(name, write=place.writable) for name in place.files]
            files += opened
            arrays[_stored(place)] = ([file._raw for file in opened], place.stripe_bytes)
        raw = _core.device_cache(context._raw, list(arrays.values()), **settings)
    finally:
        for file in files:
            file.abandon()  # the cache holds it
    shared = SharedCache(raw, context, len(places))
    numbers = {stored: number for number, stored in enumerate(arrays)}
    return [StoredArray(shared, numbers[_stored(place)], place) for place in places]


def _source_of(one: Any) -> Source:
    if isinstance(one, Source):
        return one
    if isinstance(one, (str, bytes, os.PathLike)):
        return Source(one)
    most = len(fields(Source))
    if not isinstance(one, (tuple, list)) or not 1 <= len(one) <= most:
        raise TypeError(
            f"{one!r} is not an array: give a list of Sources, tuples of 1 to {most} of their fields, or names of files"
        )
    return Source(*one)


def _stored(place: Place) -> tuple[Any, ...]:
    """What arrays that share it must share the pages of: a row of one could be lost in a page of the other."""
    stripe_bytes = place.stripe_bytes if len(place.files) > 1 else 0
    return tuple(os.path.realpath(name) for name in place.files), place.writable, stripe_bytes


def _place_of(source: Source) -> Place:
    if source.mode not in ("r", "r+"):
        raise ValueError(f"mode {source.mode!r} is neither 'r' nor 'r+'")
    path = source.path
    one = isinstance(path, (str, bytes, os.PathLike)) or not isinstance(path, Iterable) or hasattr(path, "read")
    listed = [source.path] if one else list(source.path)
    names = [file_name(name, "open") for name in listed]
    if not names:
        raise ValueError("no file is named")
    if source.dtype is None:
        if not one:
            raise TypeError("several files are a raw array, which needs dtype=")
        return _place_of_dataset(names[0], source)
    if source.dataset is not None:
        raise TypeError("dataset= is for files that describe their contents, dtype= for raw files")
    from penstock._open import need_file
    from penstock.formats import registry
    from penstock.formats.simple.raw import described
    from penstock.formats.simple.single import look_at

    if source.format not in (None, registry.TOLD.name):
        raise TypeError(f"dtype= and shape= are for raw files, not for format={source.format!r}")
    for name in names:
        need_file(name, registry.TOLD)
        if source.format is None:
            registry.need_no_format(name)
    all_bytes = sum(look_at(name).st_size for name in names)
    offset = byte_count("offset_bytes", source.offset_bytes)
    said = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
    info = described(said, all_bytes, dtype=source.dtype, shape=source.shape, offset_bytes=offset)
    if not info.shape:
        raise ValueError("an array without dimensions has no rows")
    stripe_bytes = byte_count("stripe_bytes", source.stripe_bytes)
    return Place(tuple(names), info.dtype, info.shape, offset, source.mode == "r+", stripe_bytes)


def _dataset_in(file: Any, name: str, wanted: str) -> Any:
    from penstock.formats.dataset import Dataset

    cause = f"{wanted!r} is a group, not a dataset"
    try:
        one = file[wanted]
        if isinstance(one, Dataset):
            return one
    except KeyError as absent:  # which names those that come closest
        cause = str(absent.args[0])
    listed = ", ".join(list(file)[:8])
    advice = f"dataset= names one of {listed}" if listed else "there are no datasets in it"
    raise Error(code="not_found", operation="open", file=name, cause=cause, advice=advice)


def _place_of_dataset(name: str, source: Source) -> Place:
    """The place of a dataset that lies in one piece in a file of a known format."""
    from penstock._open import open as open_file

    if source.shape is not None or source.offset_bytes != 0:
        raise TypeError("shape= and offset_bytes= are for raw files, which need dtype= too")
    with open_file(name, device="host", format=source.format) as file:
        names = list(file)
        if source.dataset is None and len(names) != 1:
            listed = ", ".join(names[:8]) or "none"
            raise TypeError(f"{name} has {len(names)} datasets: dataset= names one of {listed}")
        one = _dataset_in(file, name, names[0] if source.dataset is None else source.dataset)
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
    return Place((extents[0].file if extents else name,), info.dtype, info.shape, at, source.mode == "r+")
