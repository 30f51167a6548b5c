"""Classic netCDF that is not as its grammar wants it: what the netCDF library reads, Penstock reads alike.

The library is asked about each file too, so that no case rests on a belief about it.
"""

from __future__ import annotations

import ctypes
import struct
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import penstock as ps
from penstock.formats.netcdf3.encode import encode
from penstock.formats.netcdf3.header import read_header

netCDF4 = pytest.importorskip("netCDF4")

ABSENT = bytes(8)
RECORD = ((b"t", 0),)


def number(value: int) -> bytes:
    return value.to_bytes(4, "big")


def name(raw: bytes, padding: bytes = b"\0") -> bytes:
    return number(len(raw)) + raw + padding * (-len(raw) % 4)


def attributes(*entries: tuple[bytes, int, int, bytes]) -> bytes:
    """Entries: name with its count, type, count of values, values with padding."""
    parts = [one + number(kind) + number(count) + raw for one, kind, count, raw in entries]
    return number(12) + number(len(entries)) + b"".join(parts)


class Made(NamedTuple):
    """A CDF-1 file of one int32 variable of three elements, 1 2 3, unless a field says otherwise."""

    dims: tuple[tuple[bytes, int], ...] = ((b"x", 3),)
    indices: tuple[int, ...] = (0,)
    variable: bytes = name(b"v")
    of_file: bytes = ABSENT
    records: int = 0
    size: int = 12
    kind: int = 4

    def raw(self) -> bytes:
        dims = b"".join(name(one) + number(length) for one, length in self.dims)
        start = b"CDF\1" + number(self.records) + number(10) + number(len(self.dims)) + dims + self.of_file
        indices = number(len(self.indices)) + b"".join(map(number, self.indices))
        start += number(11) + number(1) + self.variable + indices + ABSENT + number(self.kind) + number(self.size)
        return start + number(len(start) + 4) + struct.pack(">3i", 1, 2, 3)


CASES = {
    "a variable's name ends in zeros": Made(variable=name(b"v\0\0\0\0")),
    "a dimension's name ends in zeros": Made(dims=((b"x\0\0", 3),)),
    "an attribute's name ends in zeros": Made(of_file=attributes((name(b"title\0\0\0"), 2, 2, b"hi\0\0"))),
    "something follows the zero in a name": Made(variable=name(b"v\0ab")),
    "a variable has an empty name": Made(variable=name(b"")),
    "a dimension has an empty name": Made(dims=((b"", 3),)),
    "an attribute has an empty name": Made(of_file=attributes((name(b""), 2, 2, b"hi\0\0"))),
    "padding of a name is not zero": Made(variable=name(b"v", b"P")),
    "padding of an attribute is not zero": Made(of_file=attributes((name(b"n"), 2, 2, b"hiXX"))),
    "an empty list has its tag": Made(of_file=number(12) + number(0)),
    "an empty list has another tag": Made(of_file=number(77) + number(0)),
    "the number of records is streaming without records": Made(records=0xFFFFFFFF),
    "the number of records has its highest bit": Made(records=0xFFFFFFFE),
    "a number of records without records": Made(records=5),
    "the stored size is zero": Made(size=0),
    "the stored size is the largest": Made(size=0xFFFFFFFF),
    "two dimensions are of length 0": Made(dims=(*RECORD, (b"u", 0)), records=3),
    "the second dimension of length 0 is used": Made(dims=(*RECORD, (b"u", 0)), indices=(1,), records=3),
    "an attribute is there twice": Made(
        of_file=attributes((name(b"n"), 2, 2, b"hi\0\0"), (name(b"n"), 2, 2, b"ho\0\0"))
    ),
    "a slash is in a name": Made(variable=name(b"a/b")),
    "a name begins with a slash": Made(variable=name(b"/b")),
    "a slash is in a dimension's name": Made(dims=((b"a/b", 3),)),
    "a name ends in a space": Made(variable=name(b"v ")),
    "a name has a control character": Made(variable=name(b"v\1")),
    "a name is not normalised": Made(variable=name("e\u0301".encode())),
    "a variable of CDF-1 has a type of CDF-5": Made(kind=9),
    "an attribute of CDF-1 has a type of CDF-5": Made(of_file=attributes((name(b"n"), 9, 1, number(7)))),
    "an attribute has no values": Made(of_file=attributes((name(b"n"), 2, 0, b""))),
}


def by_library(path: Path) -> dict[str, Any]:
    with netCDF4.Dataset(path) as file:
        file.set_auto_mask(False)
        found = {one: (held.dimensions, held[...].tolist()) for one, held in file.variables.items()}
        return {"variables": found, "attributes": {one: str(file.getncattr(one)) for one in file.ncattrs()}}


def by_penstock(path: Path) -> dict[str, Any]:
    with ps.open(path, device="host") as file:
        assert file.format == "netcdf3"
        found = {one: (file[one].dims, np.asarray(file[one][...]).tolist()) for one in file}
        return {"variables": found, "attributes": {one: str(value) for one, value in file.attrs.items()}}


