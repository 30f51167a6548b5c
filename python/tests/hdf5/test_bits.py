"""HDF5's filters of bits, scaleoffset and nbit: the cores give what the HDF5 library gives, to the bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps

h5py = pytest.importorskip("h5py")
from h5py import h5d, h5p, h5s, h5t  # noqa: E402

INTEGERS = [f"{order}{sign}{size}" for size in (1, 2, 4, 8) for sign in "iu" for order in "<>"]
FLOATS = ["<f4", ">f4", "<f8", ">f8"]
SHAPES = [((100,), (37,)), ((13, 7), (5, 3)), ((4, 3, 5), (2, 3, 4))]
OURS = {"host by Penstock"}


def integers(kind: str, shape: tuple[int, ...], spread: int) -> np.ndarray:
    """About `spread` apart, near an end of what the type holds."""
    bounds, number = np.iinfo(kind), np.arange(np.prod(shape, dtype=int))
    near = int(bounds.min) // 2 if bounds.min else int(bounds.max) // 3
    apart = number * 7919 % max(1, min(spread, int(bounds.max) // 2))
    return np.array([near + int(one) for one in apart], kind).reshape(shape)


def floats(kind: str, shape: tuple[int, ...]) -> np.ndarray:
    number = np.arange(np.prod(shape, dtype=int))
    return (np.sin(number) * 300 - 1000).astype(kind).reshape(shape)


def check(path: Path, names: int) -> None:
    """All datasets are as h5py reads them, whole and in part, and Penstock decoded all of them."""
    with h5py.File(path) as stock, ps.open(path, device="host") as file:
        assert len(file) == names
        for name, dataset in stock.items():
            for part in (..., tuple(slice(1, extent - 1) for extent in dataset.shape[:1]), -1):
                assert np.array_equal(file[name][part], dataset[part]), (name, part)
            native = dataset[...].astype(dataset.dtype.newbyteorder("="))
            assert file[name][...].to_numpy().tobytes() == native.tobytes(), name
        assert set(file.evidence()["formats"]["decoders"]) - {"host in an earlier read"} <= OURS


def test_scaled_integers_of_all_types_and_shapes(tmp_path: Path) -> None:
    made = 0
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for kind in INTEGERS:
            for shape, chunks in SHAPES:
                for spread, factor in ((1, 0), (100, 0), (10**6, 0), (10, 5), (1 << 62, 0), (9, 8 * int(kind[2]))):
                    data, fill = integers(kind, shape, spread), 5 if made % 2 else None
                    parts = (
                        shape if factor == 8 * int(kind[2]) else chunks
                    )  # an edge chunk of full size is left to HDF5
                    if fill is not None:
                        data.flat[::3] = fill
                    file.create_dataset(
                        str(made), data=data, chunks=parts, scaleoffset=factor, fillvalue=fill, shuffle=made % 5 == 1
                    )
                    made += 1
    check(tmp_path / "x.h5", made)


@pytest.mark.parametrize("more", [{}, {"compression": "lzf"}, {"shuffle": True}])
def test_scaled_floats_of_all_types_and_shapes(tmp_path: Path, more: dict[str, Any]) -> None:
    made = 0
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for kind in FLOATS:
            for shape, chunks in SHAPES:
                for decimals in (0, 1, 3, 7, 15):
                    data, fill = floats(kind, shape), -12.25 if made % 2 else None
                    if fill is not None:
                        data.flat[::3] = fill
                    made_here = file.create_dataset(
                        str(made), shape, kind, chunks=chunks, scaleoffset=decimals, fillvalue=fill, **more
                    )
                    made_here[: shape[0] - 1] = data[:-1]
                    made += 1
    check(tmp_path / "x.h5", made)


def odd_type(base: h5t.TypeID, bits: int, offset: int) -> h5t.TypeID:
    made = base.copy()
    made.set_precision(bits)
    made.set_offset(offset)
    return made


ODD = {
    f"{base}-{bits}-{offset}": (getattr(h5t, base), bits, offset)
    for base, size in (
        *(("STD_I8LE", 8), ("STD_U8LE", 8), ("STD_I16LE", 16), ("STD_U16BE", 16), ("STD_I16BE", 16)),
        *(("STD_I32LE", 32), ("STD_U32BE", 32), ("STD_I64LE", 64), ("STD_I64BE", 64), ("STD_U64LE", 64)),
    )
    for bits in (1, 3, 8, 12, 17, 31, 48, 60, 63, 64)
    for offset in (0, 2, 9)
    if size // 2 < bits <= size - offset  # else HDF5 2 takes the file for a damaged one
}


def nbit(file: Any, name: str, stored: h5t.TypeID, how: dict[str, Any] | None = None) -> Any:
    """A dataset of 41 elements in chunks of 16, of which the last is not written."""
    how = {"filters": ("nbit",), **(how or {})}
    create = h5p.create(h5p.DATASET_CREATE)
    create.set_chunk((16,))
    for one in how["filters"]:
        {"nbit": lambda: create.set_filter(5), "shuffle": create.set_shuffle, "sum": create.set_fletcher32}.get(
            one, lambda: create.set_deflate(2)
        )()
    if "fill" in how:
        create.set_fill_value(how["fill"])
    return h5d.create(file.id, name.encode(), stored, h5s.create_simple(how.get("shape", (41,))), create)


@pytest.mark.parametrize("filters", [("nbit",), ("nbit", "gzip"), ("nbit", "sum"), ("gzip",), ("shuffle", "nbit"), ()])
def test_odd_integers_with_and_without_nbit(tmp_path: Path, filters: tuple[str, ...]) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for at, (name, (base, bits, offset)) in enumerate(ODD.items()):
            plain = base.dtype
            low = -(1 << bits - 1) if plain.kind == "i" else 0
            data = np.array([low + (i * i * 2654435761) % (1 << bits) for i in range(32)], plain)
            how = {"filters": filters, **({"fill": np.array(data[3])} if at % 2 else {})}
            made = nbit(file, name, odd_type(base, bits, offset), how)
            made.write(h5s.create_simple((32,)), _first(made, 32), data)
    with h5py.File(tmp_path / "x.h5") as stock, ps.open(tmp_path / "x.h5", device="host") as file:
        for name in ODD:
            assert np.array_equal(file[name][...], stock[name][...]), name
            assert np.array_equal(file[name][3:19], stock[name][3:19]), name
        assert set(file.evidence()["formats"]["decoders"]) - {"host in an earlier read"} <= {
            *OURS,
            *(["host by libdeflate"] if "gzip" in filters else []),
        }


def _first(dataset: h5d.DatasetID, count: int) -> Any:
    space = dataset.get_space()
    space.select_hyperslab((0,), (count,))
    return space


def test_types_of_all_bits_went_through_nbit_unpacked(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for kind in (*INTEGERS, *FLOATS):
            made = nbit(file, kind, h5t.py_create(np.dtype(kind)), {"shape": (32,)})
            made.write(h5s.ALL, h5s.ALL, np.arange(32).astype(kind))
    check(tmp_path / "x.h5", len(INTEGERS) + len(FLOATS))


def test_compounds_arrays_and_floats_are_unpacked_as_hdf5_has_them(tmp_path: Path) -> None:
    """The elements as they are stored, which Penstock leaves to HDF5 to make values of: only the filter is compared."""
    from penstock import _core

    narrow = h5t.IEEE_F32LE.copy()
    narrow.set_fields(26, 20, 6, 7, 13)
    narrow.set_offset(7)
    narrow.set_precision(20)
    narrow.set_ebias(31)
    twelve, wide = odd_type(h5t.STD_I16BE, 12, 3), odd_type(h5t.STD_U64LE, 40, 11)
    compound = h5t.create(h5t.COMPOUND, 40)
    text = h5t.C_S1.copy()
    text.set_size(5)
    inner = h5t.create(h5t.COMPOUND, 7)
    inner.insert(b"a", 0, odd_type(h5t.STD_U8LE, 3, 2))
    inner.insert(b"b", 2, narrow)
    three = h5t.array_create(inner, (3,))
    for name, at, kind in ((b"t", 0, twelve), (b"s", 3, text), (b"w", 8, wide), (b"i", 18, three)):
        compound.insert(name, at, kind)
    types = {
        **{"narrow": narrow, "array": h5t.array_create(twelve, (2, 3)), "compound": compound},
        **{"texts": h5t.array_create(text, (2,)), "nested": h5t.array_create(h5t.array_create(wide, (2,)), (3,))},
    }
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for name, stored in types.items():
            seed = np.random.default_rng(1)
            content = seed.integers(0, 256, (41, stored.get_size()), np.uint8)
            nbit(file, name, stored).write(h5s.ALL, h5s.ALL, content, stored)
    with h5py.File(tmp_path / "x.h5") as file:
        for name, stored in types.items():
            made, size = file[name].id, stored.get_size()
            plain = np.zeros((41, size), np.uint8)
            made.read(h5s.ALL, h5s.ALL, plain, stored)
            pipeline = _core.make_pipeline([("nbit", made.get_create_plist().get_filter(0)[2])], 16 * size)
            assert decoded(pipeline, made.read_direct_chunk((16,))[1]) == plain[16:32].tobytes(), name


def decoded(pipeline: Any, packed: bytes) -> bytes:
    from penstock import _core

    out = np.zeros(pipeline.chunk_bytes, np.uint8)
    boxes, table = np.array([[0, 0, out.size, 1, 1]], np.int64), np.array([[0, len(packed), 0]], np.int64)
    source, context = (np.frombuffer(packed, np.uint8).copy(), table), _core.Context(device="host")
    done, _, fault = _core.decode_chunks(context, pipeline, source, (out, boxes, 1), 0, _core.Stop(), None)
    assert (done, fault) == (1, "")
    return out.tobytes()


@pytest.mark.parametrize("kind", ["scaleoffset", "nbit"])
def test_a_chunk_that_was_cut_is_an_error_that_names_it(tmp_path: Path, kind: str) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        if kind == "nbit":
            made = nbit(file, "d", odd_type(h5t.STD_I16LE, 12, 0))
            made.write(h5s.ALL, h5s.ALL, np.arange(41, dtype="<i2"))
        else:
            made = file.create_dataset("d", data=np.arange(41, dtype="<i2"), chunks=(16,), scaleoffset=0).id
        packed = made.read_direct_chunk((16,))[1]
        made.write_direct_chunk((16,), packed[: len(packed) // 2])
    with ps.open(tmp_path / "x.h5", device="host") as file:
        with pytest.raises(ps.Error, match=rf"chunk at \[16\] is damaged: filter {kind}: it") as caught:
            file["d"].read()
        assert caught.value.code == "damaged"
        assert np.array_equal(file["d"][32:], np.arange(32, 41))
