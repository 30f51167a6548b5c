"""Szip: the cores give what libaec behind the HDF5 library gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps

h5py = pytest.importorskip("h5py")
from h5py import h5d, h5p, h5s, h5t, h5z  # noqa: E402

pytestmark = pytest.mark.skipif(
    not (h5z.filter_avail(h5z.FILTER_SZIP) and h5z.get_filter_info(h5z.FILTER_SZIP) & h5z.FILTER_CONFIG_ENCODE_ENABLED),
    reason="the HDF5 library of h5py writes no szip",
)
KINDS = ["u1", "i1", "<u2", ">i2", "<i4", ">u4", "<f4", ">f4", "<i8", ">f8"]
SHAPES = [((300,), (64,)), ((40, 13), (16, 13)), ((70, 50), (35, 50)), ((5, 6, 9), (3, 6, 9)), ((9000,), (9000,))]
CODINGS = [(32, 8), (4, 8), (32, 2), (32, 32), (4, 32), (32, 10), (4, 6)]  # option (32: nn, 4: ec), pixels of a block
CONTENTS = ("zeros", "steps", "smooth", "random", "sparse")


def content(kind: str, shape: tuple[int, ...], how: str) -> np.ndarray:
    number, seed = np.arange(np.prod(shape, dtype=int)), np.random.default_rng(1)
    if how == "random":
        return np.frombuffer(seed.bytes(number.size * np.dtype(kind).itemsize), kind).reshape(shape)
    made = {
        **{"zeros": number * 0, "steps": number // 700, "smooth": np.sin(number / 20) * 100 + number % 3},
        **{"sparse": (number % 401 == 0) * 77},
    }[how]
    return made.astype("i8" if np.dtype(kind).kind in "iu" else kind).astype(kind).reshape(shape)


def szip(file: Any, name: str, stored: h5t.TypeID, chunks: tuple[int, ...], how: dict[str, Any]) -> h5d.DatasetID:
    create = h5p.create(h5p.DATASET_CREATE)
    create.set_chunk(chunks)
    if how.get("shuffle"):
        create.set_shuffle()
    create.set_szip(*how["coding"])
    if how.get("checksum"):
        create.set_fletcher32()
    return h5d.create(file.id, name.encode(), stored, h5s.create_simple(how["shape"]), create)


@pytest.mark.parametrize("coding", CODINGS)
def test_all_types_shapes_and_contents_are_what_hdf5_reads(tmp_path: Path, coding: tuple[int, int]) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for kind in KINDS:
            for at, (shape, chunks) in enumerate(SHAPES):
                for how in CONTENTS:
                    more = {"shuffle": at == 1, "checksum": at == 2}
                    made = szip(
                        file,
                        f"{kind}{at}{how}",
                        h5t.py_create(np.dtype(kind)),
                        chunks,
                        {"shape": shape, "coding": coding, **more},
                    )
                    made.write(h5s.ALL, h5s.ALL, content(kind, shape, how))
    with h5py.File(tmp_path / "x.h5") as stock, ps.open(tmp_path / "x.h5", device="host") as file:
        before = 0
        for name, dataset in stock.items():
            expected = dataset[...]
            assert file[name][...].to_numpy().tobytes() == expected.astype(expected.dtype.newbyteorder("=")).tobytes()
        decoders = file.evidence()["formats"]["decoders"]
        before = sum(decoders.values())
        assert decoders["host by Penstock"] > before * 0.7, "but chunks that szip did not shorten, and edges in doubt"


def test_odd_integers_are_unpacked_too(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for bits, base in ((12, h5t.STD_I16LE), (12, h5t.STD_U16BE), (24, h5t.STD_I32LE), (20, h5t.STD_U32BE)):
            stored = base.copy()
            stored.set_precision(bits)
            made = szip(file, f"{bits}{base.dtype}", stored, (32, 50), {"shape": (64, 50), "coding": (32, 8)})
            low = 1 << bits - 1 if base.dtype.kind == "i" else 0
            data = (np.arange(3200).reshape(64, 50) * 7) % (1 << bits) - low
            made.write(h5s.ALL, h5s.ALL, data.astype(base.dtype))
    with h5py.File(tmp_path / "x.h5") as stock, ps.open(tmp_path / "x.h5", device="host") as file:
        for name, dataset in stock.items():
            assert np.array_equal(file[name][...], dataset[...]), name
        assert set(file.evidence()["formats"]["decoders"]) == {"host by Penstock"}


def test_a_chunk_that_was_cut_is_an_error_that_names_it(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        made = szip(file, "d", h5t.STD_I16LE, (64,), {"shape": (128,), "coding": (32, 8)})
        made.write(h5s.ALL, h5s.ALL, np.arange(128, dtype="<i2"))
        packed = made.read_direct_chunk((64,))[1]
        made.write_direct_chunk((64,), packed[: len(packed) // 2])
    with ps.open(tmp_path / "x.h5", device="host") as file:
        with pytest.raises(ps.Error, match=r"chunk at \[64\] is damaged: filter szip: it is damaged"):
            file["d"].read()
        assert np.array_equal(file["d"][:64], np.arange(64))
