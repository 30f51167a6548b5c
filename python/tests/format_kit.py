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
    """The engine read as many bytes as the ranges have, and those are those of the extents."""
    with penstock.open(path, device="host") as file:
        dataset = file[name]
        planned = sum(extent.bytes for extent in dataset.extents(index))
        dataset.read(index)
        evidence = file.evidence()
    assert sum(share["bytes"] for share in evidence["paths"]) == planned == evidence["formats"]["range_bytes"]
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
