"""Array: exports without a copy, views, members of compound elements."""

from __future__ import annotations

import copy
import pickle
import weakref
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from array_rig import filled

import penstock
from penstock import Array, DType


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "uint64", "float16", "float64", "complex64"])
@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (0, 2), (2, 1, 3)])
def test_numpy_shares_the_memory(context: penstock.Context, dtype: str, shape: tuple[int, ...]) -> None:
    content = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    array = filled(context, content)
    for shared in (np.asarray(array), np.from_dlpack(array)):
        assert shared.dtype == content.dtype
        assert np.array_equal(shared, content)
        assert not shared.size or shared.__array_interface__["data"][0] == array.address
    assert np.asarray(array).dtype.char == content.dtype.char
    if array.size:
        view = memoryview(array)
        assert (view.shape, view.itemsize, view.readonly) == (shape, array.dtype.itemsize, False)
        assert dtype in ("float16", "complex64") or view.tolist() == content.tolist()
    assert array.nbytes == content.nbytes
    assert array.dtype == content.dtype


def test_an_export_keeps_the_memory(context: penstock.Context) -> None:
    shared = np.from_dlpack(filled(context, np.arange(1000.0)))
    other = np.asarray(filled(context, np.arange(1000.0)))
    for _ in range(10):
        filled(context, np.zeros(1000))
    assert np.array_equal(shared, np.arange(1000.0))
    assert np.array_equal(other, np.arange(1000.0))


def test_a_buffer_outlives_its_array_and_what_that_is_set_to(context: penstock.Context) -> None:
    array = filled(context, np.arange(1000.0))
    view, gone = memoryview(array), weakref.ref(array)
    array.buffer, array.shape = context.allocate(8), (1,)
    del array
    assert gone() is not None, "the view holds it"
    assert view.tolist() == np.arange(1000.0).tolist()
    view.release()
    assert gone() is None


def test_what_no_buffer_can_be_is_refused_and_numpy_takes_it_still(context: penstock.Context) -> None:
    content = np.arange(12.0).reshape(3, 4)
    array = filled(context, content)
    for strided in (array[:, ::2], array.T, array[1:1]):
        with pytest.raises(BufferError, match=r"numpy.asarray\(array\) can take it"):
            memoryview(strided)
    np.testing.assert_array_equal(np.asarray(array[:, ::2]), content[:, ::2])
    for other in (array.view(">f8"), array.view("V8"), array.view("bfloat16")):
        with pytest.raises(BufferError, match="has no format"):
            memoryview(other)
    assert np.asarray(array.view(">f8")).dtype == ">f8"
    array.shape = (3, 40)
    with pytest.raises(BufferError):
        memoryview(array)


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e5m2", "float32", "complex64", "int64"])
def test_files_take_arrays_of_each_type(context: penstock.Context, tmp_path: Path, dtype: str) -> None:
    content = np.arange(240, dtype="u1")
    array = filled(context, content).view(dtype)
    with context.create(tmp_path / "x") as file:
        file.write(array)
    other = filled(context, np.zeros(240, "u1")).view(dtype)
    with context.open(tmp_path / "x") as file:
        assert file.read(other).bytes == 240
    assert bytes(other.as_bytes()) == content.tobytes()


def test_a_copy_shares_the_memory(context: penstock.Context) -> None:
    array = filled(context, np.arange(12.0).reshape(3, 4))[1:, 1:]
    other = copy.copy(array)
    assert (other.shape, other.strides, other.dtype, other.address) == (
        array.shape, array.strides, array.dtype, array.address
    )  # fmt: skip
    with pytest.raises(TypeError):
        pickle.dumps(array)


