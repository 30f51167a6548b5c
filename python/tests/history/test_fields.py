"""What readers find in the file of a history: netCDF4, xarray, ncdump and penstock.open have the values, the names and
the times that the model put, bit by bit what NumPy makes of them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock

netCDF4 = pytest.importorskip("netCDF4")
UNITS = "seconds since 2000-01-01 00:00:00"
RANDOM = np.random.default_rng(5)


def read(path: Path, name: str) -> np.ndarray:
    """By the stock library, which masks nothing."""
    with netCDF4.Dataset(path) as file:
        file.set_auto_mask(False)
        return np.asarray(file[name][...])


def arrays(shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Equal values in memory of every layout."""
    plain = RANDOM.normal(280, 20, shape)
    wide = np.full((shape[0], 2 * shape[1], shape[2] + 3), np.nan)
    wide[:, ::2, 1 : 1 + shape[2]] = plain
    back = np.ascontiguousarray(plain[::-1, :, ::-1])
    turned = np.ascontiguousarray(plain.transpose(2, 0, 1))
    return {
        "C": plain,
        "F": np.asfortranarray(plain),
        "apart": wide[:, ::2, 1 : 1 + shape[2]],
        "backwards": back[::-1, :, ::-1],
        "turned": turned.transpose(1, 2, 0),
        "readonly": np.frombuffer(plain.tobytes()).reshape(shape),
    }


def test_each_array_of_a_variable_is_looked_at(tmp_path: Path) -> None:
    """What was put before says nothing of what comes: other strides, another place, a number of NumPy, a shape."""
    path, whole = tmp_path / "x.nc", arrays((4, 9, 11))
    order = ["C", "F", "F", "C", "backwards", "turned", "apart", "readonly", "C"]
    with penstock.History(path, device="host") as history:
        history.define("T", ("z", "y", "x"), like=whole["C"], dtype="float64")
        history.define("n", (), shape=(), dtype="float64")
        for step, memory in enumerate(order):
            history.put("T", whole[memory] + 0 if memory == "C" else whole[memory])
            history.put("n", np.float64(step) if step % 2 else np.array(float(step)))
            for wrong in (whole["C"][:3], whole["C"].astype("f4")):
                with pytest.raises(penstock.Error, match="is defined for arrays of"):
                    history.put("T", wrong)
            history.end_step(step)
    assert np.array_equal(read(path, "T"), np.repeat(whole["C"][None], len(order), axis=0))
    assert np.array_equal(read(path, "n"), np.arange(len(order)))


@pytest.mark.parametrize("format", ["cdf5", "cdf2", "netcdf4", "hdf5"])
@pytest.mark.parametrize("memory", ["C", "F", "apart", "backwards", "turned", "readonly"])
def test_an_array_of_any_layout_is_cut_and_converted_as_numpy_does(tmp_path: Path, format: str, memory: str) -> None:
    path, whole = tmp_path / "x.nc", arrays((4, 9, 11))
    with penstock.History(path, format=format, device="host") as history:
        history.define("T", ("z", "y", "x"), like=whole["C"], halo=(0, 2, (1, 3)))
        history.define("D", ("z", "y", "x"), shape=(4, 5, 7), halo=(0, 2, (1, 3)), dtype="float64")
        for step in range(5):
            history.put("T", whole[memory])
            history.put("D", whole[memory])
            history.end_step(step)
    expected = whole["C"][:, 2:-2, 1:-3]
    assert np.array_equal(read(path, "T"), np.repeat(expected.astype("f4")[None], 5, axis=0))
    assert np.array_equal(read(path, "D"), np.repeat(expected[None], 5, axis=0))
    with penstock.open(path, device="host") as file:
        assert np.array_equal(np.asarray(file["T"].read()), read(path, "T"))


@pytest.mark.parametrize(("format", "slots"), [("cdf5", 2), ("cdf2", 2), ("netcdf4", 2), ("netcdf4", 0), ("cdf5", 0)])
def test_readers_see_each_step_while_the_history_is_open_and_writers_go_on_later(
    tmp_path: Path, format: str, slots: int
) -> None:
    path, field = tmp_path / "x.nc", RANDOM.normal(280, 20, (30, 40))
    with penstock.History(path, format=format, device="host", time_units=UNITS, slots=slots) as history:
        history.define("T", ("y", "x"), like=field, attrs={"units": "K"})
        history.define("high", ("y", "x"), like=field, statistic="maximum")
        history.constant("x", np.arange(40.0), ("x",), {"units": "m"})
        for step in range(1, 8):
            history.put("T", field + step)
            history.put("high", field - step)
            history.put("high", field)
            history.end_step(60 * step)
            history.wait()
            with netCDF4.Dataset(path) as file:
                assert file.dimensions["time"].isunlimited() and len(file.dimensions["time"]) == step
                assert np.array_equal(file["T"][step - 1], (field + step).astype("f4"))
                assert np.array_equal(file["high"][step - 1], field.astype("f4"))
                assert file["T"].units == "K" and file["high"].cell_methods == "time: maximum"
                assert file["time"].units == UNITS
                assert file["time_bnds"][step - 1].tolist() == [60 * step - 60, 60 * step]
    with netCDF4.Dataset(path, "a") as file:
        file["T"][7] = field
        file["time"][7] = 480
    assert np.array_equal(read(path, "T")[6:], np.stack([field + 7, field]).astype("f4"))


