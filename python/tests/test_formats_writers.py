"""The kit for the formats that hold several datasets and grow; their stock tools are in tests of their own."""

from __future__ import annotations

from pathlib import Path

import format_kit as kit
import numpy as np
import pytest

import penstock

CHUNKED = [".zarr", ".h5", ".nc"]
GROWING = {
    ".zarr": {"chunk_shape": (2, 4, 3)},
    ".h5": {"chunk_shape": (2, 4, 3)},
    ".nc": {"chunk_shape": (2, 4, 3)},
    ".nc3": {},
}
CLASSIC = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64")


@pytest.mark.parametrize("suffix", CHUNKED)
def test_round_trips(tmp_path: Path, suffix: str) -> None:
    types = kit.DTYPES if suffix != ".nc" else ("bool", *CLASSIC)  # netCDF has no float16 and no complex numbers
    kit.check_round_trips(tmp_path, suffix, dtypes=types)


def test_round_trips_of_classic_netcdf(tmp_path: Path) -> None:
    """Which has no bool and no complex numbers, and a dimension of length 0 only as the record dimension."""
    kit.check_round_trips(tmp_path, ".nc3", dtypes=CLASSIC, shapes=[one for one in kit.SHAPES if 0 not in one])


@pytest.mark.parametrize("suffix", CHUNKED)
def test_chunked_writes(tmp_path: Path, suffix: str) -> None:
    kit.check_chunked_writes(tmp_path, suffix)


@pytest.mark.parametrize("suffix", GROWING)
def test_appends(tmp_path: Path, suffix: str) -> None:
    kit.check_appends(tmp_path, suffix, **GROWING[suffix])


@pytest.mark.parametrize("suffix", GROWING)
def test_the_rest_of_the_kit(tmp_path: Path, suffix: str) -> None:
    kit.check_changes_in_place(tmp_path, suffix)
    kit.check_big_endian_values(tmp_path, suffix)
    kit.check_attributes(tmp_path, suffix)
    kit.check_leaves_nothing_after_an_error(tmp_path, suffix)


@pytest.mark.parametrize("suffix", GROWING)
def test_selections_and_out(tmp_path: Path, suffix: str) -> None:
    expected = kit.sample((31, 6, 5), "f4")
    penstock.save(tmp_path / f"x{suffix}", {"x": expected, "y": np.arange(5.0)}, "host")
    with penstock.open(tmp_path / f"x{suffix}", device="host") as file:
        kit.check_selections(file, "x", expected)
        kit.check_refuses_wrong_out(file["x"])
