"""Wrong use of a history: one line that says what is wrong and what to do, at once, and the steps before it stay."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock

netCDF4 = pytest.importorskip("netCDF4")
SHAPE = (4, 5)
FIELD = np.zeros(SHAPE)
LIMIT_S = 60
HALF: Any = "\ud800"  # half a character, as JSON may give it: no UTF-8


def opened(path: Path, steps: int = 2, **options: object) -> penstock.History:
    """A history of T and a mean m, with some steps."""
    history = penstock.History(path, device="host", **options)  # type: ignore[arg-type]
    history.define("T", ("y", "x"), like=FIELD)
    history.define("m", ("y", "x"), like=FIELD, statistic="mean")
    for step in range(steps):
        put_both(history, step)
    return history


def put_both(history: penstock.History, step: float) -> None:
    history.put("T", FIELD + step)
    history.put("m", FIELD + step)
    history.end_step(step)


WRONG: dict[str, tuple[Callable[[penstock.History], object], str]] = {
    "unknown": (lambda h: h.put("U", FIELD), "no variable 'U' is defined; defined are: T, m"),
    "shape": (lambda h: h.put("T", FIELD.T), "shape (4, 5), and this one has (5, 4); give the array with its halo"),
    "dtype": (lambda h: h.put("T", FIELD.astype("f4")), "for arrays of float64, and this one has float32; convert it"),
    "order of bytes": (lambda h: h.put("T", FIELD.astype(">f8")), "this one has big-endian float64; convert it"),
    "no array": (lambda h: h.put("T", "text"), "this is text, and a history has numbers"),
    "objects": (lambda h: h.put("T", FIELD.astype(object)), "Python objects"),
    "masked": (lambda h: h.put("T", np.ma.masked_less(FIELD, 1)), "masked array"),
    "twice": (lambda h: (h.put("T", FIELD), h.put("T", FIELD)), "'T' was put already in this step; end the step first"),
    "not put": (
        lambda h: (h.put("T", FIELD), h.end_step(9)),
        "give one of another interval a history of its own",
    ),
    "nothing put": (lambda h: h.end_step(9), "'T' was not put in this step"),
    "nan": (lambda h: put_both(h, float("nan")), "the time is no number"),
    "inf": (lambda h: put_both(h, float("inf")), "the time is no number"),
    "huge time": (lambda h: h.end_step(10**400), "the time is larger than any float64"),
    "back": (lambda h: put_both(h, 0.5), "not later than"),
    "same time": (lambda h: put_both(h, 1), "not later than"),
    "text as a time": (lambda h: h.end_step("1"), "a time is a number or a date, not str"),
    "no time": (lambda h: h.end_step(None), "a time is a number or a date, not NoneType"),
    "date": (lambda h: h.end_step(np.datetime64("2000-01-01")), "no units of time"),
    "late define": (lambda h: h.define("U", ("x",), shape=(5,)), "fields were put"),
    "late constant": (lambda h: h.constant("x", np.arange(5.0), ("x",)), "fields were put"),
    "late attribute": (lambda h: h.set_attrs({"units": "K"}, "T"), "fields were put"),
    "stream": (lambda h: h.put("T", FIELD, stream="a"), "is not a stream"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_use_is_one_line_and_the_history_goes_on(tmp_path: Path, case: str) -> None:
    act, words = WRONG[case]
    history = opened(tmp_path / "x.nc")
    with pytest.raises((penstock.Error, TypeError, ValueError)) as caught:
        act(history)
    assert words in str(caught.value) and "\n" not in str(caught.value)
    if case in ("twice", "not put", "nan", "inf", "back", "same time"):  # the step is still open
        if case in ("twice", "not put"):
            history.put("m", FIELD)
        history.end_step(20)
    else:
        put_both(history, 20)
    history.close()
    with netCDF4.Dataset(tmp_path / "x.nc") as file:
        assert list(file["time"][...]) == [0, 1, 20]
        assert (file["T"][1] == 1).all()


DEFINITIONS: dict[str, tuple[Callable[[penstock.History], object], str]] = {
    "no name": (lambda h: h.define("", ("x",), shape=(5,)), "a name has 1 to 256 bytes"),
    "slash": (lambda h: h.define("a/b", ("x",), shape=(5,)), "has no '/'"),
    "twice": (lambda h: [h.define("T", ("x",), shape=(5,)) for _ in range(2)], "given twice"),
    "time": (lambda h: h.define("time", ("x",), shape=(5,)), "given twice"),
    "dimension time": (lambda h: h.define("T", ("time", "x"), shape=(5, 5)), "time is added to every variable"),
    "lengths": (lambda h: h.define("T", ("x", "x"), shape=(5, 6)), "give dimensions of another length another name"),
    "rank": (lambda h: h.define("T", ("x",), like=FIELD), "has 2 dimensions and 1 names of them"),
    "many": (lambda h: h.define("T", tuple("abcdefg"), shape=(1,) * 7), "at most 6"),
    "empty": (lambda h: h.define("T", ("x",), shape=(0,)), "nothing of the shape"),
    "negative": (lambda h: h.define("T", ("x",), shape=(-1,)), "'T': its shape is (-1,); numbers are from 0 to"),
    "half an element": (lambda h: h.define("T", ("x",), shape=(2.5,)), "'T': its shape is a list of whole numbers"),
    "no list": (lambda h: h.define("T", ("x",), shape=3), "'T': its shape is a list of whole numbers, not 3"),
    "start": (lambda h: h.define("T", ("x",), shape=(3,), global_shape=(9,), start=(-3,)), "'T': start is (-3,); num"),
    "halo": (lambda h: h.define("T", ("y", "x"), like=FIELD, halo=(2, 0)), "nothing of the shape (4, 5)"),
    "halo rank": (lambda h: h.define("T", ("y", "x"), like=FIELD, halo=(1,)), "a width for each of 2 dimensions"),
    "halo sign": (lambda h: h.define("T", ("y", "x"), like=FIELD, halo=(-1, 0)), "widths are 0 or more"),
    "dims": (lambda h: h.define("T", "yx", like=FIELD), "dims are a list of names"),
    "file dims": (lambda h: h.define("T", ("y", "x"), like=FIELD, file_dims=("x", "z")), "the same names in another"),
    "neither": (lambda h: h.define("T", ("x",)), "give like= or shape=, one of them"),
    "dtype": (lambda h: h.define("T", ("x",), shape=(3,), dtype="int32", source_dtype="f8"), "cannot become int32"),
    "no dtype": (lambda h: h.define("T", ("x",), shape=(3,), dtype="float33"), "not a data type"),
    "statistic": (lambda h: h.define("T", ("x",), shape=(3,), statistic="median"), "use one of mean"),
    "bits": (lambda h: h.define("T", ("x",), shape=(3,), keep_bits=24), "keep 1 to 23 bits"),
    "integer mean": (
        lambda h: h.define("T", ("x",), shape=(3,), dtype="i4", statistic="mean"),
        "write it as float32 or float64",
    ),
    "attribute": (lambda h: h.set_attrs({"a": object()}), "give text, a number or a list of numbers"),
    "large number": (lambda h: h.set_attrs({"a": 2**40}), "attributes have float32, float64, int32"),
    "no variable": (lambda h: h.set_attrs({"a": "b"}, "Q"), "no variable 'Q' is defined"),
    "huge": (lambda h: h.define("T", ("y", "x"), shape=(2**40, 2**40)), "larger than any"),
    "objects": (lambda h: h.constant("x", np.array([None])), "Python objects"),
    "half text": (lambda h: h.set_attrs({"a": HALF}), "attribute 'a': its text '\\ud800' holds '\\ud800', which"),
    "half attribute": (lambda h: h.set_attrs({HALF: 1}), "the name of an attribute '\\ud800' holds"),
    "half variable": (lambda h: h.set_attrs({"a": 1}, HALF), "variable= '\\ud800' holds"),
    "half name": (lambda h: h.define(HALF, ("x",), shape=(5,)), "name= '\\ud800' holds"),
    "half constant": (lambda h: h.constant(HALF, 1.0), "name= '\\ud800' holds"),
    "half dimension": (lambda h: h.define("T", (HALF,), shape=(5,)), "the name of a dimension '\\ud800' holds"),
    "half units": (lambda h: h.define("T", ("x",), shape=(5,), attrs={"units": HALF}), "attribute 'units': its text"),
    "half statistic": (lambda h: h.define("T", ("x",), shape=(5,), statistic=HALF), "statistic= '\\ud800' holds"),
    "half compression": (lambda h: h.define("T", ("x",), shape=(5,), compression=HALF), "compression= '\\ud800' holds"),
    "no dict": (lambda h: h.set_attrs(["a"]), "attributes are a dict of names and values, not list"),
}


@pytest.mark.parametrize("case", DEFINITIONS)
def test_a_wrong_definition_is_one_line_and_changes_nothing(tmp_path: Path, case: str) -> None:
    act, words = DEFINITIONS[case]
    history = penstock.History(tmp_path / "x.nc", device="host")
    with pytest.raises((penstock.Error, TypeError, ValueError)) as caught:
        act(history)
    assert words in str(caught.value) and "\n" not in str(caught.value)
    if case != "twice":
        history.define("T", ("y", "x"), like=FIELD)
    history.put("T", FIELD if case != "twice" else np.zeros(5, "f4"))
    history.end_step(0)
    history.close()
    with netCDF4.Dataset(tmp_path / "x.nc") as file:
        assert list(file.variables) == ["time", "T"]


TIMES: dict[str, tuple[Any, str]] = {
    "date": (date(2001, 1, 1), "the time is 2001-01-01, a date without a time of day: give a datetime.datetime"),
    "NaT": (np.datetime64("NaT", "s"), "the time is NaT, which is no date"),
    "NaT of no unit": (np.datetime64("NaT"), "the time is NaT, which is no date"),
    "far": (np.datetime64(10**18, "s"), "dates of numpy.datetime64 are of the years 1 to 9999 here"),
}


@pytest.mark.parametrize("case", TIMES)
def test_a_date_that_is_no_time_is_one_line_and_the_step_is_still_open(tmp_path: Path, case: str) -> None:
    pytest.importorskip("cftime")
    wrong, words = TIMES[case]
    with opened(tmp_path / "x.nc", time_units="days since 2000-01-01") as history:
        history.put("T", FIELD)
        history.put("m", FIELD)
        with pytest.raises((TypeError, ValueError)) as caught:
            history.end_step(wrong)
        assert words in str(caught.value) and "\n" not in str(caught.value)
        history.end_step(np.datetime64("2000-01-09"))
    with netCDF4.Dataset(tmp_path / "x.nc") as file:
        assert list(file["time"][...]) == [0, 1, 8]


OPTIONS = {
    "half units": ({"time_units": HALF}, "time_units= '\\ud800' holds"),
    "half format": ({"format": HALF}, "format= '\\ud800' holds"),
    "format": ({"format": "cdf9"}, "there is no format 'cdf9'; use one of cdf5"),
    "calendar": ({"calendar": "maya"}, "there is no calendar 'maya'"),
    "slots": ({"slots": 65}, "65 slots are asked for; use 1 to 64"),
    "many slots": ({"slots": 65}, "use 1 to 64"),
    "memory": ({"memory": "disk"}, "there is no memory 'disk'; use one of auto, device, host"),
    "path": ({"path": "fast"}, "no path named 'fast'"),
    "start": ({"start_time": float("nan")}, "start_time is no number"),
    "option": ({"durabel": True}, "durabel"),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_a_wrong_option_is_one_line_and_makes_no_file(tmp_path: Path, case: str) -> None:
    options, words = OPTIONS[case]
    with pytest.raises((penstock.Error, TypeError, ValueError)) as caught:
        penstock.History(tmp_path / "x.nc", device="host", **options)
    assert words in str(caught.value) and "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_after_close_all_calls_are_refused_but_close(tmp_path: Path) -> None:
    history = opened(tmp_path / "x.nc")
    history.close()
    history.close()
    calls: list[Callable[[], object]] = [
        lambda: history.put("T", FIELD),
        lambda: history.end_step(5),
        lambda: history.define("U", ("x",), shape=(5,)),
        lambda: history.set_attrs({"a": 1}),
    ]
    for call in calls:
        with pytest.raises(penstock.Error, match="is closed; open another one"):
            call()
    assert history.facts().steps_published == 2


def test_a_field_of_the_host_is_refused_where_the_device_was_said(tmp_path: Path) -> None:
    history = opened(tmp_path / "x.nc", 0, memory="device")
    with pytest.raises(penstock.Error, match="the memory of variable 'T'.*not device memory; this history takes"):
        history.put("T", FIELD)


def test_a_step_that_did_not_end_is_told_by_close_and_the_others_are_there(tmp_path: Path) -> None:
    history = opened(tmp_path / "x.nc")
    history.put("T", FIELD)
    with pytest.raises(penstock.Error, match="their step did not end; call end_step"):
        history.close()
    with netCDF4.Dataset(tmp_path / "x.nc") as file:
        assert len(file.dimensions["time"]) == 2


def test_an_error_leaves_the_block_and_the_steps_are_there(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), opened(tmp_path / "x.nc", 5) as history:
        history.put("T", FIELD)
        1 / 0  # noqa: B018 - the model fails
    with netCDF4.Dataset(tmp_path / "x.nc") as file:
        assert len(file.dimensions["time"]) == 5


def test_a_history_that_is_dropped_or_forgotten_has_its_steps(tmp_path: Path) -> None:
    history = opened(tmp_path / "x.nc", 5)
    del history
    with netCDF4.Dataset(tmp_path / "x.nc") as file:
        assert len(file.dimensions["time"]) == 5
    code = f"""
