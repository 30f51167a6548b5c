"""Lengths of unlimited dimensions: what asking for them takes, and that they are those of the file as it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

h5py = pytest.importorskip("h5py")
netCDF4 = pytest.importorskip("netCDF4")
from h5py import h5r  # noqa: E402

import penstock  # noqa: E402


def make(path: Path, variables: int, steps: int = 2) -> None:
    """The last variable has all steps, the others have one."""
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", None)
        file.createDimension("x", 3)
        for number in range(variables):
            length = steps if number == variables - 1 else 1
            file.createVariable(f"v{number}", "f4", ("time", "x"))[0:length] = np.full((length, 3), number)


class Counting:
    """As h5r, and counts what is looked up by a reference."""

    Reference = h5r.Reference

    def __init__(self) -> None:
        self.calls = 0

    def dereference(self, *arguments: object) -> object:
        self.calls += 1
        return h5r.dereference(*arguments)


def test_the_work_for_a_variable_does_not_grow_with_their_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = {}
    for variables in (50, 200):
        make(tmp_path / "x.nc", variables)
        counting = Counting()
        with monkeypatch.context() as patch, penstock.open(tmp_path / "x.nc", device="host") as file:
            patch.setattr("penstock.formats.netcdf4.dims.h5r", counting)
            assert {file[name].shape for name in file} == {(2, 3)}
        calls[variables] = counting.calls / variables
    assert calls[200] <= calls[50]


def test_a_length_is_that_of_the_file_after_it_was_appended_to(tmp_path: Path) -> None:
    path = tmp_path / "x.nc"
    make(path, 2)
    with penstock.open(path, device="host") as file:
        assert {file[name].shape for name in file} == {(2, 3)}
    with penstock.open(path, write=True, device="host") as file:
        assert (file["v0"].shape, file["v1"].shape) == ((1, 3), (2, 3))
        file["v0"].append(np.ones((4, 3), "f4"))
        file["v1"].append(np.ones((1, 3), "f4"))
        assert (file["v0"].shape, file["v1"].shape) == ((5, 3), (3, 3))
    with penstock.open(path, device="host") as file:
        assert {file[name].shape for name in file} == {(5, 3)}


def test_a_reader_does_not_tell_the_length_of_a_file_that_has_grown(tmp_path: Path) -> None:
    path = tmp_path / "x.nc"
    with penstock.History(path, format="netcdf4", device="host") as history:
        for name in ("T", "U"):
            history.define(name, ("x",), shape=(3,))

        def step(time: int) -> None:
            for name in ("T", "U"):
                history.put(name, np.ones(3, "f4"))
            history.end_step(time)
            history.wait()

        step(1)
        with penstock.open(path, device="host") as reader:
            assert reader["T"].shape == (1, 3)
            step(2)
            with pytest.raises(penstock.Error, match="open it again"):
                reader["U"]
        with penstock.open(path, device="host") as reader:
            assert {reader[name].shape for name in ("T", "U")} == {(2, 3)}
