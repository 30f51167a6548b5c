"""A folder that History(format="raw") wrote, opened as a file of datasets: by penstock.open, load, ls and xarray."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import Ran
from format_kit import check_refuses_wrong_out, check_selections, same

import penstock
from penstock.formats import registry

VALUES = np.random.default_rng(7).random((9, 4, 6)).astype("f4")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    path = tmp_path / "run"
    units = "seconds since 2000-01-01 00:00:00"
    with penstock.History(path, device="host", format="raw", attrs={"title": "it"}, time_units=units) as history:
        history.constant("x", np.arange(6, dtype="f8"), ("x",), {"units": "m"})
        history.define("T", ("y", "x"), like=VALUES[0], attrs={"units": "K", "_FillValue": np.float32("nan")})
        history.define("count", (), shape=(), dtype="i2")
        for step, values in enumerate(VALUES):
            history.put("T", values)
            history.put("count", np.int16(step))
            history.end_step(60.0 * step)
    return path


def changed(run: Path, **members: Any) -> Path:
    """The index with other members; those of T, where they are not of the whole."""
    index = json.loads((run / "penstock.json").read_text())
    for name, value in members.items():
        (index if name in index else index["variables"]["T"])[name] = value
    (run / "penstock.json").write_text(json.dumps(index))
    return run


def test_it_is_a_file_of_datasets_that_grow_with_time(run: Path) -> None:
    with penstock.open(run, device="host") as file:
        assert (file.format, list(file)) == ("raw-history", ["time", "x", "T", "count"])
        assert dict(file.attrs) == {"title": "it", "Conventions": "CF-1.8"}
        assert (file["T"].shape, file["T"].dtype.name, file["T"].dims) == ((9, 4, 6), "float32", ("time", "y", "x"))
        assert file["T"].attrs["units"] == "K" and np.isnan(file["T"].attrs["_FillValue"])
        assert (file["x"].shape, file["count"].dtype.name) == ((6,), "int16")
        assert file["time"][...].to_numpy().tolist() == [60.0 * step for step in range(9)]
        check_selections(file, "T", VALUES)
        check_refuses_wrong_out(file["T"])
        with pytest.raises(KeyError, match="close names: T"):
            file["Tt"]
    loaded = penstock.load(run, "host")
    same(loaded["T"], VALUES)
    same(loaded["count"], np.arange(9, dtype="i2"))


@pytest.mark.parametrize("suffix", ["", ".raw", ".h5", ".nc", ".nc3", ".zarr", ".npy"])
def test_its_name_does_not_hide_it(run: Path, suffix: str) -> None:
    run.rename(run.with_suffix(suffix))
    for options in ({}, {"format": "raw"}, {"format": "raw-history"}):
        with penstock.open(run.with_suffix(suffix), device="host", **options) as file:
            same(file["T"][-1], VALUES[-1])


def test_steps_are_those_that_were_published_when_it_was_opened(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with penstock.History(path, device="host", format="raw") as history:
        history.define("T", ("x",), shape=(5,))
        opened = []
        for step in range(3):
            history.put("T", np.full(5, step, "f4"))
            history.end_step(step)
            history.wait()
            opened.append(penstock.open(path, device="host"))
            same(opened[-1]["T"][step], np.full(5, step, "f4"))
    with (path / "T.raw").open("ab") as more:  # a part of a step that a killed model left
        more.write(b"half")
    for steps, file in enumerate(opened, 1):
        assert file["T"].shape == (steps, 5)
        same(file["T"][:, 0], np.arange(steps, dtype="f4"))
        file.close()


def test_a_run_that_took_the_name_is_not_taken_for_the_first(run: Path) -> None:
    with penstock.open(run, device="host") as file, penstock.open(run, device="host") as read:
        read["T"].read()
        run.rename(run.parent / "older")
        shutil.copytree(run.parent / "older", run)
        for one in (file, read):
            with pytest.raises(penstock.Error, match="was replaced after it was opened here; open it again"):
                one["T"].read()


@pytest.mark.parametrize(
    ("members", "cause"),
    [
        ({"steps": -1}, "it counts -1 steps"),
        ({"steps": "9"}, "'steps' is '9'"),
        ({"steps": 1 << 62}, "more bytes than a file can hold"),
        ({"version": 2}, "version 1 is known"),
        ({"format": "other"}, "its format is 'other'"),
        ({"variables": []}, r"'variables' is \[\]"),
        ({"dtype": "<f5"}, "f5"),
        ({"dtype": "O"}, "Python objects"),
        ({"shape": [0, 6]}, "integers from 1"),
        ({"shape": [4]}, "names or nulls are expected"),
        ({"dimensions": ["time", None, "x"]}, "a dimension has no name"),
        ({"file": "../T.raw"}, "no name of a file in the folder"),
        ({"file": ".."}, "no name of a file in the folder"),
        ({"file": ""}, "no name of a file in the folder"),
    ],
)
def test_an_index_that_is_wrong_is_told(run: Path, members: dict[str, Any], cause: str) -> None:
    with pytest.raises(penstock.Error, match=cause) as caught:
        penstock.open(changed(run, **members), device="host")
    assert caught.value.file == str(run / "penstock.json")


def test_files_that_lack_steps_or_are_none_are_told(run: Path) -> None:
    os.truncate(run / "T.raw", 9 * 96 - 1)
    (run / "count.raw").unlink()
    (run / "x.raw").unlink()
    (run / "x.raw").mkdir()
    with penstock.open(run, device="host") as file:
        with pytest.raises(penstock.Error, match=r"are 864 bytes, the file has 863; it was cut short"):
            file["T"][0]
        for name, cause in (("count", "No such file"), ("x", "folder|directory|regular")):
            with pytest.raises(penstock.Error, match=cause) as caught:
                file[name].read()
            assert caught.value.file == str(run / f"{name}.raw")
        same(file["time"][:2], np.array([0.0, 60.0]))


@pytest.mark.parametrize("text", [b"", b"[]", b"{", b"\xff", b'{"steps":1,"steps":2}', None])
def test_what_is_no_index_is_told(run: Path, text: bytes | None) -> None:
    (run / "penstock.json").unlink()
    (run / "penstock.json").write_bytes(text) if text is not None else (run / "penstock.json").mkdir()
    with pytest.raises(penstock.Error, match="give a folder that History"):
        penstock.open(run, device="host")


def test_a_folder_that_is_none_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(penstock.Error, match=r"a folder without .*zarr\.json.* of zarr, penstock\.json of raw-history"):
        penstock.open(tmp_path, device="host")
    with pytest.raises(penstock.Error, match=r"has no penstock\.json; give a folder that History"):
        penstock.open(tmp_path, device="host", format="raw")


def test_only_a_history_writes_it(run: Path) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: penstock.open(run, write=True, device="host"),
        lambda: penstock.create(run, format="raw-history", device="host"),
        lambda: penstock.save(run, {"T": VALUES}, "host", format="raw-history"),
    ]
    for call in calls:
        with pytest.raises(penstock.Error, match=r"write it with penstock\.History\(format='raw'\)"):
            call()
    with pytest.raises(TypeError, match="is raw-history: leave them out"):
        penstock.open(run, dtype="f4", device="host")
    assert registry.content_of(str(run)) == "raw-history"
    same(penstock.load(run, "host")["T"], VALUES)


def test_ls_lists_it(penstock: Callable[..., Ran], run: Path) -> None:
    told = penstock("ls", run, "--json")
    assert (told.code, told.json["format"]) == (0, "raw-history"), told.err
    found = {one["name"]: one for one in told.json["datasets"]}
    assert (found["T"]["shape"], found["T"]["dims"]) == ([9, 4, 6], ["time", "y", "x"])
    assert found["T"]["bytes"] == found["T"]["stored_bytes"] == VALUES.nbytes
    assert [one["problem"] for one in told.json["datasets"]] == [None] * 4


def test_xarray_reads_it(run: Path) -> None:
    xarray = pytest.importorskip("xarray")
    with xarray.open_dataset(run, engine="penstock") as opened:
        assert np.array_equal(opened["T"].sel(x=3.0).values, VALUES[:, :, 3])
        assert opened["time"].values[-1] == np.datetime64("2000-01-01T00:08:00")
        assert (opened["T"].units, opened.title, opened.encoding["unlimited_dims"]) == ("K", "it", {"time"})
