"""Text of variable length that is written: what the stock readers of each format find, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps

h5py = pytest.importorskip("h5py")

WORDS = ["a", "bß日本", "", "long " * 3000]
FORMATS = ["h5", "nc", "zarr"]


def by_stock(path: Path, name: str) -> np.ndarray:
    if path.suffix == ".h5":
        with h5py.File(path) as file:
            assert h5py.check_string_dtype(file[name].dtype) == ("utf-8", None)
            found = file[name].asstr()[()]
    elif path.suffix == ".nc":
        with pytest.importorskip("netCDF4").Dataset(path) as file:
            assert file[name].dtype is str
            found = file[name][...]
    else:
        found = pytest.importorskip("zarr").open(path)[name][...]
    return np.array(found, dtype=object)


def same(found: Any, wanted: Any) -> bool:
    return np.array(found, dtype=object).tolist() == np.array(wanted, dtype=object).tolist()


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize(
    "value",
    [WORDS, tuple(WORDS), np.array(WORDS, object), [["x", "yy"], ["z", "w"]], ["one"]],
    ids=["list", "tuple", "objects", "two dimensions", "one"],
)
def test_text_goes_round(value: Any, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"x.{suffix}"
    with ps.create(path, device="host") as file:
        file["group/text"] = value
        file["numbers"] = np.arange(5.0)
        assert same(file["group/text"][...], value), "before it is closed"
    assert same(by_stock(path, "group/text"), value)
    assert np.array_equal(by_stock(path, "numbers") if suffix == "zarr" else np.arange(5.0), np.arange(5.0))
    found = ps.load(path, device="host")
    assert same(found["group/text"], value)
    assert np.array_equal(np.asarray(found["numbers"]), np.arange(5.0))
    again = tmp_path / f"again.{suffix}"
    ps.save(again, found, device="host")
    assert same(by_stock(again, "group/text"), value), "what was read is written"


@pytest.mark.parametrize("suffix", FORMATS)
def test_boxes_of_text(suffix: str, tmp_path: Path) -> None:
    path, wanted = tmp_path / f"x.{suffix}", np.full((5, 3), "", object)
    with ps.create(path, device="host") as file:
        one = file.create_dataset("x", (5, 3), str, chunk_shape=(2, 2))
        for index, value in (((slice(1, 4), 1), ["p", "q", "s"]), ((0, 0), "r"), (4, np.array(["n", "e", "w"]))):
            one[index] = value
            wanted[index] = value
        one[1, 1:] = ["q", "u"]
        wanted[1, 1:] = ["q", "u"]
        assert same(one[...], wanted)
    assert same(by_stock(path, "x"), wanted)


@pytest.mark.parametrize("suffix", FORMATS)
def test_text_grows(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"x.{suffix}"
    with ps.create(path, device="host") as file:
        file.create_dataset("x", (0,), str, resizable=(None,), chunk_shape=(2,))
        for value in (["i", "j", "k"], "l", ["m", "n"]):
            file["x"].append(value)
    assert same(by_stock(path, "x"), list("ijklmn"))


def test_a_store_of_zarr_gets_text_later(tmp_path: Path) -> None:
    path = tmp_path / "x.zarr"
    ps.save(path, {"x": ["a", "b", "c"]}, device="host")
    with ps.open(path, write=True, device="host") as file:
        file["x"][1] = "B"
        file["more"] = ["d"]
        assert same(by_stock(path, "x"), ["a", "b", "c"]), "readers see the older text until it is closed"
    assert same(by_stock(path, "x"), ["a", "B", "c"])
    assert same(by_stock(path, "more"), ["d"])
    with pytest.raises(RuntimeError), ps.open(path, write=True, device="host") as file:
        file["x"][0] = "A"
        raise RuntimeError
    assert same(by_stock(path, "x"), ["a", "B", "c"])


@pytest.mark.parametrize("suffix", ["h5", "nc"])
def test_a_file_that_has_its_name_gets_no_text(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"x.{suffix}"
    ps.save(path, {"x": ["a", "b"]}, device="host")
    before = path.read_bytes()
    for write in (lambda file: file["x"].write("z", 0), lambda file: file.write_many({"y": ["c"]}).result()):
        with pytest.raises(ps.Error, match="new files only"), ps.open(path, write=True, device="host") as file:
            write(file)
        assert path.read_bytes() == before
        with ps.open(path, write=True, device="host") as file, pytest.raises(ps.Error, match="new files only"):
            write(file)
        before = path.read_bytes()  # a block that ends well notes the second in which it did
        with ps.open(path, device="host") as file:
            assert list(file) == ["x"]
            assert same(by_stock(path, "x"), ["a", "b"])


@pytest.mark.parametrize("suffix", FORMATS)
def test_what_is_no_text_is_refused_in_words(suffix: str, tmp_path: Path) -> None:
    with ps.create(tmp_path / f"x.{suffix}", device="host") as file:
        one = file.create_dataset("x", (3,), str)
        with pytest.raises(TypeError, match="a list of text has elements of int"):
            file["y"] = ["a", 1]
        with pytest.raises(TypeError, match="elements of text; the value is a ndarray"):
            one[...] = np.arange(3)
        with pytest.raises(ValueError, match="shape"):
            one[...] = ["a", "b"]
        with pytest.raises(ps.Error, match="zero character"):
            one[0] = "a\0b"
        with pytest.raises(ps.Error, match="no UTF-8"):
            one[0] = "\udc80"
        with pytest.raises(ps.Error, match="in boxes"):
            one[::2] = ["a", "b"]
        with pytest.raises(ps.Error, match="in boxes"):
            one[[0, 2]] = ["a", "b"]
        with pytest.raises(TypeError, match="is not compressed"):
            file.create_dataset("z", (3,), str, compression="gzip")
        file["n"] = np.arange(3)
        with pytest.raises(TypeError, match="elements of text"):
            file["n"][...] = ["a", "b", "c"]


def test_text_beside_compressed_numbers_is_stored_as_it_is(tmp_path: Path) -> None:
    for suffix in FORMATS:
        path = tmp_path / f"x.{suffix}"
        ps.save(path, {"t": WORDS, "n": np.arange(9.0)}, device="host", compression="gzip")
        assert same(by_stock(path, "t"), WORDS)


@pytest.mark.parametrize("suffix", ["npy", "safetensors", "nc3"])
def test_formats_without_text_say_so(suffix: str, tmp_path: Path) -> None:
    data: Any = ["a"] if suffix == "npy" else {"x": ["a"]}
    with pytest.raises(TypeError, match="no text of variable length; HDF5, netCDF-4 and Zarr have"):
        ps.save(tmp_path / f"x.{suffix}", data, device="host")
    assert list(tmp_path.iterdir()) == []


def test_evidence_says_who_wrote_text(tmp_path: Path) -> None:
    with ps.create(tmp_path / "x.h5", device="host") as file:
        outcome = file.write_many({"x": WORDS}).result()
    assert outcome.bytes == 0
    assert outcome.evidence["notes"] == [
        "x: written by the format's library from host memory: its elements (text) have no fixed size"
    ]
