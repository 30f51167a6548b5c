"""Every type that h5py reads is read: values are those of h5py, whatever the layout, the filters and the selection."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import penstock as ps

h5py = pytest.importorskip("h5py")

TEXT, REF, REGION = h5py.string_dtype(), h5py.ref_dtype, h5py.regionref_dtype
LAYOUTS: dict[str, dict[str, Any]] = {
    "contiguous": {},
    "chunked": {"chunks": (3,), "maxshape": (None,)},
    "packed": {"chunks": (4,), "compression": "gzip", "shuffle": True},
}
INDICES = (..., 0, -1, slice(2, 6), slice(None, None, -3), slice(5, 5), slice(1, 100, 4), [7, 0, 7, 3], [])
MIXED = np.dtype([("name", TEXT), ("x", "<f4"), ("list", h5py.vlen_dtype("i2")), ("tag", "S3"), ("two", TEXT, (2,))])


def odd_type(base: Any, precision: int, offset: int) -> Any:
    made = base.copy()
    made.set_precision(precision)
    made.set_offset(offset)
    return made


# Types of low level, and NumPy's type of their values.
ODD = {
    "12 of 16": (odd_type(h5py.h5t.STD_I16LE, 12, 0), "i2"),
    "12 of 16, higher": (odd_type(h5py.h5t.STD_I16LE, 12, 3), "i2"),
    "unsigned 5 of 8": (odd_type(h5py.h5t.STD_U8LE, 5, 1), "u1"),
    "24 of 32, big": (odd_type(h5py.h5t.STD_U32BE, 24, 8), "u4"),
    "40 of 64": (odd_type(h5py.h5t.STD_I64BE, 40, 0), "i8"),
}


def lists(count: int) -> np.ndarray:
    made = np.empty(count, object)
    for number in range(count):
        made[number] = np.arange(number, dtype="i4")
    return made


def fill(file: Any, name: str, kind: str, layout: dict[str, Any], count: int = 10) -> None:
    """A dataset of `count` elements, some of them not written."""
    if kind in ODD:
        stored, plain = ODD[kind]
        create = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        if "chunks" in layout:
            create.set_chunk(layout["chunks"])
        if "compression" in layout:
            create.set_deflate(3)
        made = h5py.h5d.create(file.id, name.encode(), stored, h5py.h5s.create_simple((count,)), create)
        numbers = np.arange(count).astype(plain) * 3 - (7 if plain[0] == "i" else 0)
        made.write(h5py.h5s.ALL, h5py.h5s.ALL, numbers.astype(plain))
        return
    types = {"text": TEXT, "lists": h5py.vlen_dtype("i4"), "refs": REF, "regions": REGION, "mixed": MIXED}
    types |= {"ascii": h5py.string_dtype("ascii"), "texts": np.dtype((TEXT, (2,)))}
    types |= {"lists of text": h5py.vlen_dtype(TEXT), "long double": "f16", "long complex": "c32", "fixed": "S4"}
    types |= {"enum": h5py.enum_dtype({"A": 1, "B": 2}, ">i2"), "bool": "?", "dates": h5py.opaque_dtype("M8[us]")}
    made = file.create_dataset(name, (count,), types[kind], **layout)
    for number in range(count - 2):
        made[number] = element(file, kind, number)


def element(file: Any, kind: str, number: int) -> Any:
    values: dict[str, Any] = {
        "text": "ä" * number,
        "ascii": b"a" * number,
        "lists": np.arange(number, dtype="i4"),
        "lists of text": np.array(["x" * one for one in range(number)], object),
        "texts": np.array(["a" * number, "b"], object),
        "refs": file["target"].ref if number % 2 else file["group"].ref,
        "regions": file["target"].regionref[1 : 2 + number % 3, ::2],
        "long double": np.longdouble(number) / 3,
        "long complex": number / 3 + 1j,
        "fixed": b"abcd"[: number % 5],
        "enum": 1 + number % 2,
        "bool": number % 2,
        "dates": np.datetime64(number, "us").astype(h5py.opaque_dtype("M8[us]")),
    }
    if kind != "mixed":
        return values[kind]
    made = np.zeros(1, MIXED)
    made["name"], made["x"], made["tag"] = f"n{number}", number, b"abc"
    made["list"][0] = np.arange(number, dtype="i2")
    made["two"][0] = np.array(["u", "v" * number], object)
    return made[0]


KINDS = (
    *("text", "ascii", "lists", "lists of text", "texts", "refs", "regions", "mixed", "long double", "long complex"),
    *("fixed", "enum", "bool", "dates", *ODD),
)


def as_told(value: Any, home: Any) -> Any:  # noqa: PLR0911 - one a kind
    """What h5py gives, in plain Python: text as str, lists as lists, references as names."""
    if isinstance(value, (h5py.Reference, h5py.RegionReference)):
        return (h5py.h5r.get_name(value, home.id) or b"").decode() if value else ""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, ps.Reference):
        return value.name
    if isinstance(value, np.ndarray) and value.dtype.names:
        return [as_told(value[name], home) for name in value.dtype.names]
    if isinstance(value, np.ndarray):
        return [as_told(one, home) for one in value.reshape(-1).tolist()], value.shape
    if isinstance(value, (list, tuple)):
        return [as_told(one, home) for one in value]
    return value


def same(found: Any, expected: Any, home: Any) -> None:
    plain, stock = np.asarray(found), np.asarray(expected)
    assert plain.shape == stock.shape
    if stock.dtype.hasobject:
        assert isinstance(found, ps.HostArray)
        assert as_told(plain, home) == as_told(stock, home)
    else:
        assert isinstance(found, ps.Array)
        assert plain.dtype == np.dtype(stock.dtype.newbyteorder("=").str)  # without what h5py notes beside it
        assert np.array_equal(plain, stock.astype(plain.dtype))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", KINDS)
def test_values_are_those_of_h5py(tmp_path: Path, kind: str, layout: str) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["target"], _ = np.arange(30.0).reshape(5, 6), file.create_group("group")
        fill(file, "x", kind, LAYOUTS[layout])
    with h5py.File(path) as stock, ps.open(path, device="host") as ours:
        whole = stock["x"][...]
        for index in INDICES:
            for _ in range(2):
                wanted = np.array(index, int) if isinstance(index, list) else index
                same(ours["x"][index], whole[(wanted, ...)] if index is not ... else whole, stock)
        same(ours.load(["x", "target"])["x"], whole, stock)
        same(ours.read_many({"x": slice(1, 4)}).result()["x"], whole[1:4], stock)
        assert np.asarray(ours["x"]).shape == whole.shape
        assert "x" not in repr(ours).partition("cannot be read")[2]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))), st.data())
def test_any_text(tmp_path: Path, texts: list[str], data: st.DataObject) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", data=np.array(texts, object), dtype=TEXT, shape=(len(texts),))
    index = data.draw(st.slices(len(texts)))
    with ps.open(tmp_path / "x.h5", device="host") as ours:
        assert ours["x"][...].tolist() == texts
        assert ours["x"][index].tolist() == texts[index]


def test_more_elements_than_one_part_in_several_dimensions(tmp_path: Path) -> None:
    for shape in ((40_000,), (3, 20_000), (200, 7, 30), (2, 1, 40_000)):
        expected = np.arange(np.prod(shape)).astype(str).astype(object).reshape(shape)
        with h5py.File(tmp_path / "x.h5", "w") as file:
            file.create_dataset("x", data=expected, dtype=TEXT)
        with ps.open(tmp_path / "x.h5", device="host") as ours:
            assert np.array_equal(ours["x"][...], expected)
            assert np.array_equal(ours["x"][..., 5:-5:7], expected[..., 5:-5:7])
            assert np.array_equal(ours["x"][1:], expected[1:])


def test_references_are_followed_and_outlive_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["group/data"] = np.arange(24).reshape(4, 6)
        file["links"] = np.array([file["group/data"].ref, file["group"].ref, file.ref], REF)
        file.create_dataset("none", (1,), REF)
        data = file["group/data"]
        picked = [data.regionref[1:3, ::2], data.regionref[:], data.regionref[[0, 3], 1:4], data.regionref[2]]
        file["regions"] = np.array(picked, REGION)
        data.attrs["to"], data.attrs["all"] = file["links"].ref, np.array([file["group"].ref], REF)
        expected = [data[region].ravel().tolist() for region in picked]
        points = h5py.h5s.create_simple((4, 6))
        points.select_elements(np.array([[0, 5], [3, 1]]))
        single = h5py.h5r.create(data.id, b".", h5py.h5r.DATASET_REGION, points)
        file.create_dataset("points", (1,), REGION)[0] = single
    with ps.open(path, device="host") as ours:
        first, second, root = ours["links"][...]
        assert ours[first].name.strip("/") == "group/data" and np.array_equal(ours[first][0], np.arange(6))
        assert list(ours[second]) == ["data"] and set(ours[root]) == set(ours)
        assert list(ours["group"][first].shape) == [4, 6], "from any group"
        attributes = ours["group/data"].attrs
        assert sorted(attributes) == ["all", "to"] and len(attributes) == 2, "listed, as all that can be asked for"
        assert ours[attributes["to"]].shape == (3,)
        assert ours[attributes["all"][0]].groups() == []
        nothing = ours["none"][...][0]
        assert not nothing and nothing == ps.Reference("")
        with pytest.raises(KeyError, match="leads nowhere"):
            ours[nothing]
        for region, values in zip(ours["regions"][...], expected, strict=True):
            assert ours[region].read().to_numpy()[region.selection].ravel().tolist() == values
        region = ours["points"][...][0]
        assert ours[region].read().to_numpy()[region.selection].tolist() == [5, 19]
    assert pickle.loads(pickle.dumps(first)) == first


def test_a_whole_file_is_loaded_with_its_text(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["T"], file["names"], file["one"] = np.arange(3.0), ["a", "b", "c"], "alone"
    found = ps.load(tmp_path / "x.h5", "host", like=np.empty(()))
    assert not recwarn.list and sorted(found) == ["T", "names", "one"]
    assert found["names"].tolist() == ["a", "b", "c"] and found["one"].item() == "alone"
    assert found["T"].tolist() == [0, 1, 2]
    with ps.open(tmp_path / "x.h5", device="host") as ours:
        assert {name: array.to_numpy().shape for name, array in ours.load().items()} == dict.fromkeys(
            ("T", "names"), (3,)
        ) | {"one": ()}
        assert ours["names"].extents() == []
        assert any("names: read by HDF5 into host memory" in note for note in ours.evidence()["notes"])


def test_out_is_an_array_of_objects_and_nothing_else(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["names"] = ["a", "b", "c"]
    with ps.open(tmp_path / "x.h5", device="host") as ours:
        out = np.empty(2, object)
        assert ours["names"].read(slice(1, 3), out=out) is out and out.tolist() == ["b", "c"]
        for wrong in (np.zeros(3), bytearray(24)):
            with pytest.raises(TypeError, match="'names' has elements of text.*go to no GPU.*leave out= out"):
                ours["names"].read(out=wrong)
        with pytest.raises(ValueError, match="shape"):
            ours["names"].read(out=out)


def test_a_strict_read_to_a_gpu_refuses_what_stays_on_the_host(tmp_path: Path) -> None:
    from types import SimpleNamespace

    from penstock.formats.reading import objects
    from penstock.formats.reading.request import request

    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["names"] = ["a"]
    with ps.open(tmp_path / "x.h5", device="host") as ours:
        wanted = [request(ours["names"].info)]
    gpu: Any = SimpleNamespace(emulated=False, device="cuda:0", name="x.h5", library="HDF5")
    assert objects.notes_of(wanted, gpu, False)
    with pytest.raises(ps.Error, match="text, which have no fixed size and stay in host memory, not on cuda:0"):
        objects.notes_of(wanted, gpu, True)


def test_what_is_no_plain_bytes_is_not_written_and_grows_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("names", data=["a", "b"], maxshape=(None,), chunks=(2,))
        stored, _ = ODD["12 of 16"]
        create = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        create.set_chunk((2,))
        space = h5py.h5s.create_simple((2,), (h5py.h5s.UNLIMITED,))
        h5py.h5d.create(file.id, b"odd", stored, space, create)
    with ps.open(path, write=True, device="host") as ours:
        for work in (
            lambda: ours["odd"].append(np.zeros(2, "i2")),
            lambda: ours["odd"].write(np.zeros(2, "i2")),
            lambda: ours["names"].write(["c", "d"]),
            lambda: ours["names"].append("c"),
        ):
            with pytest.raises(ps.Error, match="x.h5.*(plain bytes; write it anew|to new files only)"):
                work()
        assert ours["odd"].shape == (2,) and ours["names"][...].tolist() == ["a", "b"]


def test_a_virtual_dataset_over_numbers_that_are_converted(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        fill(file, "odd", "12 of 16, higher", {})
        layout = h5py.VirtualLayout((10,), "i2")
        layout[...] = h5py.VirtualSource(file["odd"])
        file.create_virtual_dataset("v", layout)
        expected = file["v"][...]
    with ps.open(path, device="host") as ours:
        assert np.array_equal(ours["v"][...].to_numpy(), expected)


def test_dates_are_written_as_h5py_has_them(tmp_path: Path) -> None:
    dates = np.array(["2020-01-01", "NaT", "1969-12-31"], "M8[s]")
    ps.save(tmp_path / "x.h5", {"d": dates, "s": np.array([b"ab", b"c"]), "l": np.arange(3, dtype="f16")}, "host")
    with h5py.File(tmp_path / "x.h5") as file:
        assert np.array_equal(file["d"][...], dates, equal_nan=True)
        assert file["s"][...].tolist() == [b"ab", b"c"] and file["l"].dtype == "f16"


def test_a_heap_that_is_damaged_or_cut_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["names"] = ["a" * 3000, "b" * 3000]
    raw = path.read_bytes()
    heap = raw.index(b"GCOL")
    for broken in (raw[:heap] + b"GONE" + raw[heap + 4 :], raw[:heap] + bytes(4096) + raw[heap + 4096 :]):
        path.write_bytes(broken)
        with ps.open(path, device="host") as ours, pytest.raises(ps.Error, match="x.h5") as told:
            ours["names"][...]
        assert told.value.code == "damaged" and "names" in str(told.value)
    path.write_bytes(raw[: heap + 2000])
    with pytest.raises(ps.Error, match="cut short"):
        ps.open(path, device="host")


def test_elements_that_share_a_text_fill_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small file in which many elements lead to one long text."""
    from penstock.formats.hdf5 import values

    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", (50_000,), TEXT)[0] = "a" * 10_000
        place = file["x"].id.get_offset()
    raw = bytearray(path.read_bytes())
    raw[place : place + 16 * 50_000] = raw[place : place + 16] * 50_000
    path.write_bytes(raw)
    with ps.open(path, device="host") as ours:
        assert ours["x"][:5].tolist() == ["a" * 10_000] * 5
        monkeypatch.setattr(values, "_MOST_BYTES", 1 << 20)
        monkeypatch.setattr(values, "_MOST_SHARED", 2)
        with pytest.raises(ps.Error, match="more than 2 times as many bytes as the file") as told:
            ours["x"][...]
    assert told.value.code == "out_of_memory"


