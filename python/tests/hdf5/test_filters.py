"""HDF5 filters that are not there: the advice names what has them. Each set is compared with the package itself."""

from __future__ import annotations

import importlib.util
import itertools
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.formats.hdf5.filters import _PIPELINE as UNDONE_HERE, PLUGIN

h5py = pytest.importorskip("h5py")

from hdf5_kit import with_filter  # noqa: E402

WITHOUT_PLUGIN = """
import importlib.util, sys
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "hdf5plugin" else find(name, *rest)
from hdf5_kit import with_filter
with_filter(sys.argv[1], *map(int, sys.argv[2:]))
import penstock
with penstock.open(sys.argv[1], device="host") as file:
    print(file["d"].filters)
    try:
        file["d"].read()
    except penstock.Error as error:
        print(error)
"""

WRITE = """
import sys, h5py, hdf5plugin, numpy as np
folder, kind, codec = sys.argv[1:]
how = getattr(hdf5plugin, kind)(**({"cname": codec} if codec else {}))
with h5py.File(folder + "/x.h5", "w") as file:
    file.create_dataset("d", data=np.load(folder + "/d.npy"), chunks=(32, 64), **how)
"""


def need_hdf5plugin() -> Any:
    """Version 7.1 on; its module has no `__version__`."""
    found = pytest.importorskip("hdf5plugin")
    if tuple(int(part) for part in version("hdf5plugin").split(".")[:2]) < (7, 1):
        pytest.skip(f"hdf5plugin {version('hdf5plugin')} is older than 7.1")
    return found


def test_the_set_is_that_of_the_package() -> None:
    hdf5plugin = need_hdf5plugin()
    has = set(hdf5plugin.FILTERS.values())
    assert has >= PLUGIN, f"advice would name hdf5plugin {hdf5plugin.version} for {PLUGIN - has}"
    if hdf5plugin.version.startswith("7."):  # a later one may have more
        assert has <= PLUGIN, f"hdf5plugin {hdf5plugin.version} has {has - PLUGIN} too"


@pytest.mark.parametrize(
    ("numbers", "words", "absent"),
    [
        ([32019], "lacks HDF5 filter jpeg; no package of Python is known", "pip"),
        ([32002], "lacks HDF5 filter mafisc; no package of Python is known", "pip"),
        ([400], "lacks HDF5 filter 400; no package of Python is known to have it: HDF5_PLUGIN_PATH", "pip"),
        ([200], "use an h5py whose HDF5 library was built with 200", "pip"),
    ],
)
def test_what_no_package_has_is_not_promised(numbers: list[int], words: str, absent: str, tmp_path: Path) -> None:
    with_filter(tmp_path / "x.h5", *numbers)
    with ps.open(tmp_path / "x.h5", device="host") as file, pytest.raises(ps.Error) as caught:
        file["d"].read()
    assert words in str(caught.value)
    assert absent not in str(caught.value)
    assert caught.value.code == "unsupported"
    assert "damaged" not in str(caught.value)


@pytest.mark.parametrize("number", sorted(PLUGIN - set(UNDONE_HERE)))
def test_what_hdf5plugin_has_is_asked_of_it(number: int, tmp_path: Path) -> None:
    said = in_a_process(tmp_path / "x.h5", number)
    assert "pip install hdf5plugin" in said
    assert f"filter {number}" not in said, "it has a name"


def test_two_filters_of_two_places_are_both_advised(tmp_path: Path) -> None:
    said = in_a_process(tmp_path / "x.h5", 32019, 32015)
    assert "jpeg, zstd" in said
    assert "no package of Python is known to have it" in said
    assert "pip install hdf5plugin" in said


def in_a_process(path: Path, *numbers: int) -> str:
    """What a process says that lacks hdf5plugin: filters that were loaded stay."""
    command: list[Any] = [sys.executable, "-c", WITHOUT_PLUGIN, path, *map(str, numbers)]
    plain = {name: value for name, value in os.environ.items() if name != "HDF5_PLUGIN_PATH"}  # hdf5plugin sets it
    return subprocess.run(command, capture_output=True, text=True, check=True, env=plain).stdout