def test_without_slots_a_put_tells_which_way_it_went(tmp_path: Path) -> None:
    with penstock.History(tmp_path / "x.nc", format="netcdf4", device="host", slots=0) as history:
        history.define("T", ["x"], shape=[1000])
        history.begin()
        assert history.facts().evidence is None
        history.put("T", np.ones(1000, "f4"))
        told = history.facts().evidence
        assert told is not None and [one["bytes"] for one in told["paths"]] == [4000], "before the step has ended"
        history.end_step(1)


@pytest.mark.parametrize(("format", "slots", "dtype"), [("cdf5", 3, "f8"), ("cdf5", 0, "f8"), ("netcdf4", 0, "f4")])
def test_an_array_that_changes_after_put_changes_nothing_of_its_step(
    tmp_path: Path, format: str, slots: int, dtype: str
) -> None:
    path, field = tmp_path / "x.nc", np.zeros((50, 60), dtype)
    with penstock.History(path, format=format, device="host", slots=slots) as history:
        history.define("T", ("y", "x"), like=field)
        for step in range(20):
            field[...] = step
            history.put("T", field)
            field[...] = np.nan
            history.end_step(step)
    assert np.array_equal(read(path, "T")[:, 7, 9], np.arange(20))
    assert np.isfinite(read(path, "T")).all()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64", "uint64", "float32", "float64"])
def test_numbers_of_any_type_are_written_as_they_are(tmp_path: Path, dtype: str) -> None:
    path, field = tmp_path / "x.nc", RANDOM.integers(0, 127, (6, 7)).astype(dtype)
    with penstock.History(path, device="host") as history:
        history.define("n", ("y", "x"), like=field[:, ::-1], dtype=dtype)
        history.put("n", field[:, ::-1])
        history.end_step(0)
    assert read(path, "n").dtype == dtype
    assert np.array_equal(read(path, "n")[0], field[:, ::-1])


