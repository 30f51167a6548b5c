"""What C reads of HDF5 files by name is what h5py reads of them, in each version of the format.

Files are made by h5py and netCDF4; the parser under test is the library's own. See src/formats/hdf5.
"""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from c_abi.dataset_rig import LIBRARY, CDatasets, CError

import penstock as ps

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="the package is not installed: it has no library")

VERSIONS = ("earliest", "v108", "v110", "latest")
LIMITS = {  # maximal shapes of a dataset of 13 x 11: of each there is another index of chunks
    "fixed": (13, 11),
    "room": (20, 30),
    "rows": (None, 11),
    "columns": (20, None),
    "both": (None, None),
}
FILTERS: dict[str, dict[str, Any]] = {
    "plain": {},
    "gzip": {"compression": "gzip", "shuffle": True, "fletcher32": True},
    "lzf": {"compression": "lzf"},
    "offset": {"scaleoffset": 0},
}
TYPES = ("int8", ">i2", "int32", ">u8", "float16", "float32", ">f8", "complex64", ">c16", "bool", "S5", "V3")


def _same(file: CDatasets, name: str, wanted: np.ndarray) -> None:
    """All of it, and some boxes. Numbers come in this machine's order of bytes, compounds as they lie."""
    native = wanted.dtype if wanted.dtype.kind == "V" else wanted.dtype.newbyteorder("=")
    bytes_of = lambda array: np.ascontiguousarray(array.astype(native)).tobytes()  # noqa: E731
    assert bytes_of(file.read(name, native)) == bytes_of(wanted), name
    draw = random.Random(name)
    for _ in range(4 if wanted.size else 0):
        box = []
        for extent in wanted.shape:
            start, step = draw.randrange(extent), draw.choice((1, 1, 2, 3))
            box.append((start, draw.randint(1, (extent - 1 - start) // step + 1), step))
        chosen = tuple(slice(start, start + (count - 1) * step + 1, step) for start, count, step in box)
        assert bytes_of(file.read(name, native, box)) == bytes_of(wanted[chosen]), (name, box)


def _same_as_h5py(path: Path, *, refused: tuple[str, ...] = ()) -> None:
    file = CDatasets(LIBRARY, path)
    try:
        with h5py.File(path) as stock, ps.open(path, device="host") as ours:
            assert file.names() == list(ours)
            for name in file.names():
                if name in refused:
                    continue
                dataset = stock[name]
                described = file.describe(name)
                assert described["shape"] == dataset.shape + dataset.dtype.shape and described["format"] == "hdf5"
                _same(file, name, dataset[...])
    finally:
        file.close()


def _fill_some(dataset: h5py.Dataset, draw: random.Random, share: float) -> None:
    """Chunks in another order than they lie in; some never."""
    made = np.random.default_rng(draw.randrange(1000))
    rows, columns = dataset.chunks
    cells = [(i, k) for i in range(0, dataset.shape[0], rows) for k in range(0, dataset.shape[1], columns)]
    for row, column in draw.sample(cells, max(1, int(share * len(cells)))):
        part = np.s_[row : row + rows, column : column + columns]
        dataset[part] = made.integers(0, 100, dataset[part].shape)


@pytest.mark.parametrize("version", VERSIONS)
def test_chunks_are_found_by_every_index_of_them(tmp_path: Path, version: str) -> None:
    draw = random.Random(version)
    with h5py.File(tmp_path / "a.h5", "w", libver=version) as file:
        for limit, most in LIMITS.items():
            for kind, options in FILTERS.items():
                for share in (1, 0.4):
                    name = f"{limit}/{kind}/{share}"
                    options = {"chunks": (3, 4), "maxshape": most, "dtype": "i4", "fillvalue": 7, **options}
                    _fill_some(file.create_dataset(name, (13, 11), **options), draw, share)
        one = file.create_dataset("single", data=np.arange(143).reshape(13, 11), chunks=(13, 11), compression="gzip")
        assert one.id.get_num_chunks() == 1
        early = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        early.set_chunk((3, 4))
        early.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        space = h5py.h5s.create_simple((13, 11), (20, 30))
        h5py.Dataset(h5py.h5d.create(file.id, b"implicit", h5py.h5t.STD_I32LE, space, early))[...] = 5
    _same_as_h5py(tmp_path / "a.h5")


@pytest.mark.parametrize("version", ["earliest", "latest"])
def test_indexes_of_several_levels_and_pages_are_followed(tmp_path: Path, version: str) -> None:
    """3000 chunks of an element: B-trees of three levels, arrays with pages and upper blocks."""
    draw = random.Random(version)
    with h5py.File(tmp_path / "a.h5", "w", libver=version) as file:
        shapes = {"fixed": (3000, 1), "rows": (None, 1), "both": (None, None)}
        for name, most in shapes.items():
            for share, packed in ((1, None), (0.3, "gzip")):
                dataset = file.create_dataset(
                    f"{name}{share}", (3000, 1), "i2", chunks=(1, 1), maxshape=most, compression=packed
                )
                for row in draw.sample(range(3000), int(3000 * share)):
                    skipped = int(packed is not None)
                    dataset.id.write_direct_chunk((row, 0), np.int16(row).tobytes(), filter_mask=skipped)
    _same_as_h5py(tmp_path / "a.h5")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("options", [{}, {"userblock_size": 1024}, {"fs_strategy": "page"}])
def test_types_layouts_and_links_are_read_as_h5py_does(tmp_path: Path, version: str, options: dict[str, Any]) -> None:
    made = np.random.default_rng(1)
    with h5py.File(tmp_path / "a.h5", "w", libver=version, **options) as file:
        for number, dtype in enumerate(TYPES):
            values = (made.random((4, 5)) * 100).astype("S5" if dtype == "V3" else dtype).astype(dtype)
            file[f"types/contiguous{number}"] = values
            file.create_dataset(f"types/chunked{number}", data=values, chunks=(3, 2))
            file[f"types/scalar{number}"] = values[0, 0]
        record = np.zeros((3,), [("a", ">i4"), ("b", "f8", (2,))])
        record["a"] = 1, 2, 3
        file["types/record"] = record
        file.create_dataset("types/choice", data=[1, 2], dtype=h5py.enum_dtype({"A": 1, "B": 2}, basetype="i2"))
        file["types/named"] = np.dtype(">f8")
        file.create_dataset("types/by_name", data=[1.5, 2.5], dtype=file["types/named"])
        for name, more in {"whole": {}, "cut": {"chunks": (2,), "fillvalue": None}}.items():
            dataset = file.create_dataset(f"types/array_{name}", (3,), np.dtype(("i4", (2, 3))), **more)
            dataset[0] = made.integers(0, 9, (2, 3), dtype="i4")
        file["types/none"] = np.zeros((0, 3))
        file.create_dataset("types/unwritten", (3, 4), ">f8", fillvalue=2.5)
        compact = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        compact.set_layout(h5py.h5d.COMPACT)
        small = h5py.h5d.create(file.id, b"compact", h5py.h5t.STD_I32BE, h5py.h5s.create_simple((5,)), compact)
        h5py.Dataset(small)[...] = range(5)
        for number in range(300):
            file[f"many/d{number * 7919 % 300:03}"] = np.int16(number)
        ordered = file.create_group("ordered", track_order=True)
        for number in range(40):
            ordered[f"n{number * 7 % 40}"] = number
        file["hard"], file["soft"] = file["many/d007"], h5py.SoftLink("/types/record")
        file["types/near"], file["types/again"] = h5py.SoftLink("record"), file["types"]
        file["gone"] = h5py.SoftLink("/nowhere")
    _same_as_h5py(tmp_path / "a.h5")


def test_files_of_netcdf4_and_of_penstock_are_read(tmp_path: Path) -> None:
    netCDF4 = pytest.importorskip("netCDF4")
    values = np.random.default_rng(2).random((7, 5, 6)).astype("f4")
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as file:
        for name, length in {"time": None, "y": 5, "x": 6}.items():
            file.createDimension(name, length)
        for name, options in {"plain": {}, "packed": {"zlib": True, "chunksizes": (2, 3, 6)}}.items():
            file.createVariable(name, "f4", ("time", "y", "x"), **options)[:] = values
    with ps.History(tmp_path / "run.nc", format="netcdf4", device="host") as history:
        history.define("T", ("y", "x"), like=values[0], compression="gzip")
        for step in range(5):
            history.put("T", values[step])
            history.end_step(2.0 * step)
    ps.save(tmp_path / "a.h5", {"whole": values, "g/packed": values}, compression="gzip")
    for leaf, name, wanted in (("a.nc", "plain", values), ("a.nc", "packed", values), ("run.nc", "T", values[:5])):
        file = CDatasets(LIBRARY, tmp_path / leaf, format=b"netcdf4")
        _same(file, name, wanted)
        file.close()
    _same_as_h5py(tmp_path / "a.h5")


@pytest.mark.parametrize("version", ["earliest", "latest"])
def test_boxes_are_written_in_place_and_h5py_reads_them(tmp_path: Path, version: str) -> None:
    with h5py.File(tmp_path / "a.h5", "w", libver=version) as file:
        file["contiguous"] = np.zeros((6, 5), ">i4")
        file.create_dataset("chunked", data=np.zeros((6, 5), "i4"), chunks=(4, 2), maxshape=(None, None))
        file.create_dataset("packed", data=np.zeros((6, 5), "i4"), chunks=(4, 2), compression="gzip")
        file.create_dataset("unwritten", (6, 5), "i4")
    wanted = np.zeros((6, 5), "i4")
    wanted[1:6:2, 1:4] = np.arange(9).reshape(3, 3) + 1
    box, part = [(1, 3, 2), (1, 3, 1)], np.ascontiguousarray(wanted[1:6:2, 1:4])
    file = CDatasets(LIBRARY, tmp_path / "a.h5", writable=True)
    file.write("contiguous", part, box)
    file.write("chunked", part, box)
    for name, words in {"packed": "encoded", "unwritten": "not stored yet"}.items():
        with pytest.raises(CError, match=words):
            file.write(name, part, box)
    file.close()
    with h5py.File(tmp_path / "a.h5") as stock:
        np.testing.assert_array_equal(stock["contiguous"], wanted)
        np.testing.assert_array_equal(stock["chunked"], wanted)
        assert not np.any(stock["packed"]) and not np.any(stock["unwritten"])


_FORTRAN = """
program reads
  use penstock
  implicit none
  real(c_double), target :: got(2, 3)
  type(c_ptr) :: context, datafile, dataset
  type(penstock_dataset_info) :: info
  type(penstock_request) :: request
  type(penstock_error) :: error
  type(penstock_box) :: box
  box%start = [2_c_int64_t, 1_c_int64_t]
  box%count = [2_c_int64_t, 3_c_int64_t]
  request%memory = penstock_memory(c_loc(got), c_sizeof(got), penstock_system)
  if (penstock_context_create(context=context, error=error) /= penstock_ok) error stop 1
  if (penstock_datafile_open(context, penstock_name('a.h5'), datafile=datafile) /= penstock_ok) error stop 2
  if (penstock_dataset_open(datafile, penstock_name('fields/T'), dataset, error) /= penstock_ok) error stop 3
  if (penstock_dataset_describe(dataset, info) /= penstock_ok) error stop 4
  if (penstock_dataset_read_box(dataset, box, request, error=error) /= penstock_ok) error stop 5
  print '(2(1x, i0), 6(1x, f0.1))', penstock_shape(info), got
  call penstock_dataset_close(dataset)
  call penstock_datafile_close(datafile)
  call penstock_context_destroy(context)
end program
"""


@pytest.mark.skipif(shutil.which("gfortran") is None, reason="there is no gfortran")
def test_fortran_reads_a_box_in_its_order_of_dimensions(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("fields/T", data=np.arange(20.0).reshape(4, 5), chunks=(2, 2), compression="gzip")
    (tmp_path / "reads.f90").write_text(_FORTRAN)
    module = Path(__file__).parents[3] / "bindings/fortran/penstock.f90"
    library = [str(LIBRARY), f"-Wl,-rpath,{LIBRARY.parent}"]
    subprocess.run(["gfortran", str(module), "reads.f90", *library, "-o", "reads"], cwd=tmp_path, check=True)
    ran = subprocess.run(["./reads"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert ran.stdout.split() == ["5", "4", "1.0", "2.0", "6.0", "7.0", "11.0", "12.0"]


def test_what_is_not_read_is_listed_and_told_why(tmp_path: Path) -> None:
    name = tmp_path / "a.h5"
    with h5py.File(name, "w") as file:
        file["text"], file["null"], file["plain"] = "of any length", h5py.Empty("f4"), np.zeros(3)
        file["odd"] = np.zeros(3, np.longdouble)
        file.create_dataset("reference", (3,), h5py.ref_dtype)
        file.create_dataset("outside", (3,), "i4", external=[("other.bin", 0, 12)])
        layout = h5py.VirtualLayout((3,), "f8")
        layout[:] = h5py.VirtualSource(name, "plain", (3,))
        file.create_virtual_dataset("virtual", layout)
        file["away"] = h5py.ExternalLink("other.h5", "/x")
    words = {
        **{"text": "variable length", "null": "null dataspace", "odd": "no kind that devices know"},
        **{"reference": "references", "outside": "external files", "virtual": "virtual dataset"},
        **{"away": "'away' leads to another file", "plane": "close names: 'plain'"},
    }
    file = CDatasets(LIBRARY, name)
    assert {"text", "null", "virtual", "plain"} <= set(file.names())
    for dataset, why in words.items():
        with pytest.raises(CError, match=why):
            file.describe(dataset)
    with pytest.raises(CError, match="opened for reading"):
        file.write("plain", np.zeros(3))
    file.close()


def test_compact_elements_are_not_written(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as file:
        compact = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        compact.set_layout(h5py.h5d.COMPACT)
        h5py.h5d.create(file.id, b"small", h5py.h5t.STD_I32LE, h5py.h5s.create_simple((5,)), compact)
    file = CDatasets(LIBRARY, tmp_path / "a.h5", writable=True)
    with pytest.raises(CError, match="lie in its header"):
        file.write("small", np.ones(5, "i4"))
    file.close()


def test_a_file_that_a_writer_has_open_is_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as file:
        file.create_dataset("grows", (3,), "f8", maxshape=(None,), chunks=(2,))
        file.swmr_mode = True
        with pytest.raises(CError, match=r"open for writing.*h5clear"):
            CDatasets(LIBRARY, tmp_path / "a.h5")


@pytest.mark.parametrize("version", ["earliest", "latest"])
def test_a_changed_byte_of_the_metadata_is_never_worse_than_an_error(tmp_path: Path, version: str) -> None:
    """Newer structures have checksums, so that there an error is all that may come of most of them."""
    name = tmp_path / "a.h5"
    with h5py.File(name, "w", libver=version) as file:
        for number in range(9):
            file[f"g/n{number}"] = number
        for limit, most in LIMITS.items():
            file.create_dataset(limit, data=np.ones((13, 11), "i4"), chunks=(3, 4), maxshape=most, compression="gzip")
    whole, draw, told = bytearray(name.read_bytes()), random.Random(version), 0
    for _ in range(150):
        at, before = draw.randrange(len(whole)), bytes(whole)
        whole[at] ^= 1 << draw.randrange(8)
        name.write_bytes(whole)
        try:
            file = CDatasets(LIBRARY, name)
        except CError:
            told += 1
        else:
            for dataset in LIMITS:
                try:
                    file.read(dataset, np.dtype("i4"))
                except (CError, AssertionError):
                    told += 1
            file.close()
        whole[:] = before
    assert told > 5
