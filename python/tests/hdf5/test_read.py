"""HDF5 as stock tools write it, read through our tables with pread, compared with what h5py reads."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

h5py = pytest.importorskip("h5py")
from hdf5_kit import equal, fetch, whole  # noqa: E402

from penstock import Error, Reference  # noqa: E402
from penstock.formats.hdf5 import library as hdf5_library  # noqa: E402
from penstock.formats.hdf5.reader import Hdf5  # noqa: E402
from penstock.formats.model import Box  # noqa: E402


def numbers(*shape: int, dtype: str = "<f4") -> np.ndarray:
    return (np.arange(np.prod(shape, dtype=int)) % 251).astype(dtype).reshape(shape)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.h5"


TYPES = ["<f4", ">f4", "<f8", ">f8", "<f2", "i1", "u1", "<i2", ">i2", "<u4", ">i8", "<u8", "<c8", ">c16", "?"]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("chunks", [None, (3, 4)])
def test_numbers_of_all_types_are_where_the_table_says(path: Path, dtype: str, chunks: tuple | None) -> None:
    data = numbers(7, 9, dtype=dtype)
    with h5py.File(path, "w") as file:
        file.create_dataset("g/x", data=data, chunks=chunks)
    hdf5 = Hdf5(path)
    info = hdf5.info("g/x")
    assert np.dtype(info.dtype) == data.dtype
    assert info.shape == (7, 9)
    assert info.chunk_shape == (chunks or (7, 9))
    assert not hdf5.table("g/x", whole(info.shape)).encoded.any()
    equal(fetch(hdf5, "g/x"), data)
    equal(fetch(hdf5, "/g/x", Box((2, 3), (5, 9))), data[2:5, 3:9])


def test_layouts_without_extents_are_decoded(path: Path) -> None:
    with h5py.File(path, "w") as file:
        create = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        create.set_layout(h5py.h5d.COMPACT)
        compact = h5py.h5d.create(file.id, b"compact", h5py.h5t.STD_I32LE, h5py.h5s.create_simple((3, 5)), create)
        h5py.Dataset(compact)[...] = numbers(3, 5, dtype="<i4")
        file["scalar"] = np.float64(2.5)
        file["nothing"] = np.zeros((0, 4), "f4")
        file["null"] = h5py.Empty("f4")
    hdf5 = Hdf5(path)
    assert [hdf5.info(name).layout for name in ("compact", "scalar", "nothing", "null")] == [
        "compact",
        "contiguous",
        "contiguous",
        "empty",
    ]
    table = hdf5.table("compact", whole((3, 5)))
    assert (table.encoded.tolist(), table.bytes.tolist()) == ([True], [0])
    equal(fetch(hdf5, "compact"), numbers(3, 5, dtype="<i4"))
    equal(fetch(hdf5, "scalar"), np.float64(2.5))
    assert fetch(hdf5, "nothing") == b""
    assert (hdf5.info("null").shape, fetch(hdf5, "null")) == ((0,), b"")


@pytest.mark.parametrize(
    "filters", [{"compression": "gzip"}, {"shuffle": True}, {"fletcher32": True}, {"compression": "lzf"}]
)
def test_filtered_chunks_are_decoded(path: Path, filters: dict) -> None:
    data = numbers(20, 30)
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=data, chunks=(8, 8), **filters)
    hdf5 = Hdf5(path)
    assert hdf5.table("x", whole((20, 30))).encoded.any()  # lzf skips chunks that it cannot make smaller
    assert hdf5.info("x").filters
    equal(fetch(hdf5, "x"), data)
    equal(fetch(hdf5, "x", Box((5, 7), (19, 8))), data[5:19, 7:8])


def test_filters_of_hdf5plugin_are_found_when_needed(path: Path) -> None:
    plugin = pytest.importorskip("hdf5plugin")
    data = numbers(40, 50)
    with h5py.File(path, "w") as file:
        for name, options in {"lz4": plugin.LZ4(), "zstd": plugin.Zstd(), "bitshuffle": plugin.Bitshuffle()}.items():
            file.create_dataset(name, data=data, chunks=(16, 50), compression=options)
    hdf5 = Hdf5(path)
    for name in hdf5.names():
        assert name in hdf5.info(name).filters
        equal(fetch(hdf5, name), data)


def test_a_filter_that_is_not_there_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=numbers(4, 4), chunks=(2, 2), compression="gzip")
    monkeypatch.setattr("penstock.formats.hdf5.filters.h5z.filter_avail", lambda number: False)
    with pytest.raises(Error, match="deflate"):
        Hdf5(path).decode("x", whole((4, 4)))


def test_a_chunk_whose_filters_were_all_skipped_moves_raw(path: Path) -> None:
    data = numbers(8, 4)
    with h5py.File(path, "w") as file:
        x = file.create_dataset("x", data=data, chunks=(4, 4), compression="gzip", shuffle=True)
        x.id.write_direct_chunk((4, 0), data[4:].tobytes(), filter_mask=0b11)
        y = file.create_dataset("y", data=data, chunks=(4, 4), compression="gzip", shuffle=True)
        import zlib

        y.id.write_direct_chunk((4, 0), zlib.compress(data[4:].tobytes()), filter_mask=0b01)
    hdf5 = Hdf5(path)
    assert hdf5.table("x", whole((8, 4))).encoded.tolist() == [True, False]
    assert hdf5.table("y", whole((8, 4))).encoded.tolist() == [True, True]
    equal(fetch(hdf5, "x"), data)
    equal(fetch(hdf5, "y"), data)


def test_chunks_that_only_have_a_checksum_may_be_read_unchecked(path: Path) -> None:
    data = numbers(100)
    with h5py.File(path, "w") as file:
        x = file.create_dataset("x", data=data, chunks=(32,), fletcher32=True)
        offset = x.id.get_chunk_info(1).byte_offset
    hdf5 = Hdf5(path, skip_checksums=True)
    table = hdf5.table("x", whole((100,)))
    assert not table.encoded.any()
    assert table.bytes.tolist() == [128] * 4
    equal(fetch(hdf5, "x"), data)
    with path.open("r+b") as raw:
        raw.seek(offset)
        raw.write(b"\xff")
    with pytest.raises(Error, match="'x'.*damaged"):
        Hdf5(path).decode("x", whole((100,)))


@pytest.mark.parametrize("block", [512, 4096])
def test_offsets_are_those_of_the_file_behind_a_user_block(path: Path, block: int) -> None:
    with h5py.File(path, "w", userblock_size=block) as file:
        file["x"] = numbers(50)
        file.create_dataset("y", data=numbers(50), chunks=(16,))
    hdf5 = Hdf5(path)
    equal(fetch(hdf5, "x"), numbers(50))
    equal(fetch(hdf5, "y"), numbers(50))


def test_what_is_not_stored_reads_as_the_fill_value(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("late", (5,), ">i4", fillvalue=-7)
        x = file.create_dataset("holes", (10, 10), "f4", chunks=(4, 4), fillvalue=1.5)
        x[5, 5] = 3
        file.create_dataset("zero", (6,), "f8", chunks=(2,))
        pair = np.dtype([("a", "<i2"), ("b", ">f4")])
        file.create_dataset("pair", (3,), pair, fillvalue=np.array((3, 4.5), pair)[()])
        expected = {name: file[name][...] for name in file}
    hdf5 = Hdf5(path)
    assert len(hdf5.table("late", whole((5,))).bytes) == 0
    assert len(hdf5.table("holes", whole((10, 10))).bytes) == 1
    for name, data in expected.items():
        equal(fetch(hdf5, name), data)


@pytest.mark.parametrize("libver", ["earliest", "v108", "v110", "latest"])
def test_every_kind_of_chunk_index_is_read(path: Path, libver: str) -> None:
    data = numbers(13, 11)
    with h5py.File(path, "w", libver=libver) as file:
        file.create_dataset("one_unlimited", data=data, chunks=(2, 3), maxshape=(None, 11))
        file.create_dataset("two_unlimited", data=data, chunks=(2, 3), maxshape=(None, None))
        file.create_dataset("fixed", data=data, chunks=(2, 3))
        file.create_dataset("single", data=data, chunks=(13, 11))
        file.create_dataset("empty", (0, 3), "f4", chunks=(1, 3), maxshape=(None, 3))
    hdf5 = Hdf5(path)
    assert hdf5.info("one_unlimited").resizable == (None, 11)
    assert hdf5.info("two_unlimited").resizable == (None, None)
    assert hdf5.info("fixed").resizable is None
    for name in hdf5.names():
        if name != "empty":
            equal(fetch(hdf5, name), data)
            equal(fetch(hdf5, name, Box((3, 2), (4, 10))), data[3:4, 2:10])
    assert fetch(hdf5, "empty") == b""


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("maxshape", [(5, None, 6), (4, 5, None), (9, None, 8), (None, 5, 6)])
def test_an_unlimited_dimension_that_is_not_the_first(
    path: Path, monkeypatch: pytest.MonkeyPatch, maxshape: tuple, known: bool
) -> None:
    """HDF5 2.0 says wrong positions for chunks of these; where its library cannot be asked, it reads them itself."""
    if not known:
        monkeypatch.setattr(hdf5_library, "library_function", lambda name: None)
    data = numbers(4, 5, 6)
    with h5py.File(path, "w", libver="latest") as file:
        file.create_dataset("x", data=data, chunks=(2, 2, 5), maxshape=maxshape)
    hdf5 = Hdf5(path)
    assert hdf5.table("x", whole((4, 5, 6))).encoded.any() == (not known and maxshape[0] is not None)
    equal(fetch(hdf5, "x"), data)
    equal(fetch(hdf5, "x", Box((1, 0, 3), (3, 4, 6))), data[1:3, :4, 3:6])


def test_the_control_notices_wrong_positions(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not hdf5_library.misplaces():
        pytest.skip("this HDF5 says right positions")
    monkeypatch.setattr(hdf5_library, "misplaces", lambda: False)
    with h5py.File(path, "w", libver="latest") as file:
        file.create_dataset("x", data=numbers(4, 5), chunks=(1, 1), maxshape=(4, None))
    assert fetch(Hdf5(path), "x") != numbers(4, 5).tobytes()


def test_types_that_are_bytes_to_us(path: Path) -> None:
    nested = np.dtype([("p", "<f4", (3,)), ("q", [("r", "<f4"), ("i", "<f4")]), ("s", "S3"), ("n", ">i8")])
    with h5py.File(path, "w") as file:
        file["nested"] = np.zeros(4, nested)
        file["text"] = np.array([b"ab", b"cde"], "S4")
        file.create_dataset("enum", data=[1, 2], dtype=h5py.enum_dtype({"A": 1, "B": 2}, "u2"))
        file.create_dataset("opaque", data=np.array([b"abc"], "V3"))
        file.create_dataset("array", (2,), np.dtype("<i4", (3, 2)) if False else np.dtype(("<i4", (3, 2))))
        file["array"][...] = numbers(2, 3, 2, dtype="<i4")
        file["named"] = np.dtype(">f4")
        file.create_dataset("committed", data=[1.5], dtype=file["named"])
    hdf5 = Hdf5(path)
    members = hdf5.info("nested").dtype.fields
    assert [(one.name, one.offset, one.dtype.name, one.shape) for one in members] == [
        ("p", 0, "float32", (3,)),
        ("q", 12, "complex64", ()),
        ("s", 20, "bytes24", ()),
        ("n", 23, "int64", ()),
    ]
    assert members[3].dtype.big_endian
    assert hdf5.info("text").dtype == "S4"
    assert hdf5.info("enum").dtype == "uint16"
    assert hdf5.info("committed").dtype.big_endian
    assert hdf5.info("array").shape == (2, 3, 2)
    equal(fetch(hdf5, "array"), numbers(2, 3, 2, dtype="<i4"))
    assert "named" not in hdf5.names()
    equal(fetch(hdf5, "text"), np.array([b"ab", b"cde"], "S4"))


def test_array_elements_are_dimensions_whatever_the_layout(path: Path) -> None:
    data = numbers(6, 2, 3, dtype="<i2")
    with h5py.File(path, "w") as file:
        kind = np.dtype(("<i2", (3,)))
        for name, options in {
            "plain": {},
            "chunked": {"chunks": (4, 2)},
            "packed": {"chunks": (4, 2), "compression": 1},
        }.items():
            file.create_dataset(name, (6, 2), kind, **options)
            file[name][...] = data
    hdf5 = Hdf5(path)
    for name in hdf5.names():
        equal(fetch(hdf5, name), data)
        equal(fetch(hdf5, name, Box((1, 0, 1), (5, 2, 3))), data[1:5, :, 1:3])


def test_what_cannot_be_read_says_why(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("lists", (2,), h5py.vlen_dtype("i4"))
        file["target"] = 1
        odd = h5py.h5t.STD_I32LE.copy()
        odd.set_size(3)
        for name, kind in {"odd": odd, "when": h5py.h5t.UNIX_D32LE}.items():
            h5py.h5d.create(file.id, name.encode(), kind, h5py.h5s.create_simple((2,)))
    hdf5 = Hdf5(path)
    reasons = {name: hdf5.info(name).refusal for name in hdf5.names()}
    assert reasons.pop("target") == reasons.pop("lists") == ""
    assert "24 bits inside 3 bytes, and h5py has no values of them" in reasons["odd"]
    assert "HDF5's time type" in reasons["when"]
    with pytest.raises(Error, match="'when'.*time type"):
        hdf5.table("when", whole((2,)))
    with pytest.raises(Error, match="'lists'.*no fixed size"):
        hdf5.table("lists", whole((2,)))


def test_small_floats_of_hdf5_are_known(path: Path) -> None:
    from penstock._arrays.dtype import DType
    from penstock.formats.hdf5.types import stored_type

    with h5py.File(path, "w") as file:
        for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
            h5py.h5d.create(file.id, name.encode(), stored_type(DType.of(name)), h5py.h5s.create_simple((4,)))
    hdf5 = Hdf5(path)
    for name in hdf5.names():
        assert hdf5.info(name).dtype == name


def test_links_of_all_kinds_and_circles(path: Path, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["y"] = numbers(9)
    with h5py.File(path, "w") as file:
        file["a/x"] = numbers(5)
        file["a/again"] = file["a/x"]
        file["a/up"] = file["/"]
        file["a/self"] = h5py.SoftLink("/a")
        file["soft"] = h5py.SoftLink("/a/x")
        file["dangling"] = h5py.SoftLink("/nowhere")
        file["outside"] = h5py.ExternalLink("other.h5", "/y")
        file["lost"] = h5py.ExternalLink("missing.h5", "/y")
    hdf5 = Hdf5(path)
    assert sorted(hdf5.names()) == ["a/again", "a/x", "soft"]
    for name in ("a/again", "soft", "a/up/a/self/x"):
        equal(fetch(hdf5, name), numbers(5))
    equal(fetch(hdf5, "outside"), numbers(9))
    assert hdf5.table("outside", whole((9,))).files == (str(tmp_path / "other.h5"),)
    with pytest.raises(Error, match="/nowhere"):
        hdf5.info("dangling")
    with pytest.raises(Error, match=r"missing\.h5"):
        hdf5.info("lost")
    with pytest.raises(KeyError, match="a/x"):
        hdf5.info("a/xx")
    with pytest.raises(KeyError, match="is a group"):
        hdf5.info("a")


def test_attributes_come_as_python_values(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file.attrs["title"] = "all"
        x = file.create_dataset("g/x", data=1)
        x.attrs.update(n=3, v=[1.0, 2.0], t="m", s=np.bytes_(b"fixed"), names=["a", "b"], none=h5py.Empty("S1"))
        x.attrs["pointer"] = x.ref
        file["g"].attrs["k"] = 5
    hdf5 = Hdf5(path)
    found = hdf5.info("g/x").attributes
    assert found["v"].tolist() == [1.0, 2.0]
    assert {name: found[name] for name in found if name != "v"} == {
        "n": 3,
        "pointer": Reference("/g/x"),
        "t": "m",
        "s": "fixed",
        "names": ["a", "b"],
        "none": "",
    }
    assert hdf5.attributes()["title"] == "all"
    assert dict(hdf5.attributes("g")) == {"k": 5}
    with pytest.raises(KeyError):
        hdf5.attributes("absent")


def test_a_file_that_changes_after_it_was_opened_is_noticed(path: Path, tmp_path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["x"] = numbers(5)
    hdf5 = Hdf5(path)
    hdf5.info("x")
    other = tmp_path / "new.h5"
    with h5py.File(other, "w") as file:
        file["x"] = numbers(6)
    other.replace(path)
    with pytest.raises(Error, match="changed or replaced"):
        hdf5.table("x", whole((5,)))


def test_a_shortened_file_is_refused_by_name(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["x"] = numbers(5000)
    os.truncate(path, path.stat().st_size - 100)
    with pytest.raises(Error, match=f"it has {path.stat().st_size} of the .* cut short"):
        Hdf5(path)


@pytest.mark.parametrize("chunks", [None, (64,)])
def test_extents_beyond_the_end_are_refused_by_name(path: Path, chunks: tuple | None) -> None:
    """The address of the data is damaged so that it leads past the end."""
    with h5py.File(path, "w") as file:
        file["before"] = numbers(1003, dtype="i1")
        x = file.create_dataset("x", data=numbers(64), chunks=chunks)
        offset = x.id.get_chunk_info(0).byte_offset if chunks else x.id.get_offset()
    raw = path.read_bytes()
    assert raw.count(offset.to_bytes(8, "little")) == 1
    path.write_bytes(raw.replace(offset.to_bytes(8, "little"), (len(raw) - 8).to_bytes(8, "little")))
    with pytest.raises(Error, match="'x'"):
        Hdf5(path).table("x", whole((64,)))


def test_a_closed_file_is_closed_although_somebody_still_holds_one_of_its_datasets(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["x"] = numbers(5)
    container = Hdf5(path)
    held = container.stored("x").dataset  # as the traceback of an exception does
    container.close()
    assert not held.valid
    h5py.File(path, "w").close()  # HDF5 refuses to truncate what is still open


def test_a_file_open_for_writing_elsewhere_is_refused(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["x"] = numbers(5)
        file.flush()
        with pytest.raises(Error, match="open for writing"):
            Hdf5(path)
        code = f"from penstock.formats.hdf5.reader import Hdf5; Hdf5({str(path)!r})"
        other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        assert "open for writing" in other.stderr
    with h5py.File(path) as file:
        equal(fetch(Hdf5(path), "x"), file["x"][...])


@pytest.mark.parametrize("content", [b"", b"not HDF5 at all" * 100, b"\x89HDF\r\n\x1a\n" + b"\xff" * 500])
def test_what_is_no_hdf5_is_an_error(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(Error, match=r"x\.h5"):
        Hdf5(path)


def test_metadata_of_many_chunks_is_read_in_one_pass(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=numbers(20000, 4), chunks=(1, 4))
    hdf5 = Hdf5(path)
    hdf5.info("x")
    begin = time.process_time()  # of this process: others may have the cores meanwhile
    table = hdf5.table("x", whole((20000, 4)))
    assert time.process_time() - begin < 1  # measured 0.07 s; asking chunk by chunk takes 40 s and more
    assert len(table.bytes) == 20000
    few = hdf5.table("x", Box((17, 0), (19, 1)))
    assert few.origin.tolist() == [[17, 0], [18, 0]]
