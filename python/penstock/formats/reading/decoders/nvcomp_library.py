"""libnvcomp, NVIDIA's library of codecs for GPUs: found, opened and its functions given types.

It is optional, and is opened only when compressed chunks are to be decoded on a GPU. The prototypes are of its batched
low-level C interface, versions 5 and 6, which differ in how they tell the size of temporary memory. What must stay
true: another version, or one that lacks a function, is not used, and the reason is told.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
from collections.abc import Iterator
from ctypes import POINTER, c_char, c_int, c_size_t, c_uint32, c_void_p
from pathlib import Path

MAJORS = (6, 5)  # newest first
CODECS = {"deflate": "Deflate", "gzip": "Gzip", "zstd": "Zstd", "lz4": "LZ4"}  # ours, and in names of functions
ON_CUDA_CORES = 2  # of Options.backend: decompression engines want memory of a special kind


class Unusable(Exception):
    """Why there is no nvCOMP."""


class Options(ctypes.Structure):
    """How to decompress; the same size for every codec, and zero means the default."""

    _fields_ = (("backend", c_int), ("others", c_char * 60))


class _Properties(ctypes.Structure):
    """Versions: of nvCOMP as 1000 major + 100 minor + patch; of its CUDA runtime as 1000 major + 10 minor."""

    _fields_ = (("version", c_uint32), ("cuda_version", c_uint32))


class Library:
    """An open libnvcomp."""

    def __init__(self, handle: ctypes.CDLL) -> None:
        self._handle = handle
        properties = _Properties()
        self._function("nvcompGetProperties", POINTER(_Properties))(ctypes.byref(properties))
        self.cuda_version: int = properties.cuda_version
        self.major, rest = divmod(properties.version, 1000)
        self.version = f"{self.major}.{rest // 100}.{rest % 100}"
        if self.major not in MAJORS:
            raise Unusable(f"nvCOMP {self.version} is installed, versions {MAJORS[-1]} and {MAJORS[0]} are known")
        self._temp = {codec: self._temp_function(name) for codec, name in CODECS.items()}
        # Streams and their sizes, room and sizes of chunks, count, temporary memory and its size, chunks, options,
        # statuses, CUDA stream. All but options and sizes of one value lie on the device.
        pointers = (c_void_p, c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, Options)
        self._decompress = {
            codec: self._function(f"nvcompBatched{name}DecompressAsync", *pointers, c_void_p, c_void_p)
            for codec, name in CODECS.items()
        }

    def _function(self, name: str, *arguments: type) -> ctypes._NamedFuncPointer:
        try:
            function = getattr(self._handle, name)
        except AttributeError:
            raise Unusable(f"libnvcomp lacks the function {name}") from None
        function.argtypes, function.restype = arguments, c_int
        return function

    def _temp_function(self, name: str) -> ctypes._NamedFuncPointer:
        base, arguments = f"nvcompBatched{name}DecompressGetTempSize", (c_size_t, c_size_t, Options)
        if self.major == 5:
            return self._function(f"{base}Async", *arguments, POINTER(c_size_t), c_size_t)
        return self._function(base, *arguments, POINTER(c_size_t), c_size_t, c_void_p)

    def temp_bytes(self, codec: str, count: int, largest: int, total: int) -> tuple[int, int]:
        """(status, bytes) of temporary memory for decompressing chunks, of `total` bytes, the largest of `largest`."""
        needed = c_size_t()
        stream = () if self.major == 5 else (None,)
        options = Options(backend=ON_CUDA_CORES)
        status = self._temp[codec](count, largest, options, ctypes.byref(needed), total, *stream)
        return status, needed.value

    def decompress(self, codec: str, count: int, columns: list[int], temp: tuple[int, int]) -> int:
        """Starts decompressing on the default stream; its status. `columns`: addresses on the device of the streams'
        addresses and sizes, of the chunks' room and sizes, of the chunks' addresses, and of statuses. `temp`: address
        and bytes of temporary memory."""
        streams, sizes, room, made, chunks, statuses = columns
        options = Options(backend=ON_CUDA_CORES)
        return self._decompress[codec](streams, sizes, room, made, count, *temp, chunks, options, statuses, None)

    def words(self, status: int) -> str:
        """What a status means."""
        function = self._handle.nvcompGetStatusString
        function.argtypes, function.restype = (c_int,), ctypes.c_char_p
        text = function(status)
        return text.decode("ascii", "replace") if text else f"status {status}"


@functools.cache
def library() -> Library | str:
    """The library, opened once in a process; or why there is none."""
    reasons = []
    for name in _names():
        try:
            return Library(ctypes.CDLL(name))
        except OSError as error:
            if "/" in name:
                reasons.append(f"{name} cannot be opened: {error}")
        except Unusable as error:
            reasons.append(str(error))
    wheel = "pip install nvidia-libnvcomp-cu13 (or -cu12)"
    return f"nvCOMP cannot be used: {'; '.join(reasons)}" if reasons else f"nvCOMP is not installed: {wheel}"


def _names() -> Iterator[str]:
    """That of the wheel first, then what the loader finds."""
    try:
        wheel = importlib.util.find_spec("nvidia.libnvcomp")
    except (ImportError, ValueError):
        wheel = None
    for folder in wheel.submodule_search_locations or () if wheel else ():
        for major in MAJORS:
            yield from map(str, sorted(Path(folder).glob(f"lib*/libnvcomp.so.{major}")))
    for major in MAJORS:
        yield f"libnvcomp.so.{major}"
