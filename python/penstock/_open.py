"""open, create, load and save: from a file's name to datasets and arrays on a device, in one line.

Thin: the registry knows formats, DataFile does the rest. `load` and `save` of names without a known suffix are those of
plain bytes (see `_api`). What must stay true: the same words mean the same in all four.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal, overload

from penstock import _api
from penstock._api import Context, FileName, Outcome
from penstock._arrays.array import Array
from penstock._error import Error
from penstock._files.file_name import file_name, is_set
from penstock._options import SaveOptions, need_known
from penstock._shared import shared_context

if TYPE_CHECKING:
    import numpy as np
    from typing_extensions import Unpack

    from penstock._arrays.dtype import DType
    from penstock._options import FileOptions, LayoutOptions, NewFileOptions, ReadOptions
    from penstock.formats.datafile import DataFile
    from penstock.formats.format import Format
    from penstock.formats.model import Container
    from penstock.formats.registry import Several

    Elements = str | type[Any] | np.dtype[Any] | DType

    class LoadOptions(ReadOptions, total=False):
        """What every form of load() takes."""

        context: Context | None


def open(  # noqa: A001, PLR0913 - the name says what it does; one keyword a choice
    name: FileName,
    mode: Literal["r"] | None = None,
    *,
    write: bool = False,
    device: str = "auto",
    context: Context | None = None,
    format: str | None = None,
    dtype: Any = None,
    shape: Sequence[int] | None = None,
    offset_bytes: int = 0,
    durable: bool = False,
    decode: str = "auto",
    external: bool = False,
    **options: Unpack[FileOptions],
) -> DataFile:
    """Opens an HDF5, netCDF, NPY, safetensors or Zarr file, a history of raw files, or, with `dtype` and `shape`, a raw
    file.

    Args:
        name: the file, or the folder of a Zarr store or of a raw history; "history.pe######.nc" stands for the files of
            all processes.
        mode: "r" or nothing; what others call "r+" is write=True, and "w" is create().
        write: also for appending and for writing into existing datasets, in place.
        device: where arrays are read to: "auto" (a GPU when there is one), "host", "cuda:0", ...
        context: used instead of the one that this process keeps for the device.
        format: a name of docs/formats.md, as in "hdf5" or "raw"; found out when left out.
        dtype, shape, offset_bytes: of a raw file's elements; one extent of shape may be -1. A file of a known format is
            refused with them, unless format="raw" is given.
        durable: with write: close() returns when all is on stable storage.
        decode: what decodes compressed chunks, unless a read says otherwise: "host" (its cores, or the format's
            library), "gpu" (nvCOMP; an Error where it cannot), or "auto": the faster of them, and evidence says why.
        external: with write: also elements that lie in other files may be written: of external files and virtual
            datasets of HDF5, and of chunks of Zarr that are links.
        options: of the format; see its page in docs/formats.

    Returns a DataFile: a mapping of lazy datasets. A raw or NPY file has one, "data".
    Raises Error (not found, of no known format, damaged), TypeError and ValueError of arguments that do not fit.
    """
    registry, DataFile, Opened, FileState = _parts()  # noqa: N806 - classes

    if mode is not None and (mode != "r" or write):
        raise TypeError(_no_mode(name, mode))
    name = _place(name, "open")
    if dtype is None and format == registry.TOLD.name:
        if not os.path.isdir(name):  # noqa: PTH112 - raises nothing
            raise TypeError("a raw file needs dtype=, the type of its elements")
        format = registry.TOLD_BY_AN_INDEX
    if dtype is None and (shape is not None or offset_bytes):
        raise TypeError("shape= and offset_bytes= are for raw files, which need dtype= too")
    raw = {"dtype": dtype, "shape": shape, "offset_bytes": offset_bytes} if dtype is not None else {}
    kind, container = _reader(name, format, raw | options)
    writer = None
    if write:
        container.close()
        if is_set(name):
            raise TypeError(f"{name} stands for files of several processes: open the one that is to be changed")
        writer = registry.function(kind, "writer", name)(name, append=True, **raw, **options)

    def reopen() -> Any:
        return registry.function(kind, "reader", name)(name, **raw, **options)

    anew = _anew(name, write, context, raw | options | {"device": device, "format": format, "decode": decode})
    opened = Opened(name, kind, None if write else container, writer, reopen, durable, anew)
    return DataFile(FileState(opened, context or shared_context(device), decode, external))


@cache
def _parts() -> tuple[Any, ...]:
    """What opening needs, imported when the first file is opened: to import it each time takes longer than a read."""
    from penstock.formats import registry
    from penstock.formats.datafile import DataFile
    from penstock.formats.reading.source import Opened
    from penstock.formats.state import FileState

    return registry, DataFile, Opened, FileState


def _no_mode(name: FileName, mode: Any) -> str:
    """What to write in place of a mode as h5py and the open() of Python take it."""
    if mode == "r":
        return "open() takes mode='r' or write=True, not both"
    reads, writes, new = (
        f"open({name!r}) reads",
        "write=True opens an existing file for changes",
        "create() makes a new one",
    )
    others = {"r+": writes, "a": f"{writes}, {new}", "w": new, "w-": new, "x": new}
    wanted = others.get(str(mode).replace("b", ""), f"{reads}, {writes}, {new}")
    return f"open() takes no mode but 'r', here {mode!r}: {wanted}"


_DEVICE = re.compile(r"auto|host|cpu|(?:cuda|gpu).*", re.IGNORECASE)  # what Context judges
_MODE = re.compile(r"[rwax][+b]*")


def _need_device(call: Literal["load", "save"], name: FileName, device: Any) -> None:
    """Error where a mode or a name stands in the place of the device, as other libraries take one there."""
    if not isinstance(device, (str, list, tuple)) or (isinstance(device, str) and _DEVICE.fullmatch(device)):
        return
    names = [device] if isinstance(device, str) else list(device)
    shown = repr(file_name(name, "open"))
    wanted = f"load({shown}) needs no mode" if call == "load" else f"save({shown}, data) needs no mode"
    if call == "load" and not (isinstance(device, str) and _MODE.fullmatch(device)):
        wanted = f"load({shown}, names={names!r}) reads datasets by their names"
    position = "second" if call == "load" else "third"
    raise Error(
        code="invalid_argument",
        operation=call,
        cause=f"its {position} argument is the device, and no device is named {device!r}",
        advice=f"{wanted}; devices are auto, host, cuda and cuda:N (N from 0)",
    )


def _anew(name: str, write: bool, context: Context | None, options: Mapping[str, Any]) -> Callable[[], DataFile] | str:
    if write:
        return "it is open for writing"
    if context is not None:
        return "it was opened with context=, which is of this process; device= can go to others"
    return partial(open, name, **options)


_PLAIN = re.compile(r"(?:/[^/.\0][^/\0]*)+")  # whole paths without "." and "..", as most are


def _place(name: FileName, operation: str) -> str:
    """The whole path: a file stays the same one when the process changes its folder."""
    if type(name) is str and name.startswith("/") and name.isascii() and _PLAIN.fullmatch(name):
        return name
    return os.path.abspath(file_name(name, operation))  # noqa: PTH100 - a Path's keeps "..", and takes longer


def _reader(name: str, format: str | None, options: Mapping[str, Any]) -> tuple[Format, Container]:
    """The format, and its container of the file."""
    registry = _parts()[0]
    if is_set(name):
        from penstock.formats.divided.process_files import set_of

        return set_of(name, lambda file: _reader(file, format, options))
    named = registry.by_name(format) if format is not None else registry.by_suffix(name)
    if "dtype" in options and named is not registry.TOLD:
        if format is not None:
            raise TypeError(f"dtype= and shape= are for raw files, not for format={format!r}")
        registry.need_no_format(name)
        named = registry.TOLD
    if named is None or (format is None and named.shares_suffix):
        named = registry.of_file(name)
    try:
        if not named.sees_kind:
            need_file(name, named)
        return registry.opened(named, name, options, is_told=format is not None)
    except Error as error:
        refusal = error
    other = registry.shown_by(name) if format is None else None
    if other is None or other is named:
        need_file(name, named)
        raise refusal
    return registry.opened(other, name, options)


def need_file(name: str, format: Format) -> None:
    """Refuses pipes, which a reader would wait for, folders in place of files, and names of nothing, whether the
    format's library is installed or not."""
    try:
        mode = os.stat(name).st_mode  # noqa: PTH116 - half the time of a Path's
    except FileNotFoundError as error:
        raise Error.of(error, "open", name, "check the name and its permissions") from None
    except OSError:  # the reader has the words for it
        return
    if not (stat.S_ISREG(mode) or (stat.S_ISDIR(mode) and format.marks)):
        cause, number = ("it is a folder", errno.EISDIR) if stat.S_ISDIR(mode) else ("it is not a regular file", 0)
        advice = "give the name of a file; a folder can only be a Zarr store, or a history of raw files"
        operation = f"open as {format.name}"
        code = "not_a_regular_file"
        raise Error(code=code, operation=operation, file=name, cause=cause, advice=advice, system_code=number)


