"""Stored arrays that are dealt out over several files: rows compared with NumPy, statistics of each file, and what does
not fit together refused in words.

On the device that PENSTOCK_TEST_DEVICE names, else on the emulated one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.gpu import Source

DEVICE = os.environ.get("PENSTOCK_TEST_DEVICE", "host")
STRIPE, WIDTH, ROWS = 16 << 10, 33, 3001  # 396132 bytes: 24 stripes and a part; rows straddle stripes


@pytest.fixture
def table() -> np.ndarray:
    return np.random.default_rng(5).random((ROWS, WIDTH), np.float32)


def deal(folder: Path, data: bytes, files: int, stripe: int = STRIPE) -> list[Path]:
    """Cuts data into stripes and gives each to the next file."""
    names = [folder / f"part{i}.bin" for i in range(files)]
    stripes = [data[at : at + stripe] for at in range(0, len(data), stripe)]
    for i, name in enumerate(names):
        name.write_bytes(b"".join(stripes[i::files]))
    return names


def joined(names: list[Path], stripe: int = STRIPE) -> bytes:
    parts = [name.read_bytes() for name in names]
    rounds = range(0, max(map(len, parts)), stripe)
    return b"".join(part[at : at + stripe] for at in rounds for part in parts)


def make(names: list[Path], **options: Any) -> ps.gpu.StoredArray:
    """Through a cache of a quarter of the array."""
    settings = {"device": DEVICE, "cache_bytes": 96 << 10, "stripe_bytes": STRIPE} | options
    return ps.gpu.open(names, "float32", (-1, WIDTH), **settings)


@pytest.mark.parametrize("files", [1, 2, 3, 5])
def test_rows_are_read_and_written_where_they_belong(tmp_path: Path, table: np.ndarray, files: int) -> None:
    names = deal(tmp_path, table.tobytes(), files)
    random = np.random.default_rng(files)
    with make(names, mode="r+") as rows:
        assert rows.shape == table.shape and rows.files == tuple(map(str, names)) and rows.name == str(names[0])
        for _ in range(10):
            start, count = int(random.integers(0, ROWS - 300)), int(random.integers(1, 300))
            table[start : start + count] = values = random.random((count, WIDTH), np.float32)
            rows.write(start, values)
            picked = random.integers(0, ROWS, 100)
            assert np.array_equal(rows.gather(picked).to_numpy(), table[picked])
        assert np.array_equal(rows[:].to_numpy(), table)
    assert joined(names) == table.tobytes()


def test_control_other_stripes_are_other_rows(tmp_path: Path, table: np.ndarray) -> None:
    data = table.tobytes()[: 24 * STRIPE]
    names = deal(tmp_path, data, 3)
    for stripe, right in ((STRIPE, True), ("8 KiB", False)):
        with ps.gpu.open(names, "uint8", device=DEVICE, stripe_bytes=stripe) as rows:
            assert (rows[:].to_numpy().tobytes() == data) is right


def test_a_header_and_several_arrays(tmp_path: Path, table: np.ndarray) -> None:
    names = deal(tmp_path, b"h" * 77 + table.tobytes(), 2)
    np.arange(5000).tofile(tmp_path / "ids.bin")
    striped = Source(names, "float32", (ROWS, WIDTH), offset_bytes=77, stripe_bytes="16 KiB")
    rows, ids = ps.gpu.open_many([striped, (tmp_path / "ids.bin", int)], device=DEVICE, cache_bytes="64 KiB")
    with rows, ids:
        assert np.array_equal(rows[[3000, 4]].to_numpy(), table[[3000, 4]])
        assert ids[7].to_numpy() == 7
        two, one = rows.stats()["arrays"]
        assert two["stripe_bytes"] == STRIPE and len(two["files"]) == 2
        assert one["stripe_bytes"] is None and len(one["files"]) == 1


def test_statistics_tell_files_apart(tmp_path: Path, table: np.ndarray) -> None:
    names = deal(tmp_path, table.tobytes(), 3)
    with make(names, cache_bytes="1 MiB") as rows:
        rows.read()
        stats = rows.stats()
    files = stats["arrays"][0]["files"]
    assert [one["file"] for one in files] == [str(name) for name in names]
    for one, name in zip(files, names, strict=True):
        served = [one["served"][source] for source in ("mapping", "buffered", "direct")]
        assert one["bytes"] == name.stat().st_size
        assert sum(way["bytes"] for way in served) + one["gpu_bytes"] == one["bytes"]
        assert sum(way["requests"] for way in served) + one["served"]["gpu_pages"] == -(-one["bytes"] // 4096)
        assert one["failed_requests"] == 0
    assert stats["served"]["gpu_pages"] == sum(one["served"]["gpu_pages"] for one in files)


def test_what_does_not_fit_together_is_refused(tmp_path: Path, table: np.ndarray) -> None:
    names = deal(tmp_path, table.tobytes(), 3)
    link = tmp_path / "link.bin"
    link.symlink_to(names[0])
    wrong: list[tuple[str, type[Exception], Callable[[], Any]]] = [
        ("part3.bin: No such file", ps.Error, lambda: make([*names, tmp_path / "part3.bin"])),
        ("it is a folder", ps.Error, lambda: make([*names, tmp_path])),
        ("their order", ps.Error, lambda: make([names[2], names[1], names[0]])),
        ("part0.bin and 1 more: .* not a whole number of rows", ps.Error, lambda: make(names[::2])),
        (
            "link.bin: it is the same file as .*part0",
            ps.Error,
            lambda: ps.gpu.open([names[0], link], "u1", device=DEVICE),
        ),
        ("stripes of 2048 bytes for pages of 4096", ps.Error, lambda: make(names, stripe_bytes=2048)),
        ("give a power of two", ps.Error, lambda: make(names, stripe_bytes=10_000)),
        ("stripe_bytes", ValueError, lambda: make(names, stripe_bytes=-1)),
        ("no size|not a number|parse", ps.Error, lambda: make(names, stripe_bytes="many")),
        ("no file is named", ValueError, lambda: make([])),
        ("needs dtype=", TypeError, lambda: ps.gpu.open(names, device=DEVICE)),
        ("there are 396132", ps.Error, lambda: ps.gpu.open(names, "f4", (ROWS + 1, WIDTH), stripe_bytes=STRIPE)),
    ]
    for words, kind, action in wrong:
        with pytest.raises(kind, match=words):
            action()
    os.truncate(names[1], names[1].stat().st_size - 1)
    with pytest.raises(ps.Error, match="and whole") as caught:
        ps.gpu.open(names, "uint8", device=DEVICE, stripe_bytes=STRIPE)
    assert caught.value.file == str(names[1])


def test_a_file_cut_short_underneath_is_named(tmp_path: Path, table: np.ndarray) -> None:
    names = deal(tmp_path, table.tobytes(), 3)
    with make(names, map=False) as rows:
        os.truncate(names[1], STRIPE)
        with pytest.raises(ps.Error, match="shorter than it was") as caught:
            rows.read()
        assert caught.value.code == "end_of_file" and caught.value.file == str(names[1])
        assert caught.value.offset_bytes >= STRIPE and caught.value.offset_bytes % 4096 == 0
        assert np.array_equal(rows[:100].to_numpy(), table[:100])
