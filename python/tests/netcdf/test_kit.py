"""Classic netCDF through penstock.open and create: the kit, records, and what scipy and netCDF's own library say."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from format_kit import (
    check_reads_only_what_is_wanted,
    check_refuses_wrong_out,
    check_round_trips,
    check_selections,
    few,
    same,
    sample,
)
from hypothesis import given, strategies as some
from hypothesis.extra.numpy import basic_indices

import penstock
from penstock import _core

netCDF4 = pytest.importorskip("netCDF4")

DTYPES = ("int8", "int16", "int32", "float32", "float64", "uint8", "uint16", "uint32", "int64", "uint64")
SHAPES = ((), (1,), (7,), (1, 1), (5, 7), (4, 3, 5), (1031,), (2, 1, 3, 2))  # length 0 is the record dimension


def by_library(path: Path) -> np.ndarray:
    with netCDF4.Dataset(path) as file:
        file.set_auto_mask(False)
        return np.asarray(file["data"][...])


def test_round_trips(tmp_path: Path) -> None:
    check_round_trips(tmp_path, ".nc3", dtypes=DTYPES, shapes=SHAPES, stock=by_library)


def test_selections_of_fixed_and_record_variables(tmp_path: Path) -> None:
    fixed, record, alone = sample((13, 9, 4), "f4"), sample((11, 5), "f8", 2), sample((17, 3), "i2", 3)
    with netCDF4.Dataset(tmp_path / "two.nc", "w", format="NETCDF3_64BIT_OFFSET") as file:
        for name, length in (("t", None), ("a", 13), ("b", 9), ("c", 4), ("d", 5)):
            file.createDimension(name, length)
        file.createVariable("fixed", "f4", ("a", "b", "c"))[:] = fixed
        file.createVariable("record", "f8", ("t", "d"))[:] = record
        file.createVariable("other", "i1", ("t",))[:] = np.arange(11)
    with netCDF4.Dataset(tmp_path / "one.nc", "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("t", None)
        file.createDimension("x", 3)
        file.createVariable("alone", "i2", ("t", "x"))[:] = alone
    with penstock.open(tmp_path / "two.nc", device="host") as opened:
        assert opened.format == "netcdf3", "the content counts, not the suffix"
        check_selections(opened, "fixed", fixed)
        check_selections(opened, "record", record)
        check_refuses_wrong_out(opened["record"])
    with penstock.open(tmp_path / "one.nc", device="host") as opened:
        check_selections(opened, "alone", alone)


def test_only_what_is_wanted_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.nc3"
    with penstock.create(path, device="host") as file:
        file["data"] = sample((1000, 2000), "f4")
    for index in (slice(10, 20), (slice(None), slice(0, 5)), (slice(None, None, 100), 3), 5, (5, 5), ...):
        check_reads_only_what_is_wanted(path, "data", index, path.stat().st_size)


@few
@given(some.data())
def test_any_file_of_the_library_reads_as_by_the_library(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    """Variables of any types and ranks, with and without records, in any of the three versions."""
    form = data.draw(some.sampled_from(["NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA"]))
    kinds = DTYPES if form.endswith("DATA") else DTYPES[:5]
    path = tmp_path_factory.mktemp("any") / "x.nc"
    records = data.draw(some.integers(0, 5))
    expected = {}
    with netCDF4.Dataset(path, "w", format=form) as file:
        file.createDimension("t", None)
        for number in range(data.draw(some.integers(1, 5))):
            is_record = data.draw(some.booleans())
            row = tuple(data.draw(some.lists(some.integers(1, 4), max_size=3)))
            names = [f"d{number}_{axis}" for axis in range(len(row))]
            for name, length in zip(names, row, strict=True):
                file.createDimension(name, length)
            kind = data.draw(some.sampled_from(kinds))
            variable = file.createVariable(f"v{number}", kind, (["t"] if is_record else []) + names)
            expected[f"v{number}"] = sample(((records,) if is_record else ()) + row, kind, number)
            if expected[f"v{number}"].size:
                variable[...] = expected[f"v{number}"]
    with penstock.open(path, device="host") as opened:
        for name, whole in expected.items():
            assert opened[name].shape == whole.shape
            index = data.draw(basic_indices(whole.shape, allow_newaxis=False))
            same(opened[name][index], whole[index])


@pytest.mark.parametrize("version", [2, 5])
def test_records_are_appended_to_new_and_old_files(version: int, tmp_path: Path) -> None:
    path = tmp_path / "series.nc3"
    field, time = sample((6, 4, 3), "f4"), np.arange(6.0)
    layout = {"dimensions": ("time", "y", "x"), "resizable": (None, 4, 3), "attributes": {"units": "K"}}
    with penstock.create(path, device="host", version=version) as file:
        grown = file.create_datasets(
            {
                "T": ((0, 4, 3), "f4", layout),
                "time": ((0,), "f8", {"dimensions": ("time",), "resizable": (None,)}),
            }
        )
        for step in range(3):
            grown["T"].append(field[step])
            grown["time"].append(time[step : step + 1])
        same(file["T"].read(), field[:3])
    for step in range(3, 6):
        with penstock.open(path, device="host", write=True, durable=step == 4) as file:
            file["T"].append(field[step])
            same(file["T"][step], field[step])
            file["time"].append(time[step : step + 1])
    with netCDF4.Dataset(path) as opened:
        assert opened.data_model == {2: "NETCDF3_64BIT_OFFSET", 5: "NETCDF3_64BIT_DATA"}[version]
        assert opened.dimensions["time"].isunlimited()
        assert np.array_equal(opened["T"][...], field)
        assert np.array_equal(opened["time"][...], time)
        assert opened["T"].units == "K"


def test_parts_are_written_in_place(tmp_path: Path) -> None:
    path, expected = tmp_path / "x.nc3", sample((9, 8), "f8")
    penstock.save(path, {"data": expected}, "host")
    with penstock.open(path, device="host", write=True) as file:
        file["data"][2:7:2, 3] = np.array([-1.0, -2.0, -3.0])
    expected[2:7:2, 3] = [-1, -2, -3]
    assert np.array_equal(by_library(path), expected)


def make_records(path: Path, count: int = 5) -> None:
    """A fixed variable, and records of 4 and 1 bytes (the last one padded to 4)."""
    with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_DATA") as file:
        file.createDimension("t", None)
        file.createDimension("x", 3)
        file.createVariable("fixed", "f4", ("x",))[:] = [1, 2, 3]
        file.createVariable("T", "f4", ("t",))[:] = np.arange(count)
        file.createVariable("flag", "i1", ("t",))[:] = np.arange(count)


@pytest.mark.parametrize("lost", [4, 6000])  # beyond the 3 bytes that pad the last record
@pytest.mark.parametrize("count", [0, 2000])
def test_a_file_cut_short_is_not_opened_for_writing(tmp_path: Path, count: int, lost: int) -> None:
    path = tmp_path / "x.nc3"
    make_records(path, count)
    need = path.stat().st_size - 3 * (count > 0)
    size = path.stat().st_size - (lost if count else 4)
    os.truncate(path, size)
    before = path.read_bytes()
    with pytest.raises(penstock.Error, match=f"x.nc3: .*it has {size} bytes.* need {need}") as caught:
        penstock.open(path, device="host", write=True)
    assert caught.value.code == "damaged"
    assert path.read_bytes() == before
    with penstock.open(path, device="host") as file:
        assert file["T"].shape == (count,), "what is there can be read"


def test_a_file_without_its_last_padding_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.nc3"
    make_records(path)
    os.truncate(path, path.stat().st_size - 3)
    with penstock.open(path, device="host", write=True) as file:
        file["T"].append(np.float32(9))
        file["flag"].append(np.int8(9))
    with netCDF4.Dataset(path) as file:
        assert file["flag"][...].tolist() == [0, 1, 2, 3, 4, 9]


def test_records_counted_by_the_size_are_never_missing(tmp_path: Path) -> None:
    path = tmp_path / "x.nc3"
    make_records(path)
    raw = bytearray(path.read_bytes()[:-7])  # a writer that streams died in its last record
    raw[4:12] = b"\xff" * 8
    path.write_bytes(raw)
    with penstock.open(path, device="host", write=True) as file:
        file["T"].append(np.float32(9))
        file["flag"].append(np.int8(9))
    with netCDF4.Dataset(path) as file:
        assert file["T"][...].tolist() == [0, 1, 2, 3, 9]


def test_an_error_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), penstock.create(tmp_path / "x.nc3", device="host") as file:
        file["data"] = np.ones(9)
        raise RuntimeError
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(_core.cuda_devices()[0] == 0, reason="no GPU")
def test_on_a_gpu(tmp_path: Path) -> None:
    """Big-endian data are turned there, in both directions; small records are gathered on the host first."""
    cupy = pytest.importorskip("cupy")
    path, field = tmp_path / "x.nc3", cupy.arange(4 * 500 * 600, dtype="f4").reshape(4, 500, 600)
    layout = {"dimensions": ("t", "y", "x"), "resizable": (None, 500, 600)}
    time = {"dimensions": ("t",), "resizable": (None,)}
    with penstock.create(path, device="cuda:0") as file:
        file["fixed"] = cupy.arange(10_000, dtype="i2")
        made = file.create_datasets({"T": ((0, 500, 600), "f4", layout), "time": ((0,), "f8", time)})
        for step in range(4):
            made["T"].append(field[step])
            made["time"].append(float(step))
    assert np.array_equal(netCDF4.Dataset(path)["T"][...], field.get())
    with penstock.open(path, device="cuda:0") as file:
        assert (cupy.asarray(file["T"].read()) == field).all()
        assert (cupy.asarray(file["T"][1:3, ::7, 5]) == field[1:3, ::7, 5]).all()
        assert cupy.asarray(file["time"].read()).tolist() == [0, 1, 2, 3]
    small = cupy.arange(3000.0)
    records = {"t": ((3000,), "f8", time), "u": ((3000,), "i1", time)}
    with penstock.create(tmp_path / "y.nc3", device="cuda:0") as file:
        file.create_datasets(records)["t"][...] = small
    with penstock.open(tmp_path / "y.nc3", device="cuda:0") as file:
        assert (cupy.asarray(file["t"][10:]) == small[10:]).all()
        assert file.evidence()["formats"]["host_decoded_bytes"] > 0