def create(  # noqa: PLR0913 - one keyword a choice
    name: FileName,
    mode: None = None,
    *,
    device: str = "auto",
    context: Context | None = None,
    format: str | None = None,
    durable: bool = False,
    **options: Unpack[NewFileOptions],
) -> DataFile:
    """A new file of the format that the suffix, or `format`, says. It appears under its name, whole, when the block
    ends without an error (or at close()); until then an older file of that name is untouched.

        with penstock.create("out.h5", durable=True) as file:
            file["fields/T"] = gpu_array
            file["fields/T"].attrs["units"] = "K"

    `durable`: close() returns when the file and its name are on stable storage. Other arguments as of open().
    """
    if mode is not None:
        raise TypeError(f"create() takes no mode, here {mode!r}: it always makes a new file")
    from penstock.formats import registry
    from penstock.formats.datafile import DataFile
    from penstock.formats.reading.source import Opened
    from penstock.formats.state import FileState

    name = _place(name, "create")
    kind = registry.by_name(format) if format is not None else registry.by_suffix(name)
    if kind is None:
        raise registry.no_format(name)
    context = context or shared_context(device)
    writer = registry.function(kind, "writer", name)(name, **options)

    def reopen() -> Any:
        return registry.function(kind, "reader", name)(name)

    opened = Opened(name, kind, None, writer, None if kind.needs_dtype else reopen, durable)
    return DataFile(FileState(opened, context))


