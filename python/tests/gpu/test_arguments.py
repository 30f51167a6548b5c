"""Arguments of penstock.gpu: sizes as numbers or texts; what does not fit is refused in words that say what to give."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gpu_rig import DEVICE, ROWS, WIDTH, equal, make

import penstock as ps
from penstock.gpu import OutOfRange


@pytest.fixture
def table() -> np.ndarray:
    return np.random.default_rng(5).random((ROWS, WIDTH), np.float32)


@pytest.fixture
def path(tmp_path: Path, table: np.ndarray) -> Path:
    table.tofile(tmp_path / "rows.bin")
    return tmp_path / "rows.bin"


def test_what_does_not_fit_is_refused(path: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty.bin"
    empty.touch()
    wrong: list[tuple[str, type[Exception], Callable[[], Any]]] = [
        ("No such file", ps.Error, lambda: make(tmp_path / "absent.bin")),
        ("it is a folder", ps.Error, lambda: make(tmp_path)),
        ("not a whole number of rows", ps.Error, lambda: make(path, (-1, 7, 11))),
        ("there are 396000", ps.Error, lambda: make(path, (ROWS + 1, WIDTH))),
        ("is not in the", ps.Error, lambda: make(path, offset_bytes=1 << 30)),
        ("no dimensions|without dimensions", ValueError, lambda: make(path, ())),
        ("the name of a file is .* not NoneType", TypeError, lambda: make(None)),  # type: ignore[arg-type]
        ("the name of a file is .* not int", TypeError, lambda: make([5])),  # type: ignore[arg-type]
        ("5 is not an array: give a list", TypeError, lambda: ps.gpu.open_many([5], device=DEVICE)),
        ("1 to 8 of their fields", TypeError, lambda: ps.gpu.open_many([()], device=DEVICE)),
        ("1 to 8 of their fields", TypeError, lambda: ps.gpu.open_many([(path,) * 9], device=DEVICE)),
        ("takes a list of arrays, not 5", TypeError, lambda: ps.gpu.open_many(5)),  # type: ignore[arg-type]
        ("takes a list of arrays", TypeError, lambda: ps.gpu.open_many(str(path), device=DEVICE)),
        ("those of a known format", ps.Error, lambda: ps.gpu.open_many([path], device=DEVICE)),
        ("at most 256", ps.Error, lambda: make(path, threads=257)),
        ("power of two", ps.Error, lambda: make(path, page_bytes=3000)),
        ("power of two", ps.Error, lambda: make(path, page_bytes=4 << 20)),
        ("room for at least one page", ps.Error, lambda: make(path, cache_bytes=4095)),
        ("no policy 'lru'; use one of", ps.Error, lambda: make(path, policy="lru")),
        ("no way to fetch 'sectors'; use one of", ps.Error, lambda: make(path, fetch="sectors")),
        ("a timeout of no time", ps.Error, lambda: make(path, timeout=0)),
        ("slots; give 1 to 16384", ps.Error, lambda: make(path, slots=16385)),
        ("page_bytes must be .* '4 KiB', not float", TypeError, lambda: make(path, page_bytes=4096.0)),
        ("cache_bytes must be .*, not NoneType", TypeError, lambda: make(path, cache_bytes=None)),
        ("offset_bytes must be .*, not list", TypeError, lambda: make(path, offset_bytes=[4])),
        ("timeout", ValueError, lambda: make(path, timeout=-1)),
        ("threads", ValueError, lambda: make(path, threads=-1)),
        ("no option 'pages'", TypeError, lambda: make(path, pages=3)),
        ("neither 'r' nor 'r\\+'", ValueError, lambda: make(path, mode="w")),
        ("known are", TypeError, lambda: ps.gpu.open(path, "float31", device=DEVICE)),
        ("need dtype=", TypeError, lambda: ps.gpu.open(path, shape=(3,), device=DEVICE)),
        ("those of a known format", ps.Error, lambda: ps.gpu.open(path, device=DEVICE)),
    ]
    for words, kind, action in wrong:
        with pytest.raises(kind, match=words):
            action()
    with make(empty) as rows:
        assert rows.shape == (0, WIDTH) and rows[:].shape == (0, WIDTH) and rows.gather([]).shape == (0, WIDTH)
        with pytest.raises(OutOfRange):
            rows[0]


@pytest.mark.parametrize("name", ["page_bytes", "cache_bytes", "offset_bytes", "stripe_bytes", "threads", "slots"])
def test_truth_is_no_number(path: Path, name: str) -> None:
    with pytest.raises(TypeError, match=f"^{name} must be a whole number.*not bool$"):
        make(path, **{name: True})


def test_sizes_are_numbers_or_texts(path: Path, table: np.ndarray) -> None:
    with make(path, (-1,), page_bytes="8 KiB", cache_bytes="96 KiB", offset_bytes="1KiB", stripe_bytes="8KiB") as rows:
        assert rows.stats()["page_bytes"] == 8192 and rows.stats()["pages"] == 12
        assert rows.offset_bytes == 1024 and equal(rows[:], table.ravel()[256:])


def test_kernels_are_given_elements_that_they_can_name(path: Path) -> None:
    for offset, dtype, there in (
        (0, "f4", True),
        (8, "f4", True),
        (3, "f4", False),
        (4, "f8", False),
        (3, "u1", True),
        (3, [("a", "<i4"), ("b", "u1")], True),  # its members are the kernel's affair
    ):
        with ps.gpu.open(path, np.dtype(dtype), (20,), offset_bytes=offset, device=DEVICE) as rows:
            assert rows[:].to_numpy().tobytes() == path.read_bytes()[offset : offset + rows.nbytes]
            if there:
                assert rows.ref
                continue
            with pytest.raises(
                ps.Error, match=f"begin at byte {offset}, which is not a multiple.*open it as uint8"
            ) as bad:
                rows.ref  # noqa: B018
            assert bad.value.code == "unsupported" and bad.value.file == str(path)
