"""Strided copies and fills, tables of ranges, and DLPack, with NumPy as the reference."""

from __future__ import annotations

import gc
import random
import time
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock import _core

np = pytest.importorskip("numpy")


@pytest.fixture
def context() -> _core.Context:
    return _core.Context(device="host")


def table_of(*rows: list[int]) -> Any:
    return np.array(rows, dtype=np.int64)


def offset_in(part: Any, whole: Any) -> int:
    return part.__array_interface__["data"][0] - whole.__array_interface__["data"][0]


def row_for(to: Any, to_base: Any, source: Any, from_base: Any) -> list[int]:
    return [offset_in(to, to_base), offset_in(source, from_base), *to.shape, *to.strides, *source.strides]


def random_view(numbers: random.Random, base: Any, shape: tuple[int, ...]) -> Any:
    """A view of `base` (bytes) of int32 items: of this shape, in any order of dimensions, with steps."""
    order = numbers.sample(range(len(shape)), len(shape))
    steps = [numbers.choice([1, 1, 2, 3, -1, -2]) for _ in shape]
    sizes = [shape[axis] * abs(steps[axis]) for axis in order]
    whole = base[: int(np.prod(sizes)) * 4].view(np.int32).reshape(sizes)
    stepped = whole[(*(slice(None, None, steps[axis]) for axis in order), ...)]
    view = stepped.transpose(np.argsort(order))
    assert view.shape == shape
    return view


def test_random_views_move_as_numpy_moves_them(context: _core.Context) -> None:
    numbers = random.Random(5)
    for _ in range(300):
        shape = tuple(numbers.randint(1, 4) for _ in range(numbers.randint(0, 6)))
        source, target = np.frombuffer(numbers.randbytes(2_000_000), np.uint8), np.zeros(2_000_000, np.uint8)
        view = random_view(numbers, source, shape)
        expected = target.copy()
        random_state = numbers.getstate()
        random_view(numbers, expected, shape)[...] = view
        numbers.setstate(random_state)
        into = random_view(numbers, target, shape)
        table = table_of(row_for(into, target, view, source))
        swap = numbers.choice([0, 0, 4])
        if swap:
            numbers.setstate(random_state)
            random_view(numbers, expected, shape)[...] = view.byteswap()
        _core.copy_boxes(context, target, source, table, 4, swap)
        assert np.array_equal(target, expected), table


def test_boxes_in_device_memory(context: _core.Context) -> None:
    source = np.arange(10_000, dtype=np.float64)
    device, result = _core.allocate(context, 80_000, "device", "none"), _core.allocate(context, 80_000, "device", "gpu")
    context.copy_to_device(device, source)
    rows = [[800 * i, 80_000 - 800 * (i + 1), 100, 8, 8] for i in range(100)]
    _core.copy_boxes(context, result, device, np.array(rows, dtype=np.int64), 8, 8)
    assert np.array_equal(np.frombuffer(result, np.float64), source.reshape(100, 100)[::-1].ravel().byteswap())
    _core.copy_boxes(context, result, result, table_of([0, 0, 10_000, 8, 8]), 8, 8)  # in place
    assert np.array_equal(np.frombuffer(result, np.float64), source.reshape(100, 100)[::-1].ravel())


def test_every_word_size_is_swapped(context: _core.Context) -> None:
    for dtype in ("u2", "u4", "u8", "c16"):
        words = np.random.default_rng(1).integers(0, 255, 4800, np.uint8).view(dtype)
        swapped = np.zeros_like(words)
        _core.copy_boxes(
            context,
            swapped,
            words,
            table_of([0, 0, len(words), *2 * [words.itemsize]]),
            words.itemsize,
            words.itemsize if dtype != "c16" else 8,
        )
        assert swapped.tobytes() == words.byteswap().tobytes()
    words = np.random.default_rng(1).integers(0, 255, (300, 16), np.uint8)
    swapped = np.zeros_like(words)
    _core.copy_boxes(context, swapped, words, table_of([0, 0, 300, 16, 16]), 16, 16)
    assert np.array_equal(swapped, words[:, ::-1])


