"""Strided copies and fills, and tables of ranges, with NumPy as the reference."""

from __future__ import annotations

import random
import time
import zlib
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


@pytest.fixture(params=["host", "cuda:0"])
def device(request: pytest.FixtureRequest) -> _core.Context:
    count, why = _core.cuda_devices()
    if request.param != "host" and count == 0:
        pytest.skip(why)
    return _core.Context(device=request.param)


def fetched(context: _core.Context, buffer: _core.Buffer, dtype: Any) -> Any:
    array = np.empty(buffer.bytes // np.dtype(dtype).itemsize, dtype)
    context.copy_to_host(array, buffer)
    return array


def test_boxes_in_device_memory(device: _core.Context) -> None:
    source = np.arange(10_000, dtype=np.float64)
    stored, result = _core.allocate(device, 80_000, "device", "none"), _core.allocate(device, 80_000, "device", "gpu")
    device.copy_to_device(stored, source)
    rows = [[800 * i, 80_000 - 800 * (i + 1), 100, 8, 8] for i in range(100)]
    _core.copy_boxes(device, result, stored, np.array(rows, dtype=np.int64), 8, 8)
    turned = source.reshape(100, 100)[::-1].ravel()
    assert np.array_equal(fetched(device, result, np.float64), turned.byteswap())
    _core.copy_boxes(device, result, result, table_of([0, 0, 10_000, 8, 8]), 8, 8)  # in place
    assert np.array_equal(fetched(device, result, np.float64), turned)
    _core.fill_boxes(device, result, table_of([8, 5000, 16]), np.float64(2.5))
    turned[1::2] = 2.5
    assert np.array_equal(fetched(device, result, np.float64), turned)


def test_a_gpu_moves_no_ordinary_memory(device: _core.Context) -> None:
    if device.device_info["emulated"] or device.device_info["coherent_with_host"]:
        pytest.skip("this device addresses ordinary memory")
    memory = _core.allocate(device, 100, "device", "none")
    with pytest.raises(penstock.Error, match="cannot address"):
        _core.copy_boxes(device, memory, np.zeros(100, np.uint8), table_of([0, 0, 100, 1, 1]), 1)


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
        start = time.thread_time()  # of the caller alone: others may have the cores
        transfer = _core.start_table(context, "read", files, buffer, table, path="buffered")
        best = min(best, time.thread_time() - start)
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


# -- checksums


@pytest.mark.parametrize("kind", ["adler32", "crc32"])
def test_checksums_are_those_of_zlib(kind: str) -> None:
    context = penstock.Context(device="host")
    plain = np.random.default_rng(3).bytes(700_001)
    buffer = context.allocate(len(plain))
    context._raw.copy_to_device(buffer, np.frombuffer(plain, np.uint8))
    table = np.array([[0, len(plain)], [1, 262_144], [5, 0], [699_990, 11], [700_001, 0]], np.int64)
    found = np.frombuffer(_core.checksums(context._raw, buffer, table, kind), np.uint32)
    assert found.tolist() == [getattr(zlib, kind)(plain[at : at + size]) for at, size in table]
    assert _core.checksums(context._raw, buffer, np.zeros((0, 2), np.int64), kind) == b""


def test_fletcher32_is_what_hdf5_stores_behind_a_chunk(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    context = penstock.Context(device="host")
    for size in (1, 2, 127, 65_536, 700_001):
        plain = np.random.default_rng(size).integers(0, 256, size, np.uint8)
        buffer = context.allocate(size)
        context._raw.copy_to_device(buffer, plain)
        found = np.frombuffer(_core.checksums(context._raw, buffer, np.array([[0, size]]), "fletcher32"), np.uint32)
        with h5py.File(tmp_path / "x.h5", "w") as file:
            dataset = file.create_dataset("x", data=plain, chunks=(size,), fletcher32=True)
            assert dataset.id.read_direct_chunk((0,))[1][-4:] == found.tobytes()


@pytest.mark.parametrize(
    ("table", "kind", "why"),
    [
        ([[0, 101]], "crc32", "row 0.*beyond the 100 bytes"),
        ([[0, 1], [-1, 1]], "crc32", "row 1"),
        ([[0, 1, 2]], "crc32", "3 columns"),
        ([[0, 1]], "md5", 'no kind "md5"'),
    ],
)
def test_checksums_of_what_is_not_there_are_refused(table: list[list[int]], kind: str, why: str) -> None:
    context = penstock.Context(device="host")
    with pytest.raises(penstock.Error, match=why):
        _core.checksums(context._raw, context.allocate(100), np.array(table, np.int64), kind)
