"""The conformance kit of formats: what every container and writer must pass, on the host device.

A format's test module names its suffix and what it can hold, and calls these checks; what the kit cannot know (stock
tools, damaged files) is tested there. NumPy says what is right.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.extra.numpy import basic_indices

import penstock

SHAPES: tuple[tuple[int, ...], ...] = (
    (),
    (1,),
    (0,),
    (7,),
    (1, 1),
    (3, 0, 2),
    (5, 7),
    (4, 3, 5),
    (1031,),
    (2, 1, 3, 2),
)
DTYPES = (
    *("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
GAP_BYTES = 4096  # unwanted bytes between two wanted ones that are read rather than skipped

# Few examples, always the same ones: the kit runs for many formats, on two cores.
few = settings(
    deadline=None,
    derandomize=True,
    max_examples=50,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def sample(shape: Sequence[int], dtype: Any, seed: int = 1) -> np.ndarray:
    """Numbers without NaN, in any type, different for each seed."""
    generator = np.random.default_rng(seed)
    numbers = generator.integers(0, 100, size=tuple(shape))
    found = np.asarray(numbers, dtype=np.dtype(dtype).newbyteorder("="))
    if found.dtype.kind == "c":
        found = found + np.asarray(1j * numbers[...], found.dtype)
    return np.asarray(found, dtype=dtype).reshape(tuple(shape))


def slow() -> penstock.Context:
    """A device so slow that reads can be watched."""
    return penstock.Context("host", host_bandwidth_bytes_per_s=4e6, budget_bytes=4 << 20)


def same(array: Any, expected: np.ndarray) -> None:
    """Shape, type (but for the order of bytes) and values are equal."""
    found = np.asarray(array)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype.newbyteorder("=")
    assert np.array_equal(found, expected)


def check_round_trips(
    folder: Path,
    suffix: str,
    *,
    dtypes: Sequence[str] = DTYPES,
    shapes: Sequence[tuple[int, ...]] = SHAPES,
    stock: Callable[[Path], np.ndarray] | None = None,
) -> None:
    """What was saved is read again, by Penstock and by the format's own library."""
    cases = [(shape, dtypes[0]) for shape in shapes] + [((5, 7), dtype) for dtype in dtypes]
    for number, (shape, dtype) in enumerate(cases):
        expected = sample(shape, dtype, number)
        path = folder / f"case{number}{suffix}"
        with penstock.create(path, device="host") as file:
            file["data"] = expected
        with penstock.open(path, device="host") as file:
            dataset = file["data"]
            assert dataset.shape == expected.shape
            assert dataset.dtype == expected.dtype
            assert dataset.nbytes == expected.nbytes
            same(dataset.read(), expected)
        if stock is not None:
            same(stock(path), expected)


def check_selections(file: penstock.DataFile, name: str, expected: np.ndarray) -> None:
    """Any basic index gives what NumPy gives, by reading, into `out`, and in the extents' bytes."""

    @few
    @given(basic_indices(expected.shape, allow_newaxis=False, allow_ellipsis=True))
    def check(index: Any) -> None:
        wanted = expected[index]
        before = file.evidence().get("formats", {}).get("requested_bytes", 0)
        array = file[name][index]
        assert array.shape == wanted.shape
        same(array, wanted)
        assert file.evidence()["formats"]["requested_bytes"] - before == wanted.nbytes

    check()


def check_reads_only_what_is_wanted(path: Path, name: str, index: Any, file_bytes: int) -> None:
    """As many bytes were read as the ranges have, and those are those of the extents, or less: a small read leaves out
    the gaps that a plan reads."""
    with penstock.open(path, device="host") as file:
        dataset = file[name]
        planned = sum(extent.bytes for extent in dataset.extents(index))
        dataset.read(index)
        evidence = file.evidence()
    read = sum(share["bytes"] for share in evidence["paths"])
    assert evidence["formats"]["requested_bytes"] <= read == evidence["formats"]["range_bytes"] <= planned
    assert planned <= file_bytes


