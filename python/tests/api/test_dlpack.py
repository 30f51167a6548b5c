"""Tensors of other libraries as memory, and buffers as tensors of any type, by DLPack."""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from array_rig import OnlyDLPack

import penstock
from penstock import _core
from penstock.formats.reading.target import target_of

np = pytest.importorskip("numpy")


@pytest.fixture
def context() -> _core.Context:
    return _core.Context(device="host")


def table_of(*rows: list[int]) -> Any:
    return np.array(rows, dtype=np.int64)


def test_dlpack_describes_arrays() -> None:
    array = np.zeros((3, 4, 5), np.float32)
    memory = _core.describe_dlpack(array[:, 1:3])
    assert memory.shape == (3, 2, 5)
    assert memory.strides == (20, 5, 1)
    assert memory.dtype == (2, 32, 1)
    assert memory.device == (1, 0)
    assert memory.pointer == array.__array_interface__["data"][0] + 20
    assert memory.bytes == 120
    assert not memory.contiguous
    assert not memory.readonly
    array.flags.writeable = False
    assert _core.describe_dlpack(array).readonly
    with pytest.raises(penstock.Error, match="no __dlpack__"):
        _core.describe_dlpack([1])


class OldProducer:
    """An array of a library that predates DLPack's versions."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, stream: None = None) -> Any:
        return self.array.__dlpack__()


@pytest.mark.parametrize("wrap", [lambda array: _core.describe_dlpack(array), OldProducer])
def test_dlpack_memory_is_memory(context: _core.Context, sample: Path, wrap: Any) -> None:
    array = np.zeros(1000, np.uint16)
    file = _core.open(context, sample)
    file.start_read(wrap(array), 100).result().or_throw()
    assert array.tobytes() == sample.read_bytes()[100:2100]
    with pytest.raises(penstock.Error, match="not contiguous"):
        file.start_read(wrap(array[::2]), 100)
    if wrap is not OldProducer:
        array.flags.writeable = False
        with pytest.raises(penstock.Error, match="read-only"):
            file.start_read(wrap(array), 100)
    _core.copy_boxes(context, wrap(np.zeros(1000, np.uint16)), wrap(array), table_of([0, 0, 1000, 2, 2]), 2)


def test_dlpack_memory_keeps_the_array_alive(context: _core.Context) -> None:
    array = np.full(100_000, 7, np.uint8)
    memory = _core.describe_dlpack(array)
    del array
    gc.collect()
    buffer = _core.allocate(context, 100_000, "device", "none")
    context.copy_to_device(buffer, memory)
    assert set(bytes(memoryview(buffer))) == {7}


class Exported:
    """What an array with a dtype does with export_dlpack."""

    def __init__(self, *layout: Any) -> None:
        self.layout = layout

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.layout[0].__dlpack_device__()

    def __dlpack__(self, **keywords: Any) -> Any:
        return _core.export_dlpack(*self.layout, **keywords)


CODES = {"i2": (0, 16, 1), "u1": (1, 8, 1), "f8": (2, 64, 1), "c8": (5, 64, 1), "?": (6, 8, 1)}


@pytest.mark.parametrize("dtype", CODES)
def test_buffers_export_any_type_and_order(context: _core.Context, dtype: str) -> None:
    array = np.random.default_rng(3).integers(0, 2, (3, 4, 5)).astype(dtype)
    buffer = _core.allocate(context, 64 + array.nbytes, "device", "none")
    context.copy_to_device(buffer.slice(64, array.nbytes), array)
    assert np.array_equal(np.from_dlpack(Exported(buffer, 64, array.shape, None, CODES[dtype])), array)
    fortran = np.from_dlpack(Exported(buffer, 64, (5, 4, 3), (1, 5, 20), CODES[dtype]))
    assert np.array_equal(fortran, array.T)
    assert fortran.flags.f_contiguous
    backwards = Exported(buffer, 64 + 59 * array.itemsize, (60,), (-1,), CODES[dtype])
    assert np.array_equal(np.from_dlpack(backwards), array.ravel()[::-1])
    copy = np.from_dlpack(backwards, copy=True)
    assert np.array_equal(copy, array.ravel()[::-1])
    assert copy.__array_interface__["data"][0] != buffer.address
    fortran[0, 0, 0] = not array[0, 0, 0]
    assert bytes(memoryview(buffer))[64 : 64 + array.itemsize] != array.tobytes()[: array.itemsize]
    del buffer, backwards
    gc.collect()
    assert fortran[0, 0, 0] != array[0, 0, 0]  # the memory is still there


def test_types_that_numpy_lacks_are_exported_too(context: _core.Context) -> None:
    buffer = _core.allocate(context, 4096, "device", "gpu")
    for code in [(4, 16, 1), *((code, 8, 1) for code in range(7, 15)), (2, 32, 4)]:
        memory = _core.describe_dlpack(Exported(buffer, 16, (5, 2), None, code))
        assert memory.dtype == code
        assert memory.bytes == 10 * code[1] * code[2] // 8
        assert memory.pointer == buffer.address + 16
        assert memory.strides == (2, 1)


def test_exports_stay_inside_the_buffer(context: _core.Context) -> None:
    buffer = _core.allocate(context, 100, "device", "none")
    for offset, shape, strides in [
        (0, (101,), None),
        (96, (2,), None),
        (0, (2,), (-1,)),
        (0, (2,), (2**62,)),
        (0, (2**62, 2**62), None),
        (101, (0,), None),
    ]:
        with pytest.raises(penstock.Error, match="leave|stride"):
            _core.export_dlpack(buffer, offset, shape, strides, (0, 32, 1))
    for dtype in [(0, 4, 1), (0, 0, 1), (0, 300, 1)]:
        with pytest.raises(penstock.Error, match="type"):
            _core.export_dlpack(buffer, 0, (1,), None, dtype)
    with pytest.raises(penstock.Error, match="strides"):
        _core.export_dlpack(buffer, 0, (1, 2), (1,), (0, 8, 1))
    _core.export_dlpack(buffer, 100, (0, 7), None, (0, 32, 1))  # no items: nothing leaves


def test_the_protocol_of_dlpack(context: _core.Context) -> None:
    buffer = _core.allocate(context, 100, "device", "none")
    layout = (buffer, 0, (100,), None, (1, 8, 1))
    assert '"dltensor"' in repr(_core.export_dlpack(*layout))
    assert '"dltensor"' in repr(_core.export_dlpack(*layout, stream=None, max_version=(0, 8), dl_device=(1, 0)))
    assert '"dltensor_versioned"' in repr(_core.export_dlpack(*layout, max_version=(1, 0), copy=False))
    with pytest.raises(BufferError):
        _core.export_dlpack(*layout, dl_device=(2, 0))
    with pytest.raises(TypeError):
        _core.export_dlpack(*layout, colour=1)
    for _ in range(1000):  # capsules that no library consumes let the buffer go
        _core.export_dlpack(*layout, max_version=(1, 1))
        _core.export_dlpack(*layout, copy=True)


def test_torch_tensors_are_memory(context: _core.Context, sample: Path) -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.zeros(500, dtype=torch.bfloat16)
    memory = _core.describe_dlpack(tensor)
    assert memory.dtype == (4, 16, 1)
    assert memory.pointer == tensor.data_ptr()
    _core.open(context, sample).start_read(tensor, 0).result().or_throw()
    assert bytes(tensor.view(torch.uint8).tolist()) == sample.read_bytes()[:1000]
    buffer = _core.allocate(context, 1000, "device", "none")
    context.copy_to_device(buffer, memory)
    exported = torch.from_dlpack(Exported(buffer, 0, (50, 10), (1, 50), (4, 16, 1)))
    assert torch.equal(exported.view(torch.int16), tensor.view(torch.int16).reshape(10, 50).T)


def test_tensors_of_a_gpu_are_memory() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available() or _core.cuda_devices()[0] == 0:
        pytest.skip("no GPU for torch")
    context = _core.Context(device="cuda:0")
    tensor = torch.arange(1000, dtype=torch.int16, device="cuda:0")
    memory = _core.describe_dlpack(tensor)
    assert memory.pointer == tensor.data_ptr()
    assert memory.device == (2, 0)
    buffer = _core.allocate(context, 2000, "device", "none")
    _core.copy_boxes(context, buffer, memory, table_of([0, 1998, 1000, 2, -2]), 2)
    exported = torch.from_dlpack(Exported(buffer, 0, (1000,), None, (0, 16, 1)))
    assert torch.equal(exported, tensor.flip(0))
    _core.synchronize_stream(context, torch.cuda.current_stream().cuda_stream)


def test_bytes_of_any_memory_of_a_contiguous_target(context: _core.Context) -> None:
    array = np.arange(24, dtype="f4").reshape(2, 3, 4)
    buffer = _core.allocate(context, 32 + array.nbytes, "device", "none")
    context.copy_to_device(buffer.slice(16, array.nbytes), array)
    mine = target_of(penstock.Array(buffer, "float32", array.shape, offset_bytes=16))
    found = np.empty(array.shape, "f4")
    context.copy_to_host(found, mine.as_bytes())
    assert np.array_equal(found, array)
    exported = target_of(OnlyDLPack(array))
    assert isinstance(exported.memory, _core.DLPackMemory)
    assert exported.as_bytes() is exported.memory
    whole = target_of(array)
    part = replace(whole, base=array[0].nbytes, shape=array.shape[1:], strides=array.strides[1:])
    assert bytes(whole.as_bytes()) == array.tobytes()
    assert bytes(part.as_bytes()) == array[1].tobytes()