@pytest.mark.skipif(importlib.util.find_spec("hdf5plugin") is None, reason="hdf5plugin is not installed")
def test_what_hdf5plugin_undoes_is_read(tmp_path: Path) -> None:
    import hdf5plugin

    with h5py.File(tmp_path / "x.h5", "w") as file:
        for name, options in (("zstd", hdf5plugin.Zstd()), ("bzip2", hdf5plugin.BZip2()), ("lzf", "lzf")):
            file.create_dataset(name, data=np.arange(1000), chunks=(100,), compression=options)
    with ps.open(tmp_path / "x.h5", device="host") as file:
        for name in file:
            assert np.array_equal(file[name][...], np.arange(1000)), name


# What hdf5plugin 7 and h5py write, and where Penstock decodes it.
WRITTEN: dict[str, tuple[str, dict[str, Any]]] = {
    **{"gzip": ("cores", {"compression": "gzip"}), "lzf": ("cores", {"compression": "lzf"})},
    **{"szip": ("cores", {"compression": "szip"}), "shuffle": ("cores", {"compression": "gzip", "shuffle": True})},
    **{"scaleoffset": ("cores", {"scaleoffset": 3}), "fletcher32": ("cores", {"fletcher32": True, "shuffle": True})},
    **{f"{name} {one}": ("cores", {}) for name in ("Blosc", "Blosc2") for one in ("blosclz", "lz4", "zlib", "zstd")},
    **{f"Bitshuffle {one}": ("cores", {}) for one in ("none", "lz4", "zstd")},
    **{name: ("cores", {}) for name in ("LZ4", "Zstd", "BZip2")},
    **{name: ("library", {}) for name in ("Zfp", "SZ", "SZ3", "Sperr")},
}


@pytest.mark.parametrize("name", WRITTEN)
def test_each_filter_that_is_written_is_decoded_where_the_page_says(name: str, tmp_path: Path) -> None:
    hdf5plugin = need_hdf5plugin()
    where, how = WRITTEN[name]
    kind, _, codec = name.partition(" ")
    if not how:
        make = getattr(hdf5plugin, kind, None)
        if make is None or not h5py.h5z.filter_avail(make.filter_id):
            pytest.skip(f"this build of hdf5plugin has no {kind}")
        how = dict(make(cname=codec) if codec else make())
    array = np.sin(np.arange(64) / 50).repeat(64).astype("f4").reshape(64, 64)  # which LZF makes smaller too
    np.save(tmp_path / "d.npy", array)
    try:
        with h5py.File(tmp_path / "x.h5", "w") as file:
            file.create_dataset("d", data=array, chunks=(32, 64), **how)
    except ValueError:  # another package that a test of this process imported brought a filter of its own
        command: list[Any] = [sys.executable, "-c", WRITE, tmp_path, kind, codec]
        plain = {key: value for key, value in os.environ.items() if key != "HDF5_PLUGIN_PATH"}
        subprocess.run(command, check=True, env=plain)
    with h5py.File(tmp_path / "x.h5") as stock, ps.open(tmp_path / "x.h5", device="host") as file:
        assert np.array_equal(file["d"][...], stock["d"][...])
        decoders = set(file.evidence()["formats"]["decoders"])
    assert decoders and ("host by HDF5" in decoders) == (where == "library"), decoders


@pytest.mark.parametrize("order", list(itertools.permutations(("shuffle", "fletcher32", "deflate"))), ids="-".join)
def test_filters_in_any_order_give_what_the_hdf5_library_gives(order: tuple[str, ...], tmp_path: Path) -> None:
    from h5py import h5d, h5p, h5s, h5t, h5z

    arguments = {"scaleoffset": (h5z.SO_INT, 0), "deflate": (4,)}
    made = h5p.create(h5p.DATASET_CREATE)
    made.set_chunk((4096,))
    for name in ("scaleoffset", *order):  # which knows numbers only, so that it is always the first
        getattr(made, f"set_{name}")(*arguments.get(name, ()))
    values = np.arange(40_960, dtype="<i4") * 7 % 100_003
    with h5py.File(tmp_path / "x.h5", "w") as file:
        x = h5d.create(file.id, b"x", h5t.STD_I32LE, h5s.create_simple(values.shape), dcpl=made)
        h5py.Dataset(x)[...] = values
    with h5py.File(tmp_path / "x.h5") as file, ps.open(tmp_path / "x.h5", device="host") as ours:
        assert np.array_equal(file["x"][...], ours["x"][...].to_numpy())
