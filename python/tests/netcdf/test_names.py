"""Names of netCDF: as long as the netCDF library can read them, and not longer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

netCDF4 = pytest.importorskip("netCDF4")
pytest.importorskip("h5py")
from hdf5_kit import debian_tool, run_tool  # noqa: E402

import penstock  # noqa: E402

NAMES = {"variable": "v", "dimension": "d", "attribute": "a"}


def make(path: Path, names: dict[str, str]) -> None:
    with penstock.create(path, device="host") as file:
        layout = {"dimensions": (names["dimension"],), "attributes": {names["attribute"]: 1}}
        file.create_dataset(names["variable"], (3,), "f4", **layout)[...] = np.arange(3, dtype="f4")
        file.attrs[names["attribute"]] = 2


@pytest.mark.parametrize("suffix", ["nc", "nc3"])
@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("letter", ["n", "ä"])
def test_the_library_reads_the_longest_names(tmp_path: Path, suffix: str, kind: str, letter: str) -> None:
    names = NAMES | {kind: "n" + letter * (254 // len(letter.encode()))}
    assert len(names[kind].encode()) == 255
    make(tmp_path / f"x.{suffix}", names)
    run_tool(debian_tool("ncdump"), tmp_path / f"x.{suffix}")
    with netCDF4.Dataset(tmp_path / f"x.{suffix}") as file:
        assert list(file.variables) == [names["variable"]]
        assert list(file.dimensions) == [names["dimension"]]
        assert file.ncattrs() == file[names["variable"]].ncattrs() == [names["attribute"]]
        assert file[names["variable"]][...].tolist() == [0, 1, 2]


@pytest.mark.parametrize("suffix", ["nc", "nc3"])
@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("length", [256, 257, 5000])
def test_longer_names_are_refused_by_name(tmp_path: Path, suffix: str, kind: str, length: int) -> None:
    names = NAMES | {kind: "n" * length}
    with pytest.raises(
        penstock.Error, match=f"'nnn.* is not a valid name for an? {kind}.* {length} bytes, .* at most 255"
    ):
        make(tmp_path / f"x.{suffix}", names)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", ["nc", "nc3"])
def test_a_refused_name_leaves_nothing_in_the_file(tmp_path: Path, suffix: str) -> None:
    with penstock.create(tmp_path / f"x.{suffix}", device="host") as file:
        file["v"] = np.arange(3, dtype="f4")
        for target in (file, file["v"]):
            with pytest.raises(penstock.Error, match="256 bytes"):
                target.attrs["n" * 256] = 1
        for name in ("n" * 256, *(["g" * 256 + "/n"] if suffix == "nc" else [])):
            with pytest.raises(penstock.Error, match="256 bytes"):
                file.create_dataset(name, (4,), "f4", dimensions=("late",))
        with pytest.raises(penstock.Error, match="256 bytes"):
            file.create_dataset("w", (4,), "f4", dimensions=("n" * 256,))
    with netCDF4.Dataset(tmp_path / f"x.{suffix}") as file:
        assert list(file.variables) == ["v"]
        assert len(file.dimensions) == 1
        assert not file.groups
        assert not file.ncattrs()
