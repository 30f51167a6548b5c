"""A snapshot written by the Fortran example is what h5py reads: arrays turned round, scalars, arrays and text."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import h5py
import numpy as np
import pytest
from c_abi.snapshot_rig import LIBRARY

TREE = Path(__file__).parents[3]
pytestmark = [
    pytest.mark.skipif(not LIBRARY.exists(), reason="the package is not installed: it has no library"),
    pytest.mark.skipif(shutil.which("gfortran") is None, reason="there is no gfortran"),
]


def test_the_example_writes_what_h5py_reads(tmp_path: Path) -> None:
    sources = [TREE / "bindings" / "fortran" / name for name in ("penstock.f90", "penstock_snapshot.f90")]
    sources.append(TREE / "examples" / "particles" / "particles.f90")
    library = [str(LIBRARY), f"-Wl,-rpath,{LIBRARY.parent}"]
    subprocess.run(["gfortran", *map(str, sources), *library, "-o", "particles"], cwd=tmp_path, check=True)
    ran = subprocess.run(["./particles"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert ran.stdout == "44000 bytes of fields\n"
    with h5py.File(tmp_path / "particles.hdf5") as file:
        group = file["PartType1"]
        assert {name: (one.shape, one.dtype.str) for name, one in group.items()} == {
            "Coordinates": ((1000, 3), "<f8"),
            "Velocities": ((1000, 3), "<f4"),
            "ParticleIDs": ((1000,), "<u8"),
        }
        np.testing.assert_array_equal(group["ParticleIDs"][...], np.arange(1, 1001))
        np.testing.assert_array_equal(
            group["Velocities"][...], group["Coordinates"][...].astype("f4") - np.float32(0.5)
        )
        assert file["Header"].attrs["NumPart_Total"][1] == 1000 and file["Header"].attrs["MassTable"][1] == 0.001
        assert (
            file["Parameters"].attrs.get_id("Softening").shape == () and file["Config"].attrs["Code"] == b"an example"
        )
