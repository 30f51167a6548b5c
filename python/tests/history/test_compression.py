"""Compressed histories: h5py and the netCDF library read the bits that were put, and find what was asked for."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from places import ROOT

import penstock

h5py = pytest.importorskip("h5py")
netCDF4 = pytest.importorskip("netCDF4")
STEPS = 3
SHAPE = (5, 70, 90)
NUMBERS = {"gzip": [2, 1], "zstd": [2, 32015], "lz4": [2, 32004]}  # of HDF5's filters


def fields() -> np.ndarray:
    """Smooth ones, with bits in all places and with all that is special."""
    smooth = np.add.outer(np.linspace(0, 1, STEPS), np.linspace(200, 300, int(np.prod(SHAPE)))).astype("f4")
    smooth[:, :6] = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-42, 3e38], "f4")
    return smooth.reshape(STEPS, *SHAPE)


def test_memory_of_the_device_comes_down_and_is_compressed(tmp_path: Path) -> None:
    path, context = tmp_path / "x.nc", penstock.Context("host")
    buffer = context.allocate(fields()[0].nbytes)
    field = penstock.Array(buffer, "float32", SHAPE)
    options = {"format": "netcdf4", "compression": "gzip", "slots": 1}
    with penstock.History(path, context=context, memory="device", **options) as history:
        history.define("T", ("z", "y", "x"), like=field, chunk_shape=(2, 33, 90))
        history.define("plain", ("z", "y", "x"), like=field, compression="none")
        for values in fields():
            context.copy_to_device(buffer, values)
            history.put("T", field)
            history.put("plain", field)
            history.end_step(float(history.facts().steps_ended))
    with h5py.File(path) as file:
        for name in ("T", "plain"):
            assert file[name][...].tobytes() == fields().tobytes()


def write(path: Path, **options: object) -> penstock.History:
    history = penstock.History(path, device="host", **options)  # type: ignore[arg-type]
    values = fields()
    history.define("T", ("z", "y", "x"), like=values[0])
    history.define("odd", ("z", "y", "x"), like=values[0], chunk_shape=(2, 70, 31), file_dims=("x", "y", "z"))
    history.define("m", ("z", "y", "x"), shape=SHAPE, source_dtype="f8", dtype="f8", statistic="mean")
    history.define("count", ("x",), shape=SHAPE[2:], dtype="u1")
    history.define("plain", ("z", "y", "x"), like=values[0], compression="none")
    for step in range(STEPS):
        history.put("T", values[step])
        history.put("odd", values[step])
        history.put("m", values[step].astype("f8"))
        history.put("count", np.full(SHAPE[2:], step, "u1"))
        history.put("plain", values[step])
        history.end_step(step)
    history.close()
    return history


def check(read: object) -> None:
    values = fields()
    assert np.asarray(read("T")).tobytes() == values.tobytes()  # type: ignore[operator]
    assert np.asarray(read("odd")).tobytes() == values.transpose(0, 3, 2, 1).tobytes()  # type: ignore[operator]
    assert np.array_equal(read("m"), values.astype("f8"), equal_nan=True)  # type: ignore[operator]
    assert np.array_equal(read("count")[:, 4], np.arange(STEPS))  # type: ignore[operator]
    assert np.asarray(read("plain")).tobytes() == values.tobytes()  # type: ignore[operator]


@pytest.mark.parametrize("shuffle", [None, False])
@pytest.mark.parametrize("compression", NUMBERS)
@pytest.mark.parametrize("format", ["netcdf4", "hdf5"])
def test_stock_readers_find_the_bits_that_were_put(
    tmp_path: Path, format: str, compression: str, shuffle: bool | None
) -> None:
    if compression != "gzip":
        pytest.importorskip("hdf5plugin")
    path = tmp_path / "x.nc"
    facts = write(path, format=format, compression=compression, shuffle=shuffle).facts()
    with h5py.File(path) as file:
        check(lambda name: file[name][...])
        plist = file["T"].id.get_create_plist()
        wanted = NUMBERS[compression][1 if shuffle is False else 0 :]
        assert [plist.get_filter(i)[0] for i in range(plist.get_nfilters())] == wanted
        assert file["T"].chunks == (1, *SHAPE)
        assert file["odd"].chunks == (1, 31, 70, 2)
        assert file["plain"].compression is None
        names = ("time", "time_bnds", "T", "odd", "m", "count", "plain")
        stored = sum(file[name].id.get_storage_size() for name in names)
        assert facts.stored_bytes == stored < STEPS * facts.step_bytes
    if format == "netcdf4" and compression == "gzip":
        with netCDF4.Dataset(path) as file:
            file.set_auto_mask(False)
            check(lambda name: file[name][...])
            assert file["T"].filters()["zlib"] and file["T"].filters()["complevel"] == 4
            assert file["T"].filters()["shuffle"] is (shuffle is None)
            assert file["odd"].chunking() == [1, 31, 70, 2]


def test_a_level_is_in_the_file_and_stock_writers_add_to_it(tmp_path: Path) -> None:
    path = tmp_path / "x.nc"
    write(path, format="netcdf4", compression="gzip", compression_level=2)
    with netCDF4.Dataset(path, "r+") as file:
        assert file["T"].filters()["complevel"] == 2
        file["T"][STEPS] = np.full(SHAPE, 4.5, "f4")
        file["T"][0] = np.full(SHAPE, 1.5, "f4")
    with h5py.File(path) as file:
        assert (file["T"][STEPS] == 4.5).all() and (file["T"][0] == 1.5).all()
        assert file["T"][1].tobytes() == fields()[1].tobytes()


def test_large_fields_have_chunks_of_whole_layers(tmp_path: Path) -> None:
    path = tmp_path / "x.nc"
    with penstock.History(path, device="host", format="netcdf4", compression="gzip", compression_level=1) as history:
        history.define("T", ("z", "y", "x"), shape=(7, 300, 400), compression="gzip", compression_level=3)
        field = np.arange(7 * 300 * 400, dtype="f4").reshape(7, 300, 400)
        for step in range(4):
            history.put("T", field + step)
            history.end_step(step)
    with netCDF4.Dataset(path) as file:
        assert file["T"].chunking() == [1, 2, 300, 400]
        assert file["T"].filters()["complevel"] == 3
        for step in range(4):
            assert np.array_equal(file["T"][step], field + step)


HDF5 = {"format": "hdf5"}
REFUSED = {
    "classic": ({"compression": "gzip"}, "'cdf5' stores no compressed data; use the format netcdf4, hdf5 or zarr"),
    "name": ({**HDF5, "compression": "rar"}, "no compression 'rar'; use one of gzip, zstd, lz4, or none"),
    "level": ({**HDF5, "compression": "gzip", "compression_level": 10}, "gzip has no level 10; give one of 1 to 9"),
    "low": ({**HDF5, "compression": "gzip", "compression_level": 0}, "levels begin with 1"),
    "lz4": ({**HDF5, "compression": "lz4", "compression_level": 1}, "lz4 has no level 1; leave the level out"),
    "alone": ({**HDF5, "compression_level": 1}, "compression_level= is for a history or a variable with"),
    "shuffle": ({**HDF5, "shuffle": True}, "shuffle= is for a history or a variable with compression="),
    "threads": ({**HDF5, "encode_threads": -1}, "encode_threads"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_option_is_one_line_and_makes_no_file(tmp_path: Path, case: str) -> None:
    options, words = REFUSED[case]
    with pytest.raises((penstock.Error, TypeError, ValueError)) as caught:
        penstock.History(tmp_path / "x.nc", device="host", **options)  # type: ignore[arg-type]
    assert words in str(caught.value) and "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_compression_of_one_variable_is_refused_where_the_file_has_none(tmp_path: Path) -> None:
    with penstock.History(tmp_path / "x.nc", device="host") as history:
        with pytest.raises(penstock.Error, match=r"compress variable 'T'.*'cdf5' stores no compressed data"):
            history.define("T", ("x",), shape=(5,), compression="zstd")
        with pytest.raises(penstock.Error, match="chunks and no filters; compress it, or give no chunks"):
            history.define("T", ("x",), shape=(5,), chunk_shape=(5,))


# Writes noise, which becomes no smaller, to a file that may have so many bytes.
MODEL = """
import sys, numpy as np, penstock, resource
resource.setrlimit(resource.RLIMIT_FSIZE, (2_200_000, 2_200_000))
history = penstock.History(sys.argv[1], device="host", format="netcdf4", compression="gzip", shuffle=False)
for name in ("a", "b"):
    history.define(name, ("x",), shape=(50_000,))
