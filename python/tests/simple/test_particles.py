"""Particle snapshots in the layouts of known codes, read by stock tools under all of their names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

h5py = pytest.importorskip("h5py")
import format_kit as kit  # noqa: E402

import penstock  # noqa: E402
from penstock.formats.particles import PRESETS, create_particles, preset  # noqa: E402

BYTES = {"h5bench": 32, "h5-gds": 36, "hacc": 38, "gothic": 52}
COUNT = 1000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "snapshot.h5"


def fill(path: Path, name: str, **options: object) -> dict[str, np.ndarray]:
    """Random members, by name of the member."""
    values = {}
    with penstock.create(path, device="host") as file:
        for number, (member, dataset) in enumerate(create_particles(file, name, COUNT, **options).items()):
            values[member] = kit.sample(dataset.shape, dataset.dtype.dtype, number)
            dataset[...] = values[member]
    return values


@pytest.mark.parametrize("name", BYTES)
def test_members_lie_under_the_names_of_the_code(path: Path, name: str) -> None:
    values = fill(path, name)
    assert preset(name).particle_bytes == BYTES[name]
    assert sum(one.nbytes for one in values.values()) == COUNT * BYTES[name]
    with h5py.File(path) as file:
        for member, place in preset(name).paths().items():
            assert np.array_equal(file[place][...], values[member])
    with penstock.open(path, device="host") as file:
        for member, place in preset(name).paths().items():
            kit.same(file[place].read(), values[member])


@pytest.mark.parametrize("name", ["h5-gds", "gothic"])
def test_gadget_readers_find_theirs_in_the_same_bytes(path: Path, name: str) -> None:
    values = fill(path, name, header={"Time": 0.5, "BoxSize": 100.0})
    with h5py.File(path) as file:
        assert np.array_equal(file["PartType1/Coordinates"][...], values["position"])
        assert file["PartType1/Masses"] == file[preset(name).paths()["mass"]]
        header = file["Header"].attrs
        assert header["NumPart_ThisFile"].tolist() == [0, COUNT, 0, 0, 0, 0]
        assert (header["Time"], header["BoxSize"], header["NumFilesPerSnapshot"]) == (0.5, 100.0, 1)
    logical = sum(one.nbytes for one in values.values())
    assert path.stat().st_size < logical + 12 * 4096  # two names, one set of bytes


def test_a_group_of_ones_own(path: Path) -> None:
    values = fill(path, "h5bench", group="Timestep_7", header={"step": 7})
    with h5py.File(path) as file:
        assert np.array_equal(file["Timestep_7/px"][...], values["px"])
        assert file["Timestep_7"].attrs["step"] == 7


def test_a_snapshot_opens_in_yt(path: Path) -> None:
    yt = pytest.importorskip("yt")
    values = fill(path, "gothic", header={"BoxSize": 100.0, "Time": 0.5})
    snapshot = yt.load(str(path))
    assert type(snapshot).__name__ == "GadgetHDF5Dataset"
    data = snapshot.all_data()
    assert len(data["PartType1", "ParticleIDs"]) == COUNT
    assert np.isclose(float(data["PartType1", "Masses"].sum().in_units("code_mass")), values["mass"].sum())


def test_what_is_unknown_is_named(path: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=", ".join(PRESETS)):
        preset("enzo")
    pytest.importorskip("netCDF4")
    with pytest.raises(penstock.Error, match="netcdf4"), penstock.create(tmp_path / "x.nc", device="host") as file:
        create_particles(file, "gothic", 3)


@pytest.mark.parametrize(
    ("count", "kind"), [(-1, ValueError), (1 << 63, ValueError), (1.5, TypeError), ("3", TypeError)]
)
def test_a_count_that_is_none_is_refused_by_name(path: Path, count: Any, kind: type[Exception]) -> None:
    with penstock.create(path, device="host") as file:
        with pytest.raises(kind, match="^count is"):
            create_particles(file, "gothic", count)
        assert list(file) == []