@pytest.mark.parametrize("case", CASES)
def test_what_the_library_reads_is_read_alike(case: str, tmp_path: Path) -> None:
    path = tmp_path / "x.nc"
    path.write_bytes(CASES[case].raw())
    stock = by_library(path)
    assert [data for _, data in stock["variables"].values()] == [[1, 2, 3]], "the case is as it is meant"
    assert by_penstock(path) == stock
    header = read_header(str(path))
    assert len(encode(header)) == header.bytes, "it is written back in the same length"
    with ps.open(path, device="host") as file:
        assert "dataset" in repr(file)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (Made(of_file=number(0) + number(3)), "tag 0 and 3 entries"),
        (Made(indices=(5,)), "dimension 5 of 1"),
        (Made(dims=(*RECORD, (b"x", 3)), indices=(1, 0), records=1), "may only be first"),
        (Made(kind=13), "type 13"),
    ],
)
def test_what_the_library_refuses_is_refused_with_the_reason(made: Made, words: str, tmp_path: Path) -> None:
    path = tmp_path / "x.nc"
    path.write_bytes(made.raw())
    with pytest.raises(OSError, match="NetCDF|Invalid"):
        netCDF4.Dataset(path)
    with pytest.raises(ps.Error, match=words):
        ps.open(path, device="host")


def test_names_in_latin_1_are_read_as_such(tmp_path: Path) -> None:
    """The library hands out the bytes; netCDF4-python cannot open the file, ncdump shows it."""
    path = tmp_path / "x.nc"
    latin = "größe".encode("latin-1")
    made = Made(variable=name(latin), of_file=attributes((name(latin), 2, 2, b"hi\0\0")))
    path.write_bytes(made.raw())
    assert by_penstock(path) == {"variables": {"größe": (("x",), [1, 2, 3])}, "attributes": {"größe": "hi"}}


@pytest.mark.parametrize("form", ["NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA"])
def test_names_that_the_library_made_shorter_in_place(form: str, tmp_path: Path) -> None:
    path = tmp_path / "x.nc"
    with netCDF4.Dataset(path, "w", format=form) as file:
        file.setncattr("a_long_attribute", "text")
        file.createDimension("a_long_dimension", None)
        file.createDimension("x", 2)
        file.createVariable("a_long_variable", "i4", ("a_long_dimension", "x"))[:] = [[1, 2], [3, 4]]
    rename_in_data_mode(path)
    assert b"var\0" in path.read_bytes(), "the library pads the shorter name with zeros"
    expected = {"variables": {"var": (("dim", "x"), [[1, 2], [3, 4]])}, "attributes": {"att": "text"}}
    assert by_library(path) == expected
    assert by_penstock(path) == expected
    with ps.open(path, device="host", write=True) as file:
        file["var"].append(np.array([[5, 6]], "i4"))
    assert by_library(path)["variables"]["var"][1] == [[1, 2], [3, 4], [5, 6]], "its header is still in its place"


def rename_in_data_mode(path: Path) -> None:
    """netCDF4-python enters define mode to rename, where the header is written anew; so its C library is called."""
    library = ctypes.CDLL(netCDF4._netCDF4.__file__)
    number, write = ctypes.c_int(), 1
    assert library.nc_open(bytes(path), write, ctypes.byref(number)) == 0
    assert library.nc_rename_var(number, 0, b"var") == 0
    assert library.nc_rename_dim(number, 0, b"dim") == 0
    assert library.nc_rename_att(number, -1, b"a_long_attribute", b"att") == 0
    assert library.nc_close(number) == 0


def test_attributes_of_a_variable_without_a_name_are_not_taken_for_the_files(tmp_path: Path) -> None:
    path = tmp_path / "x.nc"
    path.write_bytes(Made(variable=name(b"")).raw())
    with ps.open(path, device="host", write=True) as file, pytest.raises(ps.Error, match="empty name"):
        file.attrs["title"] = "x"


def test_xarray_sees_names_with_a_slash(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    path = tmp_path / "x.nc"
    path.write_bytes(Made(variable=name(b"a/b")).raw())
    with xarray.open_dataset(path, engine="penstock") as data:
        assert data["a/b"].values.tolist() == [1, 2, 3]


@pytest.mark.parametrize("kind", ["variables", "dimensions"])
def test_names_that_differ_only_behind_a_zero_are_told_apart(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x.nc3"
    with ps.create(path, device="host") as file:
        for variable, dimension in (("v", "x"), ("vy", "xy")):
            file.create_dataset(variable, (3,), "i4", dimensions=(dimension,))[...] = np.full(3, len(variable), "i4")
    plain, longer = (b"v", b"vy") if kind == "variables" else (b"x", b"xy")
    changed = path.read_bytes().replace(name(longer), name(plain + b"\0"), 1)
    path.write_bytes(changed)
    names = [f"{plain.decode()}", f"{plain.decode()}\\x00"]
    with ps.open(path, device="host", write=True) as file:
        found = list(file) if kind == "variables" else [one.info.dimensions[0] for one in file.values()]
        assert found == names
        assert [int(one[...].to_numpy()[0]) for one in file.values()] == [1, 2]
        file["v"].attrs["units"] = "m"
    assert name(plain + b"\0") in path.read_bytes(), "its bytes stay as they were"