import numpy as np, penstock
history = penstock.History({str(tmp_path / "y.nc")!r}, device="host")
history.define("T", ("x",), shape=(1000000,))
for step in range(5):
    history.put("T", np.full(1000000, step, "f4"))
    history.end_step(step)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=LIMIT_S)
    with netCDF4.Dataset(tmp_path / "y.nc") as file:
        assert (file["T"][:, -1] == np.arange(5)).all()


def test_names_that_cannot_be_written_are_told_at_the_first_field(tmp_path: Path) -> None:
    folder = tmp_path / "folder.nc"
    folder.mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "plain").write_bytes(b"")
    cases = {tmp_path / "missing" / "x.nc": "not_found", folder: "not_a_regular_file", tmp_path / "plain" / "x": ""}
    for name, code in cases.items():
        history = opened(name, 0)
        for _ in range(2):
            with pytest.raises(penstock.Error) as caught:
                history.put("T", FIELD)
            assert not code or caught.value.code == code
            assert str(name) in str(caught.value) and "\n" not in str(caught.value)
        history.close()
    name = tmp_path / "later" / "x.nc"
    with opened(name, 0) as history:
        with pytest.raises(penstock.Error):
            history.put("T", FIELD)
        name.parent.mkdir()
        put_both(history, 0)
    with netCDF4.Dataset(name) as file:
        assert list(file.variables) == ["time", "time_bnds", "T", "m"] and (file["T"][0] == 0).all()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(0o500)
    with pytest.raises(PermissionError):
        opened(tmp_path / "closed" / "x.nc")