def test_objects_stay_numpys_whatever_library_is_wanted() -> None:
    from penstock._arrays.like import as_like

    class Tensor:
        __module__ = "torch"

        def __array_namespace__(self) -> Any:
            raise AssertionError("no library but NumPy has Python objects")

    words = np.array(["a"], object).view(ps.HostArray)
    assert as_like(words, Tensor()) is words


def rare(file: Any) -> None:
    """Types that hardly any program writes."""
    file["target"] = np.arange(3)
    odd = odd_type(h5py.h5t.STD_I16LE, 10, 3)
    pair = h5py.h5t.create(h5py.h5t.COMPOUND, 8)
    pair.insert(b"a", 0, odd)
    pair.insert(b"b", 4, h5py.h5t.IEEE_F32BE)
    short = h5py.h5t.IEEE_F32LE.copy()
    short.set_fields(23, 15, 8, 0, 15)
    short.set_precision(24)
    short.set_size(3)
    swapped = h5py.h5t.NATIVE_LDOUBLE.copy()
    swapped.set_order(h5py.h5t.ORDER_BE)
    compact, filled = (h5py.h5p.create(h5py.h5p.DATASET_CREATE) for _ in range(2))
    compact.set_layout(h5py.h5d.COMPACT)
    filled.set_chunk((3,))
    filled.set_fill_value(np.array(-3, "i2"))
    space, numbers = h5py.h5s.create_simple((4,)), np.array([1, -2, 3, -4], "f16")
    for name, kind, create, values in (
        ("pairs", pair, None, np.array([(-5, 1.5)] * 4, [("a", "i2"), ("b", "f4")])),
        ("arrays", h5py.h5t.array_create(odd, (3,)), None, None),
        ("24 bits", short, None, numbers.astype("f4")),
        ("compact", odd, compact, numbers.astype("i2")),
        ("filled", odd, filled, None),
        ("swapped", swapped, None, numbers / 3),
    ):
        made = h5py.h5d.create(file.id, name.encode(), kind, space, create)
        if values is not None:
            made.write(h5py.h5s.ALL, h5py.h5s.ALL, values)
    file.create_dataset("lists of pairs", (3,), h5py.vlen_dtype(np.dtype([("x", "f4"), ("y", "i8")])))[0] = np.zeros(
        2, [("x", "f4"), ("y", "i8")]
    )
    file.create_dataset("lists of lists", (2,), h5py.vlen_dtype(h5py.vlen_dtype("i4")))
    file.create_dataset("lists of references", (2,), h5py.vlen_dtype(REF))[0] = np.array([file["target"].ref], REF)
    file.create_dataset("nested", (2,), np.dtype([("in", np.dtype([("t", TEXT), ("q", "f8")])), ("k", "i4")]))
    file.create_dataset("filled text", (5,), TEXT, fillvalue="fill", chunks=(2,))[3] = "own"
    file.create_dataset("arrays of lists", (2,), np.dtype((h5py.vlen_dtype("f4"), (2,))))
    layout = h5py.VirtualLayout((5,), TEXT)
    layout[:] = h5py.VirtualSource(file["filled text"])
    file.create_virtual_dataset("virtual text", layout)
    file["wide members"] = np.zeros(3, [("a", "f16"), ("b", "i4")])


def test_rare_types_have_the_values_of_h5py(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        rare(file)
    with h5py.File(tmp_path / "x.h5") as stock, ps.open(tmp_path / "x.h5", device="host") as ours:
        assert set(ours) == set(stock)
        unread = {"virtual text", "filled text"}  # h5py itself does not read these: that is an error for us too
        for name in set(stock) - unread:
            expected = stock[name][()]
            found = ours[name][...]
            assert isinstance(found, ps.HostArray) == expected.dtype.hasobject
            assert as_told(np.asarray(found), stock) == as_told(expected, stock), name
            assert as_told(np.asarray(ours[name][::-2]), stock) == as_told(expected[::-2], stock), name
        for name in unread:
            with pytest.raises(OSError, match="read data"):
                stock[name][()]
            with pytest.raises(ps.Error, match=name):
                ours[name][...]