def test_views_are_those_of_numpy(context: penstock.Context) -> None:
    content = np.arange(60.0).reshape(3, 4, 5)
    array = filled(context, content)
    for index in (0, (slice(None), 1), (..., slice(None, None, -2)), (2, 3, 4), slice(3, 3)):
        assert np.array_equal(np.asarray(array[index]), content[index])
    assert np.array_equal(np.asarray(array.T), content.T)
    assert np.array_equal(np.asarray(array.reshape(4, -1)), content.reshape(4, -1))
    assert np.array_equal(np.asarray(array.view("uint8")), content.view("uint8"))
    assert np.array_equal(array[:, 1].to_numpy(), content[:, 1])
    assert np.array_equal(np.asarray(array[::2, ::-1].contiguous()), content[::2, ::-1])
    assert [row.shape for row in array] == [(4, 5)] * 3
    assert array[1, 1, 1].item() == content[1, 1, 1]
    assert len(array) == 3


def test_what_makes_no_sense_is_refused(context: penstock.Context) -> None:
    array = filled(context, np.arange(60.0).reshape(3, 20))
    with pytest.raises(ValueError, match="leaves the 480 bytes"):
        Array(array.buffer, "float64", (61,))
    with pytest.raises(ValueError, match="have no shape"):
        array.reshape(7, -1)
    with pytest.raises(ValueError, match="not contiguous"):
        array.T.as_bytes()
    with pytest.raises(ValueError, match="cannot be seen"):
        array[:, :1].view("uint8")
    with pytest.raises(TypeError, match="not a data type"):
        Array(array.buffer, "float128 or so", (1,))
    with pytest.raises(TypeError, match="no length"):
        len(array[0, 0])
    with pytest.raises(AttributeError, match="not GPU memory"):
        _ = array.__cuda_array_interface__


def compound() -> np.ndarray:
    particles = np.zeros(10, np.dtype([("x", "f4"), ("y", "f4"), ("id", "i8"), ("z", ">f8"), ("v", "f4", (3,))]))
    particles["x"], particles["id"], particles["z"] = np.arange(10), np.arange(10) + 100, np.arange(10) / 3
    particles["v"] = np.arange(30).reshape(10, 3)
    return particles


def test_members_are_views_where_strides_can_say_it(context: penstock.Context) -> None:
    packed = np.zeros(10, np.dtype([("x", "f4"), ("y", "f4"), ("id", "i8")]))
    packed["x"], packed["id"] = np.arange(10), np.arange(10)
    array = filled(context, packed)
    assert array["x"].buffer is array.buffer
    assert np.array_equal(np.from_dlpack(array.field("x")), packed["x"])
    assert np.array_equal(np.from_dlpack(array.field("id")), packed["id"])
    assert np.array_equal(np.asarray(array), packed)


def test_members_are_gathered_where_strides_cannot(context: penstock.Context) -> None:
    particles = compound()
    array = filled(context, particles)
    for name in ("x", "id", "z"):
        assert np.array_equal(np.from_dlpack(array.field(name)), particles[name])
        assert array.field(name).dtype == particles[name].dtype.newbyteorder("=")
    assert array.field("v").shape == (10, 3)
    assert np.array_equal(np.from_dlpack(array.field("v")), particles["v"])
    with pytest.raises(KeyError, match="x, y, id, z, v"):
        array.field("w")
    with pytest.raises(BufferError, match="field"):
        array.__dlpack__()


def test_types_without_numpy_are_exported_by_dlpack(context: penstock.Context) -> None:
    array = Array(context.allocate(8), "bfloat16", (4,))
    if find_spec("ml_dtypes") is None:
        with pytest.raises(TypeError, match="ml_dtypes"):
            _ = array.dtype.dtype
    with pytest.raises(AttributeError, match="DLPack"):
        _ = array.__array_interface__
    assert array.__dlpack__() is not None
    assert DType.of_dlpack(*array.dtype.dlpack) == array.dtype


@pytest.mark.parametrize("name", ["float32", ">f4", "<i2", "bool", "complex128", "uint8"])
def test_types_go_through_numpy_and_dlpack_and_back(name: str) -> None:
    dtype = DType.of(name)
    assert np.dtype(dtype) == np.dtype(name)
    assert dtype == np.dtype(name)
    assert DType.of(np.dtype(name)) == dtype
    assert DType.of_dlpack(*dtype.native.dlpack) == dtype.native
    assert (
        DType.of_buffer_format(memoryview(np.zeros(1, np.dtype(name).newbyteorder("="))).format, dtype.itemsize)
        == dtype.native
    )


