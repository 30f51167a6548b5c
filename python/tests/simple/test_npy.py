"""NPY: what NumPy writes is read, what is written NumPy reads; anything else is told."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from format_kit import (
    check_reads_only_what_is_wanted,
    check_refuses_wrong_out,
    check_round_trips,
    check_selections,
    check_survives,
    mutations,
    sample,
)

import penstock

PARTICLE = np.dtype([("x", "<f4"), ("id", ">i8"), ("v", "<f8", (3,))], align=True)


def test_round_trips(tmp_path: Path) -> None:
    check_round_trips(tmp_path, ".npy", stock=np.load)


def test_data_begin_at_a_page(tmp_path: Path) -> None:
    penstock.save(tmp_path / "x.npy", np.arange(10), "host")
    with penstock.open(tmp_path / "x.npy", device="host") as file:
        assert file["data"].extents() == [(str(tmp_path / "x.npy"), 4096, 80)]


def test_selections_and_out(tmp_path: Path) -> None:
    for number, expected in enumerate((sample((31, 5, 4), "f4"), np.asfortranarray(sample((13, 9), ">f8")))):
        np.save(tmp_path / f"{number}.npy", expected)
        with penstock.open(tmp_path / f"{number}.npy", device="host") as file:
            check_selections(file, "data", expected)
    with penstock.open(tmp_path / "0.npy", device="host") as file:
        check_refuses_wrong_out(file["data"])


def test_only_what_is_wanted_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, sample((1000, 2000), "f4"))
    for index in (slice(10, 20), (slice(None), slice(0, 5)), (slice(None, None, 100), 3), 5, (5, 5), ...):
        check_reads_only_what_is_wanted(path, "data", index, path.stat().st_size)


def test_compound_elements(tmp_path: Path) -> None:
    expected = np.zeros(100, PARTICLE)
    expected["x"], expected["id"], expected["v"] = np.arange(100), np.arange(100), np.arange(300).reshape(-1, 3)
    np.save(tmp_path / "p.npy", expected)
    with penstock.open(tmp_path / "p.npy", device="host") as file:
        dataset = file["data"]
        assert np.array_equal(np.asarray(dataset.field("x")), expected["x"])
        assert np.array_equal(np.asarray(dataset.field("id", slice(10, 20))), expected["id"][10:20])
        whole = dataset.read()
    assert np.array_equal(np.asarray(whole), expected)
    penstock.save(tmp_path / "q.npy", whole)
    again = np.load(tmp_path / "q.npy")
    assert np.array_equal(again, expected)


def write(path: Path, header: str, content: bytes = bytes(80), version: int = 1) -> Path:
    raw = header.encode("latin-1") + b"\n"
    size = len(raw).to_bytes(2 if version == 1 else 4, "little")
    path.write_bytes(b"\x93NUMPY" + bytes([version, 0]) + size + raw + content)
    return path


@pytest.mark.parametrize(
    ("header", "word"),
    [
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (11,)}", "promises 88 bytes"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}", "shape"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (True,)}", "shape"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387903, 3)}", "more than a file"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': 10}", "shape"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': " + str((1,) * 65) + "}", "shape"),
        ("{'descr': '<f8', 'fortran_order': 0, 'shape': (1,)}", "fortran_order"),
        ("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "Python objects.*allow_pickle=True"),
        ("{'descr': '<U50', 'fortran_order': False, 'shape': (1,)}", "promises 200 bytes"),
        ("{'descr': '<M8[parsec]', 'fortran_order': False, 'shape': (1,)}", "type"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (10L + 1L,)}", "not understood"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (L,)}", "not understood"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (1L if print(1) else 2L,)}", "not understood"),
        ("{'descr': '|V0', 'fortran_order': False, 'shape': (1,)}", "0 bytes"),
        ("{'descr': 'f8,f8', 'fortran_order': False, 'shape': (1,)}", "type"),
        ("{'descr': '<f8', 'shape': (1,)}", "keys"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), 'more': 1}", "keys"),
        ("{'descr': __import__('os').system('true'), 'fortran_order': False, 'shape': (1,)}", "not understood"),
        ("[1, 2]", "no dictionary"),
        ("{" + "[" * 5000, "not understood"),
        ("", "no dictionary"),
    ],
)
def test_wrong_headers_are_told_with_the_file(tmp_path: Path, header: str, word: str) -> None:
    with pytest.raises(penstock.Error, match=word) as caught:
        penstock.open(write(tmp_path / "x.npy", header), device="host")
    assert "x.npy" in str(caught.value)


def test_versions_and_sizes(tmp_path: Path) -> None:
    good = "{'descr': '<f8', 'fortran_order': False, 'shape': (10,)}"
    path = write(tmp_path / "x.npy", good, version=4)
    with pytest.raises(penstock.Error, match="version 4"):
        penstock.open(path, device="host")
    path.write_bytes(b"\x93NUMPY\x02\x00\xff\xff\xff\xff")
    with pytest.raises(penstock.Error, match="limit"):
        penstock.open(path, device="host")
    for size in (0, 5, 8, 9, 10, 11, 40):
        whole = write(tmp_path / "y.npy", good).read_bytes()
        path.write_bytes(whole[:size])
        with pytest.raises(penstock.Error):
            penstock.open(path, device="host")


def test_one_array_a_file(tmp_path: Path) -> None:
    with pytest.raises(penstock.Error, match="one array"), penstock.create(tmp_path / "x.npy", device="host") as file:
        file["a"] = np.arange(3)
        file["b"] = np.arange(3)
    with pytest.raises(penstock.Error, match="none was written"), penstock.create(tmp_path / "x.npy", device="host"):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore")  # Python warns of strange literals
def test_damaged_files_give_data_or_an_error_and_take_little_memory(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", sample((10, 10), "f4"))
    np.save(tmp_path / "p.npy", np.zeros(10, PARTICLE))
    survived = 0
    tracemalloc.start()
    for name in ("x.npy", "p.npy"):
        plain = (tmp_path / name).read_bytes()
        for raw in mutations(plain, 400, 1):
            survived += check_survives(tmp_path / "m.npy", raw)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0 < survived < 800
    assert peak < 64 << 20
