"""Names and types of the options that calls take as keywords: what a checker and a reader should know of each.

They are dicts, for Unpack: the core, and the formats, refuse an option that they do not know by name. `need_known` does
so where a call can name all that there are, and `meant` guesses which one the caller had in mind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypedDict


class SaveOptions(TypedDict, total=False):
    """TransferOptions of a call that has a parameter `durable`: a name that is both has no type for mypy."""

    path: str  # see penstock.path_names(); "auto" by default
    chunk_bytes: int  # a multiple of 4096
    workers: int
    depth: int  # slots or operations in flight for each worker
    strict: bool  # any fallback is an error
    full_evidence: bool  # small transfers sample counters too
    timeout_s: float | None  # the transfer ends as "timed_out" after this long


class TransferOptions(SaveOptions, total=False):
    """How one transfer is to be done; what is left out is decided by the policy."""

    durable: bool  # writes: on stable storage when the transfer is done


class ContextOptions(TypedDict, total=False):
    """Settings of a context; what is left out has the value after the colon."""

    path: str  # for every transfer that does not say: "auto"; see penstock.path_names()
    workers: int  # threads: 0, the policy decides
    budget_bytes: int  # staging memory, never exceeded: 256 MiB
    strict: bool  # any fallback is an error: False
    adaptive: bool  # transfers correct the profile's costs by what they took, in this context only: False
    host_bandwidth_bytes_per_s: float  # of the emulated device's copies: 0, as fast as memory
    host_latency_ns: int  # of each copy of the emulated device: 0
    host_memory_bytes: int  # that the emulated device admits to: 0, half of the machine's


class NewFileOptions(TypedDict, total=False):
    """What new files of some formats can be told; the others refuse it by name."""

    page_bytes: int  # HDF5, netCDF-4: of the space that is given out
    many_members: bool  # HDF5: groups of thousands of members
    version: int  # classic netCDF: 1, 2 or 5


class FileOptions(NewFileOptions, total=False):
    """What files of some formats can be opened with; the others refuse it by name."""

    skip_checksums: bool  # HDF5, netCDF-4: fletcher32 is not checked


class LayoutOptions(TypedDict, total=False):
    """How a new dataset is to lie in its file."""

    chunk_shape: Sequence[int] | None  # elements of a chunk; None: in one piece, or one step a chunk where it may grow
    resizable: Sequence[int | None] | None  # largest extents, None for one without limit; as a whole: it does not grow
    dimensions: Sequence[str] | None  # names, where the format has them
    attributes: Mapping[str, Any]
    shard_shape: Sequence[int] | None  # Zarr: elements of the chunks that share a file; None: a file a chunk
    compression: Literal["gzip", "zstd", "lz4"] | None  # HDF5, netCDF-4, Zarr: what chunks are packed with
    compression_level: int | None  # gzip 1 to 9, zstd 1 to 22; None: 4 and 3
    shuffle: bool | None  # bytes of elements in planes first; None: yes in HDF5 and netCDF-4, no in Zarr


class ReadOptions(TransferOptions, total=False):
    """How datasets are to be read."""

    decode: Literal["auto", "host", "gpu"]  # who decodes compressed chunks; see penstock.open


_OF_H5PY = {  # what h5py calls an option, and how it is called here
    "chunks": "chunk_shape",
    "maxshape": "resizable",
    "compression_opts": "compression_level",
    "shards": "shard_shape",
}


def meant(given: str, known: Iterable[str]) -> str:
    """ "; did you mean ...?" for an option that is none, or nothing where no known one is near."""
    import difflib

    names = tuple(known)
    ours = _OF_H5PY.get(given)
    near = [ours] if ours in names else difflib.get_close_matches(given, names, 1)
    return f"; did you mean {near[0]}=?" if near else ""


def need_known(owner: str, known: Iterable[str], options: Iterable[str]) -> None:
    """TypeError of an option that is none of the owner's, which names all that are."""
    names = tuple(dict.fromkeys(known))
    unknown = next((name for name in options if name not in names), None)
    if unknown is not None:
        raise TypeError(f"{owner} has no option {unknown!r}; there are {', '.join(names)}{meant(unknown, names)}")
