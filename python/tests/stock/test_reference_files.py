"""The reference files that packages bring for their own tests are read as the packages read them.

Files of h5py, xarray, SciPy, NumPy and Matplotlib, where they are installed with their data; a package without is
skipped with its reason. A dataset that Penstock refuses has its reason, and is no number.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import Error


def _files(package: str, *suffixes: str) -> list[Path]:
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        return []
    folder = Path(found.origin).parent
    return sorted(one for one in folder.rglob("*") if one.suffix in suffixes and one.is_file())


def _same(dataset: Any, stock: Any) -> None:
    expected = np.asarray(stock)
    found = np.asarray(dataset[...])
    assert found.shape == expected.shape
    if expected.dtype.kind == "O":
        text = lambda one: one.decode() if isinstance(one, bytes) else one  # noqa: E731
        assert [text(one) for one in found.ravel()] == [text(one) for one in expected.ravel()]
        return
    native = expected.dtype if expected.dtype.names else expected.dtype.newbyteorder("=")
    assert found.tobytes() == np.ascontiguousarray(expected.astype(native)).tobytes()


def _of_hdf5(path: Path) -> dict[str, Any]:
    import h5py

    with h5py.File(path) as file:
        names: list[str] = []
        file.visititems(lambda name, one: names.append(name) if isinstance(one, h5py.Dataset) else None)
        return {name: file[name][()] for name in names}


def _of_netcdf(path: Path) -> dict[str, Any]:
    import netCDF4

    with netCDF4.Dataset(path) as file:
        file.set_auto_maskandscale(False)
        file.set_auto_chartostring(False)
        return {name: one[...] for name, one in file.variables.items()}


def _of_npy(path: Path) -> dict[str, Any] | None:
    """None: NumPy refuses it, as files of Python objects."""
    try:
        return {"data": np.load(path)}
    except ValueError:
        return None


_PACKAGES = {
    "h5py": ((".h5", ".hdf5"), _of_hdf5),
    "xarray": ((".nc", ".nc3"), _of_netcdf),
    "scipy": ((".nc",), _of_netcdf),
    "numpy": ((".npy",), _of_npy),
    "matplotlib": ((".npy",), _of_npy),
}


@pytest.mark.parametrize("package", _PACKAGES)
def test_reference_files_read_the_same(package: str) -> None:
    suffixes, read = _PACKAGES[package]
    files = _files(package, *suffixes)
    if not files:
        pytest.skip(f"{package} is not installed, or has no files of data: {', '.join(suffixes)}")
    compared = 0
    for path in files:
        wanted = read(path)
        if wanted is None:
            with pytest.raises(Error), ps.open(path, device="host") as file:
                file["data"].read()
            continue
        with ps.open(path, device="host") as file:
            assert set(wanted) <= set(file)
            for name, stock in wanted.items():
                try:
                    _same(file[name], stock)
                except Error as refusal:
                    assert refusal.cause, (path, name)
                    continue
                compared += 1
    assert compared