# What the arguments tell a type checker of the result; where they do not, the file decides.
@overload
def load(
    name: FileName, device: str = ..., *, names: Sequence[str], like: None = ..., **how: Unpack[LoadOptions]
) -> dict[str, Array]: ...
@overload
def load(
    name: FileName, device: str = ..., *, format: Several, like: None = ..., **how: Unpack[LoadOptions]
) -> dict[str, Array]: ...
@overload
def load(
    name: FileName, device: str = ..., *, format: Literal["npy"], like: None = ..., **how: Unpack[LoadOptions]
) -> Array: ...
@overload
def load(  # noqa: PLR0913
    name: FileName,
    device: str = ...,
    *,
    dtype: Elements,
    format: Literal["raw"] | None = ...,
    shape: Sequence[int] | None = ...,
    offset_bytes: int = ...,
    like: None = ...,
    **how: Unpack[LoadOptions],
) -> Array: ...
@overload
def load(  # noqa: PLR0913
    name: FileName,
    device: str = ...,
    *,
    context: Context | None = ...,
    format: str | None = ...,
    dtype: Any = ...,
    shape: Sequence[int] | None = ...,
    offset_bytes: int = ...,
    names: Sequence[str] | None = ...,
    like: Any = ...,
    **options: Unpack[ReadOptions],
) -> Any: ...
def load(  # noqa: PLR0913 - one keyword a choice
    name: FileName,
    device: str = "auto",
    *,
    context: Context | None = None,
    format: str | None = None,
    dtype: Any = None,
    shape: Sequence[int] | None = None,
    offset_bytes: int = 0,
    names: Sequence[str] | None = None,
    like: Any = None,
    **options: Unpack[ReadOptions],
) -> Any:
    """Reads a whole file to a device.

    A file of several datasets (HDF5, netCDF, safetensors, Zarr) gives a dict of arrays, which share one buffer and are
    read in one submission; NPY, and raw files with `dtype` (and `shape`), give one array. A file that neither its bytes
    nor its suffix show to be of a known format, without `format` and `dtype`, gives its bytes: a Buffer (an empty one
    raises Error).

    A type checker knows the result where `names`, `format` or `dtype` is given; else it is Any.

    `names`: the datasets to read, of a file of several; all when left out. Then those that cannot be read are left out
    with an UnreadableWarning; see Group.load.
    `like`: an array of the library whose arrays you want, as in load("x.h5", like=cupy.empty(())); no copy is made.
    Other arguments as of open().
    """
    from penstock.formats import registry

    _need_device("load", name, device)
    if format is None and dtype is None:
        place, told = _place(name, "open"), (shape, offset_bytes or None, names, like)
        if not options and all(one is None for one in told):
            whole = registry.load_plain(context or shared_context(device), place)
            if whole is not None:
                return whole
        if registry.is_plain(place):
            _need_no_arrays(shape=shape, offset_bytes=offset_bytes or None, names=names, like=like)
            return _api.load(context or shared_context(device), name, **options)
    with open(
        name, device=device, context=context, format=format, dtype=dtype, shape=shape, offset_bytes=offset_bytes
    ) as file:
        is_single = registry.FORMATS[file.format].single
        if is_single and names is None and like is None and not options:
            return file["data"][...]
        arrays = file.load(names, like=like, **options)
    return arrays["data"] if is_single else arrays