noise = np.random.default_rng(1)
for step in range(10):
    try:
        for name in ("a", "b"):
            history.put(name, noise.integers(0, 2**31, 50_000).astype("i4").view("f4"))
        history.end_step(step)
        history.wait()
    except penstock.Error as error:
        print(error)
try:
    history.close()
except penstock.Error as error:
    print("close", error)
print(history.facts().steps_published)
"""


def test_a_full_disk_leaves_the_steps_before_it_and_names_step_and_variable(tmp_path: Path) -> None:
    path = tmp_path / "x.nc"
    done = subprocess.run([sys.executable, "-c", MODEL, path], capture_output=True, text=True, timeout=60)
    *errors, last = done.stdout.splitlines()
    steps = int(last)
    assert steps == 5, done.stderr  # of about 380,000 bytes each
    assert re.search(f"step {steps + 1}, variable '[ab]': File too large", errors[0]) and errors[-1].startswith("close")
    noise = np.random.default_rng(1)
    with netCDF4.Dataset(path) as file:
        assert len(file["time"]) == steps
        for step in range(steps):
            for name in ("a", "b"):
                found = file[name][step].data.view("i4")
                assert np.array_equal(found, noise.integers(0, 2**31, 50_000).astype("i4"))


def test_the_program_behind_the_figures_prints_what_each_way_took() -> None:
    pytest.importorskip("netCDF4")
    command = [sys.executable, str(ROOT / "examples" / "history" / "gzip_rates.py"), "1", "4"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 18 and lines[0].startswith("with noise: MB a second of a core")
    sizes = {line[:22].strip(): float(line.split()[-1]) for line in lines[1:9]}
    for level in (1, 2, 4):  # what is stored as it is makes no file larger
        assert sizes[f"history, gzip {level}"] < 1.02 * sizes[f"netCDF4, zlib {level}"]