def test_types_that_are_not_equal(context: penstock.Context) -> None:
    different: list[Any] = ["float32", ">f4", "int32", "uint32", "complex64", np.dtype([("a", "f4")]), np.dtype("V4")]
    types = [DType.of(one) for one in different]
    assert len(set(types)) == len(types)
    assert all((one == other) == (one is other) for one in types for other in types)
    assert DType.of("float32") != "no type"
    with pytest.raises(TypeError):
        DType.of(np.dtype("O"))
    with pytest.raises(TypeError):
        DType.of(np.dtype("U0"))


@pytest.mark.parametrize(
    "values",
    [
        np.arange(12, dtype="f4").reshape(3, 4),
        np.arange(100_000).reshape(100, 10, 100),
        np.arange(14_000).reshape(2000, 7),
        np.arange(5000, dtype=">i4"),
        np.array(5.0),
        np.zeros((0, 3)),
    ],
    ids=lambda values: str(values.shape),
)
def test_print_shows_what_numpy_shows(values: np.ndarray, tmp_path: Path) -> None:
    penstock.save(tmp_path / "x.npy", values, "host")
    array = penstock.load(tmp_path / "x.npy", "host")
    assert str(array) == str(values) == f"{array}"
    assert repr(array) == f"<penstock.Array {values.shape} {array.dtype} on host>"
    with np.printoptions(edgeitems=1, threshold=5):
        assert str(array) == str(values)


def test_print_copies_only_what_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    copied, to_numpy = [], Array.to_numpy
    monkeypatch.setattr(Array, "to_numpy", lambda self: copied.append(self.size) or to_numpy(self))
    with penstock.Context("host") as context:
        assert "..." in str(Array(context.allocate(8 << 20), "f8", (1024, 1024)))
        told = str(Array(context.allocate(4), "bfloat16", (2,)))
        assert "bfloat16" in told or find_spec("ml_dtypes") is not None
    assert 0 < sum(copied) < 60


VIEWS = {
    "whole": lambda one: one,
    "turned": lambda one: one.T,
    "backwards": lambda one: one[::-1, :, 1:],
    "a part": lambda one: one[1:3, 0],
}
LISTS = {
    "a list": [1, 0, 1, -1],
    "none": [],
    "a mask of rows": None,
    "behind a slice": (slice(None, None, -1), [1, 0]),
    "beside an integer": ([1, 0], -1),
    "a tuple": ((1, 0), slice(0, 2)),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("index", LISTS)
@pytest.mark.parametrize("dtype", ["f4", ">i2", "c16", [("a", "i2"), ("b", "f8")]])
def test_a_list_takes_the_elements_that_it_names(context: penstock.Context, view: str, index: str, dtype: Any) -> None:
    content = np.arange(4 * 3 * 5).reshape(4, 3, 5).astype("i2").astype(dtype)
    plain, array = (VIEWS[view](one) for one in (content, filled(context, content)))
    wanted: Any = LISTS[index]
    if wanted is None:
        wanted = np.arange(len(plain)) % 2 == 1
    found = array[wanted].to_numpy()
    assert found.dtype == plain.dtype.newbyteorder("=") and np.array_equal(found, plain[wanted])
    mask = (np.arange(plain.size) % 3 == 0).reshape(plain.shape)
    assert np.array_equal(array[mask].to_numpy(), plain[mask])


def test_many_elements_are_gathered_in_portions(context: penstock.Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock._arrays.array._BOXES_AT_ONCE", 3)
    content = np.arange(60.0).reshape(20, 3)
    order = np.random.default_rng(1).permutation(20)
    array = filled(context, content)
    assert np.array_equal(array[order].to_numpy(), content[order])
    assert np.array_equal(array[content > 7].to_numpy(), content[content > 7])
    with pytest.raises(IndexError, match="index 20 is out of bounds"):
        array[[0, 20]]
