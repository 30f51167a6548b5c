"""Text, dates and long doubles, which NumPy has and devices have not, are bytes that move: NPY gives NumPy's values."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import penstock as ps
from penstock._arrays.dtype import DType

TYPES = (
    *("S1", "S5", "<U1", "<U3", ">U3", "<M8[D]", ">M8[ns]", "<M8[25us]", "<M8", "<m8[s]", ">m8[Y]", "<m8"),
    *("<f16", ">f16", "<c32", ">c32", "<f8", ">i2", "?"),
)
MIXED = np.dtype([("a", "S3"), ("when", ">M8[s]"), ("wide", "<f16"), ("name", "<U2", (2,))])
INDICES = (..., 0, slice(1, None), slice(None, None, -2), slice(2, 2), (slice(None), 1), (-1, slice(0, 3, 2)))


def sample(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    plain = np.dtype(dtype)
    numbers = np.arange(int(np.prod(shape))).reshape(shape)
    if plain.names:
        made = np.zeros(shape, plain)
        for name in plain.names:
            member = plain[name]
            part = sample(shape, member.base)
            made[name] = part.reshape(*shape, *(1,) * len(member.shape))
        return made
    if plain.kind in "Mm":
        return (numbers * 3 - 7).astype("i8").view(plain.newbyteorder("=")).astype(plain)
    return (numbers / (3 if plain.kind in "fc" else 1)).astype(plain) if plain.kind != "U" else numbers.astype(plain)


def equal(found: Any, expected: np.ndarray) -> None:
    """Same type but for the order of bytes, same shape, same bits."""
    plain = np.asarray(found)
    assert plain.dtype.newbyteorder("=") == expected.dtype.newbyteorder("=")
    assert plain.shape == expected.shape
    native = expected.astype(plain.dtype)
    assert np.ascontiguousarray(plain).tobytes() == np.ascontiguousarray(native).tobytes()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", TYPES)
def test_what_numpy_saves_is_read_and_saved_again(tmp_path: Path, dtype: str, order: Any) -> None:
    expected = np.asarray(sample((4, 5), dtype), order=order)
    np.save(tmp_path / "x.npy", expected)
    with ps.open(tmp_path / "x.npy", device="host") as file:
        for index in INDICES:
            for _ in range(3):  # a small read from the second on
                equal(file["data"][index], expected[index])
        out = np.zeros((4, 5), expected.dtype.newbyteorder("="), order)
        file["data"].read(out=out)
        equal(out, expected)
    ps.save(tmp_path / "y.npy", expected, "host")
    equal(np.load(tmp_path / "y.npy"), expected)


@pytest.mark.filterwarnings("ignore:.*(aligned|align).*")
def test_members_of_compounds_have_their_types(tmp_path: Path) -> None:
    expected = sample((6,), MIXED)
    np.save(tmp_path / "x.npy", expected)
    with ps.open(tmp_path / "x.npy", device="host") as file:
        whole = file["data"][...]
        for name in MIXED.names or ():
            assert np.array_equal(np.asarray(whole[name]), expected[name])
            assert np.array_equal(np.asarray(file["data"][name]), expected[name])
    assert np.array_equal(np.asarray(whole), expected)
    ps.save(tmp_path / "y.npy", whole, "host")
    assert np.array_equal(np.load(tmp_path / "y.npy"), expected)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(TYPES), st.lists(st.integers(0, 4), max_size=3), st.binary(min_size=64, max_size=64), st.data())
def test_random_bits_of_any_type_and_shape(
    tmp_path: Path, dtype: str, shape: list[int], bits: bytes, data: st.DataObject
) -> None:
    count = int(np.prod(shape, dtype=int))
    plain = np.dtype(dtype)
    if plain.kind in "U?":  # not all bits are characters
        expected = sample(tuple(shape), dtype)
    else:
        expected = np.frombuffer((bits * (count * plain.itemsize // 64 + 1))[: count * plain.itemsize], plain)
    expected = expected.reshape(shape)
    np.save(tmp_path / "x.npy", expected)
    index = tuple(data.draw(st.slices(extent)) for extent in shape)
    with ps.open(tmp_path / "x.npy", device="host") as file:
        found = np.asarray(file["data"][index])
    wanted = expected[(*index, ...)]
    assert found.shape == wanted.shape
    swapped = wanted if plain.isnative else wanted.byteswap().view(plain.newbyteorder())
    if plain.kind in "fc" and plain.itemsize > 8 + 8 * (plain.kind == "c"):  # padding may be lost in a copy of NumPy
        assert [one.tobytes()[:10] for one in found.ravel()] == [one.tobytes()[:10] for one in swapped.ravel()]
    else:
        assert found.tobytes() == swapped.tobytes()


@pytest.mark.parametrize(
    ("header", "shape"),
    [
        ("{'descr': '<i2', 'fortran_order': False, 'shape': (10L,), }", (10,)),
        ("{'descr': '<i2', 'fortran_order': True, 'shape': (2L, 5L), }", (2, 5)),
        ("{'shape': (5L,), 'fortran_order': False, 'descr': [('10L', '<i2'), ('b', '<i1', (2L,))]}", (5,)),
    ],
)
def test_headers_of_python_2(tmp_path: Path, header: str, shape: tuple[int, ...]) -> None:
    raw = header.encode().ljust(117) + b"\n"
    (tmp_path / "x.npy").write_bytes(b"\x93NUMPY\1\0" + len(raw).to_bytes(2, "little") + raw + bytes(range(20)))
    with pytest.warns(UserWarning, match="Python 2"):
        expected = np.load(tmp_path / "x.npy")
    found = np.asarray(ps.load(tmp_path / "x.npy", "host"))
    assert found.shape == shape and found.dtype == expected.dtype
    assert found.tobytes() == expected.tobytes()


def test_a_long_header_of_python_2_takes_no_longer_than_its_length(tmp_path: Path) -> None:
    for piece in ("1L", "'", '"', "\\'", "9" * 50):
        text = "{'a': (" + piece * (60_000 // len(piece))
        raw = text.encode() + b"\n"
        (tmp_path / "x.npy").write_bytes(b"\x93NUMPY\2\0" + len(raw).to_bytes(4, "little") + raw)
        begun = time.process_time()
        with pytest.raises(ps.Error, match="not understood"):
            ps.open(tmp_path / "x.npy", device="host")
        assert time.process_time() - begun < 2, piece


@pytest.mark.parametrize(
    ("dtype", "advice"),
    [("M8[ns]", 'view("int64")'), ("m8[s]", 'view("int64")'), ("S8", 'view("uint8")'), ("f16", "to_numpy()")],
)
def test_dlpack_and_cuda_say_what_shows_the_elements(tmp_path: Path, dtype: str, advice: str) -> None:
    np.save(tmp_path / "x.npy", sample((3,), dtype))
    array = ps.load(tmp_path / "x.npy", "host")
    with pytest.raises(BufferError) as told:
        array.__dlpack__()
    assert advice in str(told.value)
    with pytest.raises(TypeError) as told_again:
        array.dtype.need_on_gpu()
    assert advice in str(told_again.value)
    if "int64" in advice:
        assert np.array_equal(np.from_dlpack(array.view("int64")), sample((3,), dtype).view("i8"))


def test_dtypes_are_equal_to_those_of_numpy_alone() -> None:
    for dtype in TYPES:
        assert DType.of(dtype) == np.dtype(dtype)
        assert np.dtype(DType.of(dtype)) == np.dtype(dtype)
        assert DType.of(dtype).itemsize == np.dtype(dtype).itemsize
    assert DType.of("M8[s]") != DType.of("M8[ns]") and DType.of("S3") != DType.of("V3")
    for none in ("O", "S0", "V0"):
        with pytest.raises(TypeError):
            DType.of(none)