def test_many_dimensions(context: _core.Context) -> None:
    source = np.arange(3 * 2**12, dtype=np.uint16).reshape(*[2] * 6, 3, *[2] * 6)
    target = np.zeros_like(source)
    into = target.transpose(np.random.default_rng(2).permutation(13))
    view = source.reshape(into.shape)
    _core.copy_boxes(context, target, source, table_of(row_for(into, target, view, source)), 2)
    assert np.array_equal(into, view)
    assert into.ndim == 13


def test_fills(context: _core.Context) -> None:
    numbers = random.Random(7)
    for item_bytes in (1, 2, 3, 4, 8, 12, 100, 5000, 65536):
        item = np.frombuffer(numbers.randbytes(item_bytes), np.uint8)
        target = np.zeros((7, 9, item_bytes), np.uint8)
        whole = target.copy()
        whole[1:6, 2:] = item
        row = [offset_in(target[1:, 2:], target), 5, 7, *target.strides[:2]]
        _core.fill_boxes(context, target, table_of(row), item)
        assert np.array_equal(target, whole), item_bytes
        line = np.zeros((6000, item_bytes), np.uint8)[: 6_000_000 // item_bytes]
        _core.fill_boxes(context, line, table_of([0, len(line), item_bytes]), item.tobytes())
        assert (line == item).all(), item_bytes
    for item in (b"", bytes(65537)):
        with pytest.raises(penstock.Error, match="1 to 65536"):
            _core.fill_boxes(context, target, table_of([0, 1, 1]), item)


def test_what_leaves_the_memory_is_refused_by_row_and_nothing_moves(context: _core.Context) -> None:
    source, target = np.arange(100, dtype=np.uint8), np.zeros(100, np.uint8)
    good = [0, 0, 10, 1, 1]
    bad = [
        [91, 0, 10, 1, 1],  # over the end
        [0, 91, 10, 1, 1],
        [8, 0, 10, -1, 1],  # before the start
        [0, 8, 10, 1, -1],
        [-1, 0, 1, 1, 1],
        [0, 0, -1, 1, 1],
        [0, 0, 2**62, 2**62, 1],
        [0, 0, 2**63 - 1, 1, 1],
        [0, 0, 2, -(2**63), 1],
        [101, 0, 0, 1, 1],
        [0, 0, 10, 0, 1],  # overlaps itself
    ]
    for row in bad:
        with pytest.raises(penstock.Error, match="row 2: ") as caught:
            _core.copy_boxes(context, target, source, table_of(good, good, row, good), 1)
        assert caught.value.code == "invalid_argument"
        assert not target.any()
    with pytest.raises(penstock.Error, match="row 1: .*leave|out of"):
        _core.fill_boxes(context, target, table_of([0, 10, 1], [95, 6, 1]), b"1")
    assert not target.any()
    _core.copy_boxes(context, target, source, table_of([90, 90, 10, 1, 1], [100, 0, 0, 1, 1]), 1)
    assert target[99] == 99
    assert not target[:90].any()


def test_wrong_tables_are_refused(context: _core.Context) -> None:
    memory = np.zeros(100, np.uint8)
    wide = np.zeros((4, 10), np.int64)
    for table, word in [
        (wide[:, :6], "6 columns"),
        (wide[:, ::2], "not contiguous"),
        (np.zeros(5, np.int64), "1 dimensions"),
        (np.zeros((1, 5), np.int32), "not int64"),
        (np.zeros((1, 5), np.uint64), "not int64"),
        (np.zeros((1, 5), ">i8"), "not int64"),
        ([[0, 0, 1, 1, 1]], "no table"),
        (np.zeros((1, 1), np.int64), "1 columns"),
        (None, "no table"),
    ]:
        with pytest.raises(penstock.Error, match=word):
            _core.copy_boxes(context, memory, memory, np.ascontiguousarray(table) if word == "6 columns" else table, 1)
    for item_bytes, swap in ((0, 0), (4, 3), (6, 4)):
        with pytest.raises(penstock.Error, match="row 0: "):
            _core.copy_boxes(context, memory, memory, table_of([0, 50, 1, 8, 8]), item_bytes, swap)
    with pytest.raises((BufferError, penstock.Error)):
        _core.copy_boxes(context, bytes(10), memory, table_of([0, 0]), 1)
    _core.copy_boxes(context, memory, memory, np.zeros((0, 5), np.int64), 1)


def test_a_table_needs_no_numpy(context: _core.Context) -> None:
    target = bytearray(4)
    row = memoryview((0).to_bytes(8, "little") + b"".join(n.to_bytes(8, "little", signed=True) for n in (3, 4, 1, -1)))
    _core.copy_boxes(context, target, b"abcd", row.cast("q", (1, 5)), 1)
    assert target == b"dcba"


def test_ten_thousand_small_boxes_are_quick(context: _core.Context) -> None:
    device = _core.allocate(context, 8 << 20, "device", "gpu")
    rows = np.zeros((10_000, 11), np.int64)
    rows[:, 0] = np.arange(10_000) * 200
    rows[:, 1] = (4 << 20) + np.arange(10_000)[::-1] * 200
    rows[:, 2:] = [2, 3, 4, 60, 20, 4, 60, 20, 5]
    start = time.perf_counter()
    _core.copy_boxes(context, device, device, rows, 4)
    assert time.perf_counter() - start < 1


@pytest.fixture
def files(context: _core.Context, tmp_path: Path) -> list[_core.File]:
    opened = []
    for i in range(3):
        (tmp_path / str(i)).write_bytes(random.Random(i).randbytes(1_000_000))
        opened.append(_core.open(context, tmp_path / str(i), mode="read_write"))
    return opened


def test_a_table_of_ranges_is_one_transfer(context: _core.Context, files: list[_core.File], tmp_path: Path) -> None:
    content = [np.fromfile(tmp_path / str(i), np.uint8) for i in range(3)]
    numbers = random.Random(4)
    rows, at, expected = [], 0, bytearray()
    for _ in range(10_000):
        size = numbers.randint(0, 200)
        row = [numbers.randrange(3), numbers.randrange(1_000_000 - 200), at, size]
        rows.append(row)
        expected += content[row[0]][row[1] : row[1] + size].tobytes()
        at += size
    table = np.array(rows, np.int64)
    buffer = _core.allocate(context, at, "device", "none")
    transfer = _core.start_table(context, "read", files, buffer, table)
    transfer.result().or_throw()
    assert bytes(memoryview(buffer)) == expected
    best = 1.0
    for _ in range(5):
        start = time.perf_counter()
        transfer = _core.start_table(context, "read", files, buffer, table, path="buffered")
        best = min(best, time.perf_counter() - start)
        transfer.result().or_throw()
    assert best < 0.05, f"{best * 1e3:.1f} ms to start 10 000 ranges"  # 3 ms on a quiet core
    _core.start_table(context, "write", files, buffer, table_of([2, 10, 0, 100])).result().or_throw()
    assert (tmp_path / "2").read_bytes()[10:110] == expected[:100]


def test_ranges_that_make_no_sense_are_refused_by_row(context: _core.Context, files: list[_core.File]) -> None:
    memory = np.zeros(1000, np.uint8)
    for row in (
        [3, 0, 0, 1],
        [-1, 0, 0, 1],
        [0, -1, 0, 1],
        [0, 0, -1, 1],
        [0, 0, 0, -1],
        [0, 0, 990, 11],
        [0, 0, 1001, 0],
        [0, 0, 2**63 - 1, 2**63 - 1],
    ):
        with pytest.raises(penstock.Error, match="row 1: "):
            _core.start_table(context, "read", files, memory, table_of([0, 0, 0, 1], row))
    with pytest.raises(penstock.Error, match="5 columns"):
        _core.start_table(context, "read", files, memory, table_of([0, 0, 0, 1, 1]))
    with pytest.raises(penstock.Error, match="direction"):
        _core.start_table(context, "up", files, memory, table_of([0, 0, 0, 1]))
    with pytest.raises(TypeError):
        _core.start_table(context, "read", files, memory, table_of([0, 0, 0, 1]), colour=1)


def test_streams_of_others(context: _core.Context) -> None:
    _core.synchronize_stream(context, None)
    _core.synchronize_stream(context, 0)
    with pytest.raises(penstock.Error, match="12345"):
        _core.synchronize_stream(context, 12345)


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
    for _ in range(1000):  # capsules that nobody consumes let the buffer go
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