@pytest.mark.parametrize("source", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_values_convert_as_numpy_converts_them(tmp_path: Path, source: str, dtype: str) -> None:
    path = tmp_path / "x.nc"
    field = RANDOM.integers(-(2**30), 2**30, 2000).astype(source)
    if field.dtype.kind == "f":
        field[:9] = [np.nan, np.inf, -np.inf, -0.0, 1e-45, 3.4028235e38, 1e-310, 1 + 2**-24, 1 + 3 * 2**-24]
    with penstock.History(path, device="host") as history:
        history.define("v", ("x",), like=field, dtype=dtype)
        history.put("v", field)
        history.end_step(0)
    with np.errstate(over="ignore"):
        assert read(path, "v")[0].tobytes() == field.astype(dtype).tobytes()


def test_the_file_has_its_dimensions_in_the_order_that_was_asked_for(tmp_path: Path) -> None:
    path, field = tmp_path / "x.nc", RANDOM.normal(size=(3, 4, 5))
    with penstock.History(path, device="host") as history:
        history.define("T", ("x", "y", "z"), like=field, file_dims=("z", "x", "y"))
        history.put("T", field)
        history.end_step(0)
    with netCDF4.Dataset(path) as file:
        assert file["T"].dimensions == ("time", "z", "x", "y")
    assert np.array_equal(read(path, "T")[0], field.transpose(2, 0, 1).astype("f4"))


def test_statistics_are_of_all_that_was_put_between_two_ends(tmp_path: Path) -> None:
    path, parts = tmp_path / "x.nc", RANDOM.normal(size=(3, 4, 6, 7))
    with penstock.History(path, device="host", time_units=UNITS, start_time=10.0) as history:
        history.define("m", ("yi", "xi"), like=parts[0, 0], halo=(1, 1), statistic="mean")
        history.define("low", ("y", "x"), like=parts[0, 0], statistic="minimum")
        history.define("high", ("y", "x"), like=parts[0, 0], statistic="maximum", dtype="float64")
        history.define("now", ("y", "x"), like=parts[0, 0])
        for step in range(3):
            for part in parts[step]:
                for name in ("m", "low", "high"):
                    history.put(name, part)
            history.put("now", parts[step, -1])
            history.end_step(10 + 60.0 * (step + 1))
    assert np.array_equal(read(path, "low"), parts.min(axis=1).astype("f4"))
    assert np.array_equal(read(path, "high"), parts.max(axis=1))
    assert np.array_equal(read(path, "now"), parts[:, -1].astype("f4"))
    sums = parts[:, 0] + parts[:, 1] + parts[:, 2] + parts[:, 3]
    assert np.array_equal(read(path, "m"), (sums * 0.25).astype("f4")[:, 1:-1, 1:-1])
    with netCDF4.Dataset(path) as file:
        assert file["m"].cell_methods == "time: mean"
        assert file["low"].cell_methods == "time: minimum"
        assert file["high"].cell_methods == "time: maximum"
        assert "cell_methods" not in file["now"].ncattrs()
        assert file["time"].bounds == "time_bnds"
        assert np.array_equal(file["time_bnds"][...], [[10, 70], [70, 130], [130, 190]])


def test_few_bits_of_the_mantissa_are_kept_where_that_is_asked_for(tmp_path: Path) -> None:
    path, field = tmp_path / "x.nc", RANDOM.normal(280, 20, 5000)
    with penstock.History(path, device="host") as history:
        history.define("T", ("x",), like=field, keep_bits=7)
        history.put("T", field)
        history.end_step(0)
    found = read(path, "T")[0]
    assert not (found.view("u4") & ((1 << 16) - 1)).any()
    assert np.abs(found / field - 1).max() < 2**-8
    assert len(np.unique(found)) < 200


def described(path: Path) -> np.ndarray:
    """A history with all that CF knows of."""
    field = RANDOM.normal(size=(4, 5))
    with penstock.History(path, device="host", time_units=UNITS, attrs={"title": "a run", "level": 3}) as history:
        history.define("T", ("y", "x"), like=field, attrs={"units": "K", "_FillValue": -9.9999e30, "ä": "grün"})
        history.constant("x", np.arange(5.0) * 2, ("x",), {"units": "m", "axis": "X"})
        history.constant("land", np.eye(4, 5, dtype="i2"), ("y", "x"), {"flag_values": [0, 1]})
        history.constant("radius", 6.371e6)
        history.set_attrs({"long_name": "temperature", "valid_range": [0, 400], "factor": np.float32(2)}, "T")
        history.set_attrs({"Conventions": "CF-1.10"})
        for step in range(3):
            history.put("T", field)
            history.end_step(3600.0 * step)
    return field


def test_attributes_and_constants_are_read_as_they_were_given(tmp_path: Path) -> None:
    path = tmp_path / "x.nc"
    described(path)
    with netCDF4.Dataset(path) as file:
        assert file.data_model == "NETCDF3_64BIT_DATA"
        assert (file.title, file.level, file.Conventions) == ("a run", 3, "CF-1.10")
        T = file["T"]
        assert (T.units, T.long_name, T.getncattr("ä")) == ("K", "temperature", "grün")
        assert T._FillValue == np.float32(-9.9999e30) and T._FillValue.dtype == "f4"
        assert T.valid_range.dtype == "f4" and list(T.valid_range) == [0, 400]
        assert T.factor.dtype == "f4"
        assert (file["x"][...] == [0, 2, 4, 6, 8]).all() and file["x"].units == "m"
        assert file["land"].dtype == "i2" and (file["land"][...] == np.eye(4, 5)).all()
        assert file["land"].flag_values.dtype == "i4"
        assert file["radius"][...] == 6.371e6
        time = file["time"]
        assert (time.units, time.calendar, time.standard_name, time.axis) == (UNITS, "standard", "time", "T")
        assert file.dimensions["time"].isunlimited()


def test_xarray_decodes_the_times(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    path = tmp_path / "x.nc"
    field = described(path)
    with xarray.open_dataset(path, engine="netcdf4", mask_and_scale=False) as found:
        assert (found["time"].values == np.datetime64("2000-01-01") + np.arange(3) * np.timedelta64(3600, "s")).all()
        assert np.array_equal(found["T"].values[1], field.astype("f4"))
        assert found["T"].dims == ("time", "y", "x") and list(found["x"].values) == [0, 2, 4, 6, 8]


def test_ncdump_prints_it(tmp_path: Path) -> None:
    if not shutil.which("ncdump"):
        pytest.skip("no ncdump")
    described(tmp_path / "x.nc")
    done = subprocess.run(["ncdump", "-h", tmp_path / "x.nc"], capture_output=True, text=True, check=True)
    assert "time = UNLIMITED ; // (3 currently)" in done.stdout
    assert "float T(time, y, x) ;" in done.stdout
    assert "T:_FillValue = -9.9999e+30f ;" in done.stdout


@pytest.mark.parametrize("calendar", ["standard", "noleap", "360_day", "julian"])
def test_a_date_becomes_a_number_of_the_calendar(tmp_path: Path, calendar: str) -> None:
    cftime = pytest.importorskip("cftime")
    path = tmp_path / "x.nc"
    units = "hours since 2001-02-27"
    with penstock.History(path, device="host", time_units=units, calendar=calendar) as history:
        history.define("T", ("x",), shape=(3,))
        for day in (1, 2):
            history.put("T", np.zeros(3, "f4"))
            history.end_step(cftime.datetime(2001, 3, day, calendar=calendar))
        if calendar == "standard":
            history.put("T", np.zeros(3, "f4"))
            history.end_step(np.datetime64("2001-03-03T12:00"))
    begin = {"standard": 48, "noleap": 48, "360_day": 96, "julian": 48}[calendar]
    assert list(read(path, "time")[:2]) == [begin, begin + 24]
    assert calendar != "standard" or read(path, "time")[2] == begin + 60


def test_memory_of_the_device_is_packed_there(tmp_path: Path) -> None:
    path, context = tmp_path / "x.nc", penstock.Context("host")
    values = RANDOM.normal(size=(4, 5, 6))
    buffer = context.allocate(values.nbytes)
    field = penstock.Array(buffer, "float64", values.shape)
    with penstock.History(path, context=context, memory="device") as history:
        history.define("T", ("z", "y", "x"), like=field, halo=(0, 1, 1), file_dims=("y", "x", "z"))
        history.define("m", ("z", "yh", "xh"), like=field, statistic="mean")
        for step in range(4):
            context.copy_to_device(buffer, values + step)
            history.put("T", field)
            history.put("m", field)
            history.put("m", field)
            history.end_step(step)
        facts = history.facts()
    assert np.array_equal(read(path, "T")[3], (values + 3)[:, 1:-1, 1:-1].transpose(1, 2, 0).astype("f4"))
    assert np.array_equal(read(path, "m")[2], (values + 2).astype("f4"))
    assert facts.steps_ended == 4


def test_a_stream_that_is_none_is_refused_and_the_step_goes_on(tmp_path: Path) -> None:
    context = penstock.Context("host")
    field = penstock.Array(context.allocate(80), "float64", (10,))
    with penstock.History(tmp_path / "x.nc", context=context, memory="device") as history:
        history.define("T", ("x",), like=field)
        for _ in range(2):
            with pytest.raises(penstock.Error, match="77 is no stream of the device host"):
                history.put("T", field, stream=77)
        history.put("T", field, stream=0)
        history.end_step(0)
    assert read(tmp_path / "x.nc", "T").shape == (1, 10)


def test_facts_tell_what_was_written(tmp_path: Path) -> None:
    history = penstock.History(tmp_path / "x.nc", device="host", slots=3)
    history.define("T", ("x",), shape=(1000,))
    assert history.facts().evidence is None
    for step in range(4):
        history.put("T", np.zeros(1000, "f4"))
        history.end_step(step)
    history.wait()
    facts = history.facts()
    history.close()
    assert (facts.steps_ended, facts.steps_published) == (4, 4)
    assert facts.step_bytes == 4000 + 8
    assert facts.slot_bytes >= 3 * 4000
    assert facts.write_seconds > 0 and facts.put_seconds > 0 and facts.wait_seconds >= 0
    assert facts.evidence is not None
    assert sum(one["bytes"] for one in facts.evidence["paths"]) == 4000
    assert facts.evidence["predicted_seconds"] != 0, "None where nothing predicts it"


def test_steps_are_seen_while_the_model_runs(tmp_path: Path) -> None:
    path = tmp_path / "x.nc"
    with penstock.History(path, device="host") as history:
        history.define("T", ("x",), shape=(100,))
        for step in range(5):
            history.put("T", np.full(100, step, "f4"))
            history.end_step(step)
            history.wait()
            found: Any = read(path, "T")
            assert np.array_equal(found[:, 3], np.arange(step + 1))


def test_an_array_that_is_no_buffer_is_refused_in_words(tmp_path: Path) -> None:
    with penstock.History(tmp_path / "h.nc", device="host") as history:
        history.define("T", ["x"], shape=[2], dtype="int64")
        with pytest.raises((TypeError, penstock.Error), match="datetime64|<M8|dates"):
            history.put("T", np.array(["2000-01-01", "2000-01-02"], "M8[s]"))


def test_the_program_behind_the_figures_prints_what_each_way_took(tmp_path: Path) -> None:
    program = Path(__file__).parents[3] / "examples" / "history" / "small_rates.py"
    done = subprocess.run(
        [sys.executable, str(program), "1", "5"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert [line.split(":")[0] for line in done.stdout.splitlines()][::4] == ["history, cdf5", "netCDF4-python"], (
        done.stderr
    )
    assert not any(tmp_path.iterdir())
