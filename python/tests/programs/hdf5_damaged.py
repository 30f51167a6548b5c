"""Reads damaged HDF5 files; run by hdf5/test_fuzz.py as a process of its own, because HDF5 itself may crash on them.

Arguments: folder, number of files, seed. Prints how many gave data.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
from format_kit import mutations
from hdf5_kit import whole

from penstock import Error
from penstock.formats.hdf5.metadata import Metadata
from penstock.formats.hdf5.reader import Hdf5
from penstock.formats.hdf5.write import Hdf5Writer
from penstock.formats.netcdf4.reader import NetCDF4

MOST_BYTES = 1e7


def make(path: Path, libver: str) -> bytes:
    with h5py.File(path, "w", libver=libver) as file:
        file["g/a"] = np.arange(50.0)
        file.create_dataset("c", data=np.arange(60).reshape(6, 10), chunks=(2, 5), maxshape=(None, 10))
        file.create_dataset("z", data=np.arange(600), chunks=(100,), compression="gzip")
        file["t"] = np.zeros(3, [("a", "f4"), ("b", "i2", (3,))])
        file["c"].attrs.update(u="m", n=[1, 2])
        file["c"].make_scale("c")
        file["s"] = h5py.SoftLink("/g/a")
        file["words"] = ["one", "another"]
        file.create_dataset("lists", (3,), h5py.vlen_dtype("i4"))[0] = [1, 2]
        file.create_dataset("refs", (2,), h5py.ref_dtype)[0] = file["g/a"].ref
    return path.read_bytes()


def read_all(container: Metadata) -> None:
    for name in container.names():
        info = container.info(name)
        dict(info.attributes)
        if info.refusal or np.prod([float(extent) for extent in info.shape]) * info.dtype.itemsize > MOST_BYTES:
            continue
        if info.dtype.host_only:
            container.values(name, whole(info.shape))
        elif container.table(name, whole(info.shape)).encoded.any():
            container.decode(name, whole(info.shape))


def survives(opened: Callable[[], Metadata]) -> bool:
    """Data, or an Error of one line, or a KeyError of a name that went."""
    try:
        container = opened()
        try:
            read_all(container)
        finally:
            container.close()
    except (Error, KeyError) as error:
        assert str(error).count("\n") == 0
        return False
    return True


def main(folder: Path, count: int, seed: int) -> None:
    path, good = folder / "x.h5", 0
    for libver in ("earliest", "v108", "v110"):
        for raw in mutations(make(path, libver), count // 3, seed):
            (folder / "given.h5").write_bytes(raw)  # as it was, should this process die of it
            path.write_bytes(raw)
            good += survives(lambda: Hdf5(path)) + survives(lambda: NetCDF4(path))
            good += survives(lambda: Hdf5Writer(path, append=True))
    print(good)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