def check_refuses_wrong_out(dataset: penstock.Dataset) -> None:
    """Type, shape, order and writability of `out`; both sides are named."""
    shape, dtype = dataset.shape, dataset.dtype.dtype
    other = np.dtype("int16") if dtype != np.dtype("int16") else np.dtype("int32")
    for out, kind, words in (
        (np.empty(shape, other), TypeError, (str(other), dtype.name)),
        (np.empty((*shape, 2), dtype), ValueError, (str(shape), "shape")),
        (np.empty(shape, dtype.newbyteorder(">")) if dtype.itemsize > 1 else "text", TypeError, ()),
        ([1, 2], TypeError, ("list",)),
    ):
        with pytest.raises(kind) as caught:
            dataset.read(out=out)
        for word in words:
            assert word in str(caught.value)
    if len(shape) > 1 and min(shape) > 1:
        for out in (np.empty((*shape[:-1], 2 * shape[-1]), dtype)[..., ::2], np.empty(shape, dtype)[::-1]):
            with pytest.raises(ValueError, match="strides"):
                dataset.read(out=out)
    fixed = np.empty(shape, dtype)
    fixed.setflags(write=False)
    with pytest.raises(ValueError, match="read-only"):
        dataset.read(out=fixed)


def mutations(plain: bytes, count: int, seed: int) -> Iterator[bytes]:
    """Deterministic damage: cut, changed, doubled, zeroed and inserted bytes, most of it near the begin."""
    chance = random.Random(seed)
    for _ in range(count):
        raw = bytearray(plain)
        for _ in range(chance.randint(1, 4)):
            near = min(len(raw), chance.choice([16, 128, 1024, len(raw) + 1]))
            at = chance.randrange(max(1, near))
            kind = chance.randrange(6)
            if kind == 0:
                del raw[at:]
            elif kind == 1 and raw:
                raw[at % len(raw)] = chance.randrange(256)
            elif kind == 2 and raw:
                raw[at % len(raw)] ^= 1 << chance.randrange(8)
            elif kind == 3:
                raw[at:at] = raw[at : at + chance.randint(1, 40)]
            elif kind == 4:
                raw[at : at + 8] = chance.randrange(1 << 64).to_bytes(8, "little")
            else:
                raw[at:at] = bytes(chance.choices(b'{}[]()",:0123456789 \n\\<>|fViu', k=chance.randint(1, 6)))
        yield bytes(raw)


def check_survives(path: Path, raw: bytes) -> bool:
    """Any bytes give data that fit the file, or an Error (or a KeyError of a name that went). True: there were data."""
    path.write_bytes(raw)
    try:
        with penstock.open(path, device="host", format=path.suffix[1:]) as file:
            for name in list(file)[:20]:
                dataset = file[name]
                assert dataset.nbytes <= len(raw)
                dataset.read()
    except penstock.Error as error:
        assert str(error).count("\n") == 0
        return False
    return True


def check_chunked_writes(folder: Path, suffix: str) -> None:
    """Chunks that do and do not divide the shape, written whole, in parts, and in parts of chunks; read back before and
    after the file is closed."""
    for number, (shape, chunk) in enumerate(
        [((10, 12), (5, 4)), ((11, 13), (4, 5)), ((7,), (100,)), ((3, 5, 7), (1, 5, 7))]
    ):
        expected = sample(shape, "f4", number)
        path = folder / f"chunked{number}{suffix}"
        layout = {"chunk_shape": chunk, "resizable": (None, *shape[1:])}  # so that a chunk may be larger than the shape
        with penstock.create(path, device="host") as file:
            whole = file.create_dataset("whole", shape, "float32", **layout)
            whole[...] = expected
            parts = file.create_dataset("parts", shape, "float32", **layout)
            for start in range(0, shape[0], 3):
                parts[start : start + 3] = expected[start : start + 3]
            same(whole.read(), expected)
            same(parts.read(), expected)
        with penstock.open(path, device="host") as file:
            assert file["whole"].chunks == chunk
            for name in ("whole", "parts"):
                same(file[name].read(), expected)
                check_selections(file, name, expected)