def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.nc")
    with pytest.raises(penstock.Error) as caught:
        opened(tmp_path / "x.nc")
    assert str(tmp_path / "x.nc") in str(caught.value)


def test_an_existing_file_is_replaced_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.nc"
    path.write_bytes(b"older")
    with pytest.raises(FileExistsError):
        opened(path, replace=False)
    assert path.read_bytes() == b"older"
    opened(path).close()
    with netCDF4.Dataset(path) as file:
        assert len(file.dimensions["time"]) == 2


def test_a_second_history_of_a_file_is_refused_while_the_first_is_open(tmp_path: Path) -> None:
    path = tmp_path / "x.nc"
    first = opened(path)
    with pytest.raises(penstock.Error, match="another history, of this process or another one, writes it; close"):
        opened(path)
    code = f"""
import numpy as np, penstock
history = penstock.History({str(path)!r}, device="host")
history.define("T", ("x",), shape=(3,))
history.put("T", np.zeros(3, "f4"))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=LIMIT_S)
    assert "another history, of this process or another one, writes it" in done.stderr
    put_both(first, 7)
    first.close()
    with netCDF4.Dataset(path) as file:
        assert list(file["time"][...]) == [0, 1, 7]
    opened(path, 1).close()
    with netCDF4.Dataset(path) as file:
        assert list(file["time"][...]) == [0]


@pytest.mark.parametrize("form", ["cdf5", "netcdf4", "hdf5"])
def test_others_read_the_file_and_do_not_change_it(tmp_path: Path, form: str) -> None:
    h5py = pytest.importorskip("h5py")
    name, values = tmp_path / "live.nc", np.arange(6, dtype="f4")
    with penstock.History(name, device="host", format=form, time_units="seconds since 2000-01-01") as history:
        history.define("T", ["x"], like=values)
        for step in range(2):
            history.put("T", values + step)
            history.end_step(step)
        history.wait()
        with pytest.raises(penstock.Error, match="has it open"):
            penstock.open(name, write=True, device="host")
        with pytest.raises(penstock.Error, match="a history, of this program or another one, writes it"):
            penstock.save(name, {"T": values}, format="netcdf4")
        with pytest.raises(penstock.Error, match="a history, of this program or another one, writes it"):
            penstock.save(name, values, format="npy")
        with pytest.raises(penstock.Error, match="a history, of this program or another one, writes it"):
            penstock.Snapshot(name, {"x": values}, device="host").write()
        if form != "cdf5":
            with pytest.raises(OSError, match="lock"):
                h5py.File(name, "r+")
            with h5py.File(name, "r") as file:
                assert np.array_equal(file["T"][1], values + 1)
        history.put("T", values + 2)
        history.end_step(2)
    with penstock.open(name, write=True, device="host") as file:
        assert np.array_equal(file["T"].read(), [values, values + 1, values + 2])