def _need_no_arrays(**given: Any) -> None:
    """That nothing is dropped in silence which only arrays have: plain bytes have no shape, and no names."""
    name = next((name for name, value in given.items() if value is not None), None)
    if name is not None:
        raise TypeError(f"{name}= is for arrays, and the file is of no known format: give dtype= too, or format=")


def save(  # noqa: PLR0913 - one keyword a choice
    name: FileName,
    data: Any,
    device: str = "auto",
    *,
    context: Context | None = None,
    format: str | None = None,
    attributes: Mapping[str, Any] | None = None,
    durable: bool = False,
    compression: Literal["gzip", "zstd", "lz4"] | None = None,
    compression_level: int | None = None,
    shuffle: bool | None = None,
    chunk_shape: Sequence[int] | None = None,
    **options: Unpack[SaveOptions],
) -> Outcome:
    """Writes a new file, which appears under its name only when whole; replaces an older one.

    `data` is a dict of arrays for HDF5, netCDF, safetensors and Zarr, one array for NPY, format="raw" and names in .bin
    or .raw, which get its elements without type and shape. Memory without a type, such as bytes and a Buffer, is
    written under any name that is not of a known format. Arrays are of any library; a penstock Array or Buffer is
    written by its own context, `device` is for those of others. `attributes` are those of the file.
    `compression` packs the chunks of all arrays, on all cores, in HDF5, netCDF-4 and Zarr; see LayoutOptions for it and
    what follows. Arrays without dimensions, or without elements, are stored as they are.
    """
    from penstock.formats import registry
    from penstock.formats.simple.at_once import saved_at_once

    _need_device("save", name, device)
    need_known("save()", (*(save.__kwdefaults__ or {}), *SaveOptions.__annotations__), options)
    layout: LayoutOptions = {"compression": compression, "compression_level": compression_level, "shuffle": shuffle}
    if chunk_shape is not None:
        layout["chunk_shape"] = chunk_shape
    packed = any(value is not None for value in layout.values())
    if format is None and registry.by_suffix(file_name(name, "create")) is None:
        if isinstance(data, Mapping):
            raise registry.no_format(_place(name, "create"))
        if packed:
            raise TypeError(f"{name} is of no known format: bytes have no chunks, and are not compressed")
        registry.need_bare(_place(name, "create"), hasattr(data, "dtype") and not isinstance(data, _api.Buffer))
        memory = data.as_bytes() if isinstance(data, Array) else data
        holder = Context._of(memory) if isinstance(memory, _api.Buffer) else shared_context(device)
        return _api.save(holder, name, memory, durable=durable, **options)
    arrays = data if isinstance(data, Mapping) else {"data": data}
    is_usual = context is None and device in ("auto", "host", "cpu") and not (attributes or options or packed)
    if is_usual and (done := saved_at_once(_place(name, "create"), format, arrays, durable)) is not None:
        return done
    with create(name, context=context or _context_of(arrays, device), format=format, durable=durable) as file:
        for attribute, value in (attributes or {}).items():
            file.attrs[attribute] = value
        return file._write_new(arrays, layout, options)


def _context_of(arrays: Mapping[str, Any], device: str) -> Context:
    """That of the first array which has one; else the shared one of the device that the first array lies on."""
    from penstock.formats.writing import values_of

    for one in arrays.values():
        if isinstance(one, Array):
            return Context._of(one.buffer)
    if device == "auto":
        devices = [one.device for one in values_of(arrays).values()]
        device = next((one for one in devices if one != "host"), "host")
    return shared_context(device)
