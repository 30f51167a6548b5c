"""Codecs of Zarr that store other numbers than the elements: values are those of zarr-python, in both versions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps

zarr = pytest.importorskip("zarr")
numcodecs = pytest.importorskip("numcodecs")
from zarr.codecs import numcodecs as codecs3  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # zarr-python warns of codecs that the format has not yet

NUMBERS = (np.arange(35) * 37 % 11).reshape(7, 5)
BITS = NUMBERS % 3 == 0
EIGHTHS = {"offset": 1.5, "scale": 8, "dtype": "<f8", "astype": "<i2"}
QUARTERS = {"offset": 0, "scale": 4, "dtype": "<f8", "astype": "<i4"}
# name: (dtype, values, names of codecs with what they are given), the codecs by numcodecs or those of version 3
CHAINS: dict[str, tuple[str, np.ndarray, list[tuple[str, dict[str, Any]]]]] = {
    "scaled": ("<f8", NUMBERS / 8 + 1.5, [("FixedScaleOffset", EIGHTHS)]),
    "to bytes": ("<f4", NUMBERS, [("FixedScaleOffset", {"offset": -1, "scale": 3, "dtype": "<f4", "astype": "|u1"})]),
    "in its type": ("<f4", NUMBERS, [("FixedScaleOffset", {"offset": 2, "scale": 3, "dtype": "<f4"})]),
    "quantized": ("<f8", NUMBERS / 7, [("Quantize", {"digits": 2, "dtype": "<f8"})]),
    "astype": ("<f8", NUMBERS / 7, [("AsType", {"encode_dtype": "<f4", "decode_dtype": "<f8"})]),
    "rounded": ("<f4", NUMBERS / 7, [("BitRound", {"keepbits": 3})]),
    "in a row": ("<f8", NUMBERS / 4, [("FixedScaleOffset", QUARTERS), ("Delta", {"dtype": "<i4", "astype": "<i2"})]),
}
CASES = [(version, name) for version in (2, 3) for name in CHAINS]


def made(folder: Path, version: int, name: str, chunks: tuple[int, int]) -> np.ndarray:
    """Writes the store by zarr-python, and gives the values that went into it."""
    dtype, values, chain = CHAINS.get(name, ("bool", BITS, [("PackBits", {})]))
    codecs = [getattr(numcodecs if version == 2 else codecs3, codec)(**given) for codec, given in chain]
    options: dict[str, Any] = {"shape": (7, 5), "chunks": chunks, "filters": codecs, "compressors": None}
    group = zarr.open_group(folder / "x.zarr", mode="w", zarr_format=version)
    group.create_array("x", dtype=dtype, **options)[...] = values.astype(dtype)
    return values


def same(folder: Path) -> np.ndarray:
    """What zarr-python reads of it, and Penstock by several selections."""
    expected = np.asarray(zarr.open_group(folder / "x.zarr", mode="r")["x"][...])
    with ps.open(folder / "x.zarr", device="host") as file:
        for index in (..., 0, (slice(None), -1), (slice(None, None, -2), slice(1, 4))):
            found = np.asarray(file["x"][index])
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected[index])
    return expected


@pytest.mark.parametrize(("version", "name"), CASES)
def test_numbers_made_of_numbers_are_those_of_zarr(tmp_path: Path, version: int, name: str) -> None:
    values = made(tmp_path, version, name, (3, 2))
    assert np.abs(same(tmp_path) - values).max() < 0.4, "nearly those that were written"


@pytest.mark.parametrize("chunks", [(7, 5), (3, 2), (2, 4)])  # of 35, 6 and 8 elements
def test_bits_are_those_of_zarr(tmp_path: Path, chunks: tuple[int, int]) -> None:
    """Of version 2: zarr-python 3.1 does not make them in version 3."""
    assert (made(tmp_path, 2, "bits", chunks) == same(tmp_path)).all()


@pytest.mark.parametrize(("version", "name"), [*CASES, (2, "bits")])
def test_chunks_of_numbers_that_are_damaged_are_errors_at_most(tmp_path: Path, version: int, name: str) -> None:
    made(tmp_path, version, name, (7, 5))
    (chunk,) = (tmp_path / "x.zarr/x").rglob("0.0" if version == 2 else "c/0/0")
    good = chunk.read_bytes()
    changed = [good[:at] + bytes([good[at] ^ 0xFF]) + good[at + 1 :] for at in range(0, len(good), 5)]
    cut = [good[:at] for at in (0, 1, len(good) // 2, len(good) - 1)]
    for number, content in enumerate([*cut, good + b"\0", *changed]):
        chunk.write_bytes(content)
        with ps.open(tmp_path / "x.zarr", device="host") as file:
            try:
                assert np.asarray(file["x"][...]).shape == (7, 5)
                assert number > len(cut), "it is too short, or too long"
            except ps.Error as error:
                assert error.code == "damaged" and "x" in str(error)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"scale": None}, "the scale None"),
        ({"offset": "NaN"}, "the offset 'NaN'"),
        ({"scale": 1e300}, "the scale 1e"),
        ({"scale": 10**400}, "the scale 1"),
        ({"scale": True}, "the scale True"),
        ({"astype": "|O"}, "numbers of type '|O'"),
        ({"dtype": "<f4"}, "makes <f4 of chunks of float64"),
    ],
)
def test_scales_that_are_none_are_refused(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    made(tmp_path, 2, "scaled", (3, 2))
    place = tmp_path / "x.zarr/x/.zarray"
    document = json.loads(place.read_text())
    document["filters"][0] |= change
    place.write_text(json.dumps(document))
    with ps.open(tmp_path / "x.zarr", device="host") as file, pytest.raises(ps.Error) as told:
        file["x"][...]
    assert words in str(told.value)


def test_new_chunks_of_rounded_numbers_are_not_made(tmp_path: Path) -> None:
    """They would keep the bits that the array is to lose."""
    made(tmp_path, 3, "rounded", (3, 2))
    with ps.open(tmp_path / "x.zarr", write=True, device="host") as file, pytest.raises(ps.Error, match="compressed"):
        file["x"][...] = np.zeros((7, 5), "f4")