def check_appends(folder: Path, suffix: str, **layout: Any) -> None:
    """Rows are added to a new dataset and to one of an existing file, one at a time and several at once."""
    expected, path = sample((13, 4, 3), "f8"), folder / f"grows{suffix}"
    with penstock.create(path, device="host") as file:
        dataset = file.create_dataset("x", (0, 4, 3), "float64", resizable=(None, 4, 3), **layout)
        dataset.append(expected[0])
        dataset.append(expected[1:4])
        assert dataset.shape == (4, 4, 3)
        same(dataset.read(), expected[:4])
        with pytest.raises(ValueError, match=r"\(4, 4\).*\(4, 3\)"):
            dataset.append(np.zeros((4, 4)))
        with pytest.raises(TypeError, match="float32.*float64"):
            dataset.append(np.zeros((4, 3), "f4"))
    for rows in (slice(4, 5), slice(5, 12), slice(12, 13)):
        with penstock.open(path, write=True, device="host", durable=True) as file:
            file["x"].append(expected[rows])
            same(file["x"].read(), expected[: rows.stop])
        with penstock.open(path, device="host") as file:
            same(file["x"].read(), expected[: rows.stop])


def check_changes_in_place(folder: Path, suffix: str) -> None:
    """Parts of an existing dataset are written; an error in the block leaves the rest as it was."""
    expected, path = sample((20, 6), "f4"), folder / f"changed{suffix}"
    penstock.save(path, {"x": expected}, "host")
    with penstock.open(path, write=True, device="host") as file:
        file["x"][3:7, ::2] = 2 * expected[3:7, ::2]
    expected[3:7, ::2] *= 2
    with penstock.open(path, device="host") as file:
        same(file["x"].read(), expected)


def check_big_endian_values(folder: Path, suffix: str) -> None:
    """Values in the other byte order are the same values."""
    expected = sample((9, 5), ">i4")
    penstock.save(folder / f"turned{suffix}", {"x": expected}, "host")
    same(penstock.load(folder / f"turned{suffix}", "host")["x"], expected)


def check_attributes(folder: Path, suffix: str) -> None:
    """Text and numbers, of the file and of a dataset."""
    path = folder / f"attributes{suffix}"
    with penstock.create(path, device="host") as file:
        file["x"] = np.arange(3.0)
        file.attrs["title"] = "a test"
        file["x"].attrs["units"] = "K"
        file["x"].attrs["scale"] = 2.5
        assert file["x"].attrs["units"] == "K"
    with penstock.open(path, device="host") as file:
        assert file.attrs["title"] == "a test"
        assert file["x"].attrs["units"] == "K"
        assert float(file["x"].attrs["scale"]) == 2.5
        with pytest.raises(KeyError, match="units"):
            file["x"].attrs["unit"]


def check_leaves_nothing_after_an_error(folder: Path, suffix: str) -> None:
    """A new file never appears; an older one of its name is untouched."""
    place = folder / "empty"
    place.mkdir()
    with pytest.raises(RuntimeError), penstock.create(place / f"x{suffix}", device="host") as file:
        file["x"] = np.arange(3.0)
        raise RuntimeError
    assert list(place.iterdir()) == []
    penstock.save(place / f"x{suffix}", {"x": np.arange(4.0)}, "host")
    with pytest.raises(RuntimeError), penstock.create(place / f"x{suffix}", device="host") as file:
        file["x"] = np.arange(3.0)
        raise RuntimeError
    assert [one.name for one in place.iterdir()] == [f"x{suffix}"]
    same(penstock.load(place / f"x{suffix}", "host")["x"], np.arange(4.0))
