"""Memory of others, as the mover needs it: an object the engine takes, and where in it which elements lie.

`out=` of a read and the value of a write may be a penstock Array, anything with the buffer protocol (NumPy), with
DLPack (PyTorch, CuPy, JAX) or with `__cuda_array_interface__` (Numba). What must stay true: type, shape, order and
device are compared before anything moves, and a difference is an error that says both sides; nothing is converted.
Memory of several `out` of one call may touch, and must not overlap: what lands there last would win.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from penstock import _core
from penstock._arrays.array import Array, c_strides, product
from penstock._arrays.dtype import DType

_CPU, _CUDA, _CUDA_HOST, _CUDA_MANAGED = 1, 2, 3, 13  # DLDeviceType


@dataclass(frozen=True)
class Target:
    """Elements in memory. `memory` is what _core takes; `base` the byte offset of the first element in it."""

    memory: Any
    base: int
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    device: str  # "host" or "cuda:N"
    readonly: bool = False
    keep: Any = None  # owns the memory
    stream: int | None = None  # work queued there comes first

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return product(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def is_order(self, order: str) -> bool:
        """Contiguous in C or Fortran order."""
        shape = self.shape if order == "C" else self.shape[::-1]
        strides = self.strides if order == "C" else self.strides[::-1]
        wanted = c_strides(shape, self.dtype.itemsize)
        return self.size == 0 or all(n == 1 or a == b for n, a, b in zip(shape, strides, wanted, strict=True))

    def as_bytes(self) -> Any:
        """Exactly the bytes of a contiguous target, as memory for _core."""
        if isinstance(self.memory, _core.Buffer):
            return self.memory.slice(self.base, self.nbytes)
        return self.memory if self.base == 0 else memoryview(self.memory).cast("B")[self.base :]


def target_of(thing: Any, stream: int | None = None) -> Target:
    """What `thing` is as memory. TypeError when it is none. `stream` orders what its owner has queued on a GPU."""
    if isinstance(thing, Target):
        return thing
    if isinstance(thing, Array):
        return _of_array(thing)
    if isinstance(thing, _core.Buffer):
        return _of_array(Array(thing, "uint8", (thing.bytes,)))
    found = _of_buffer(thing)
    if found is None and hasattr(thing, "__dlpack__"):
        found = _of_dlpack(thing, stream)
    if found is None and hasattr(thing, "__cuda_array_interface__"):
        found = _of_cuda_array(thing)
    if found is None:
        raise TypeError(
            f"a {type(thing).__name__} is not an array: pass a penstock Array, or an object with DLPack, "
            "__cuda_array_interface__ or the buffer protocol"
        )
    return found


def _of_array(array: Array) -> Target:
    return Target(
        array.buffer, array.offset_bytes, array.dtype, array.shape, array.strides, array.device, keep=array.buffer
    )


def _of_buffer(thing: Any) -> Target | None:
    try:
        view = memoryview(thing)
    except (TypeError, BufferError, ValueError):  # of NumPy arrays whose types the protocol cannot say, too
        return _of_array_interface(thing)
    if hasattr(thing, "__array_interface__"):
        return _of_array_interface(thing)  # names members of compound types
    dtype, strides = DType.of_buffer_format(view.format, view.itemsize), tuple(view.strides or ())
    if view.c_contiguous:
        return Target(thing, 0, dtype, tuple(view.shape or ()), strides, "host", view.readonly, thing)
    raise TypeError(f"a {type(thing).__name__} with strides {strides} is not contiguous; pass a contiguous copy")


def _of_array_interface(thing: Any) -> Target | None:
    """NumPy arrays, and what shares their memory. Numbers of NumPy have no memory that lasts: a copy is taken."""
    interface = getattr(thing, "__array_interface__", None)
    if not isinstance(interface, dict):
        return None
    import numpy as np

    array = np.asarray(thing)
    shares = isinstance(interface.get("data"), tuple) and not isinstance(thing, np.generic)
    readonly = not (shares and array.flags.writeable)
    address = array.__array_interface__["data"][0]
    dtype = DType.of(array.dtype)
    return _at_address(Target(None, 0, dtype, array.shape, array.strides, "host", readonly, array), address)


def _of_dlpack(thing: Any, stream: int | None) -> Target:
    try:
        memory = _core.describe_dlpack(thing, stream or None)  # 0, CUDA's default stream, is not 0 in DLPack
    except (BufferError, RuntimeError) as error:
        raise TypeError(f"a {type(thing).__name__} that cannot be exported: {error}") from error
    dtype, shape = DType.of_dlpack(*memory.dtype), tuple(memory.shape or ())
    kind, index = memory.device
    if kind not in (_CPU, _CUDA, _CUDA_HOST, _CUDA_MANAGED):
        raise TypeError(
            f"a {type(thing).__name__} lies on a device of DLPack type {kind}, which is neither host nor CUDA"
        )
    device = f"cuda:{index}" if kind in (_CUDA, _CUDA_MANAGED) else "host"
    item = dtype.itemsize
    # CuPy divides negative strides as unsigned numbers; modulo 2^64, as addresses are, they come out right.
    strides = c_strides(shape, item)
    if memory.strides is not None:
        strides = tuple((one * item + (1 << 63)) % (1 << 64) - (1 << 63) for one in memory.strides)
    if memory.contiguous:
        return Target(memory, 0, dtype, shape, c_strides(shape, item), device, memory.readonly, memory)
    pending = (stream or 0) if device != "host" else None
    found = Target(None, 0, dtype, shape, strides, device, memory.readonly, memory, pending)
    return _at_address(found, memory.pointer)


def _of_cuda_array(thing: Any) -> Target:
    interface = thing.__cuda_array_interface__
    dtype, shape = DType.of(interface["typestr"]), tuple(interface["shape"])
    address, readonly = interface["data"]
    strides = tuple(interface.get("strides") or c_strides(shape, dtype.itemsize))
    index = getattr(getattr(thing, "device", None), "id", 0)
    target = Target(None, 0, dtype, shape, strides, f"cuda:{index}", readonly, thing, interface.get("stream"))
    return _at_address(target, address)


class _Span:
    """Bytes of a GPU at an address."""

    def __init__(self, address: int, bytes: int, readonly: bool) -> None:
        self.keep: Any = None
        self.__cuda_array_interface__ = {
            "shape": (bytes,),
            "typestr": "|u1",
            "data": (address, readonly),
            "version": 3,
        }


def _at_address(target: Target, address: int) -> Target:
    """The bytes from the lowest element to the highest as one memory, whatever lies between the elements."""
    reaches = [(n - 1) * stride for n, stride in zip(target.shape, target.strides, strict=True)]
    low = sum(min(0, reach) for reach in reaches)
    size = sum(max(0, reach) for reach in reaches) + target.dtype.itemsize - low if target.size else 0
    memory: Any = bytearray()
    if size and target.device == "host":
        memory = (ctypes.c_ubyte * size).from_address(address + low)
    elif size:
        memory = _Span(address + low, size, target.readonly)
    if size:
        memory.keep = target.keep  # whoever holds the memory, a transfer say, holds its owner
    return replace(target, memory=memory, base=-low)


def check_apart(outs: Sequence[tuple[str, Target]]) -> None:
    """ValueError names the datasets of two targets that share memory. The targets have no gaps."""
    if len(outs) < 2:
        return
    spans = sorted((address_of(one), one.nbytes, name) for name, one in outs if one.nbytes)
    for (address, size, name), (behind, _, other) in pairwise(spans):
        if address + size > behind:
            raise ValueError(f"out for dataset {name!r} and out for dataset {other!r} share memory from {behind:#x} on")


def address_of(target: Target) -> int:
    """Address of the first byte of a target that has one and can be written."""
    memory = target.memory
    if isinstance(memory, _core.Buffer):
        return memory.address + target.base
    if isinstance(memory, _core.DLPackMemory):
        return memory.pointer + target.base
    if isinstance(memory, ctypes.Array):
        return ctypes.addressof(memory) + target.base
    if hasattr(memory, "__cuda_array_interface__"):
        return memory.__cuda_array_interface__["data"][0] + target.base
    return ctypes.addressof(ctypes.c_ubyte.from_buffer(memory)) + target.base


def stream_handle(stream: Any) -> int | None:
    """The number of a stream: an integer, or what CuPy (.ptr), PyTorch (.cuda_stream) or cuda.core
    (__cuda_stream__) call one."""
    if stream is None:
        return None
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    for name in ("ptr", "cuda_stream"):
        if hasattr(stream, name):
            return int(getattr(stream, name))
    if isinstance(stream, int) and not isinstance(stream, bool):
        return stream
    raise TypeError(
        f"a {type(stream).__name__} is not a stream: pass an integer handle, or an object with .ptr, .cuda_stream or "
        "__cuda_stream__"
    )
