"""What is refused when datasets are made names the dataset, or the argument, and says what to do."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock

NAMED = ["h5", "nc", "nc3", "safetensors", "zarr"]
FLAT = {"npy": {}, "safetensors": {}, "bin": {"format": "raw"}}


@pytest.fixture(params=NAMED)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param in ("h5", "nc"):
        pytest.importorskip("h5py")
    return tmp_path / f"x.{request.param}"


@pytest.mark.parametrize("device", ["host", "auto"])
def test_a_value_without_plain_bytes_is_named(path: Path, device: str) -> None:
    values = {"fine": np.ones(3, "f4"), "mixed": np.array([{}, 2], object)}
    with pytest.raises(TypeError, match="^dataset 'mixed': elements of type object are Python objects"):
        penstock.save(path, values, device)
    letters = {"fine": np.ones(3, "f4"), "letters": np.array(["a", "b"])}
    with pytest.raises(penstock.Error, match="'letters' .*str32"):
        penstock.save(path, letters, device)
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("values", "what", "advice"),
    [
        (np.array([1, 2.5], object), "Python objects", "make numbers of them"),
        (np.zeros(1, [("a", "O")]), "Python objects", "make numbers of them"),
        (np.zeros(1, "V0"), "of 0 bytes", "give a type with bytes"),
    ],
    ids=["O", "record", "V0"],
)
def test_what_elements_are_that_are_not_taken_is_said_with_advice(
    path: Path, values: np.ndarray, what: str, advice: str
) -> None:
    with pytest.raises(TypeError, match=f"^dataset 'data': elements of type .* are {what}.*; ") as told:
        penstock.save(path, {"data": values}, "host")
    assert advice in str(told.value)


def test_addresses_of_objects_are_neither_written_nor_read_over(tmp_path: Path) -> None:
    objects, path = np.array([1, "a"], object), tmp_path / "x.bin"
    for memory in (objects, memoryview(objects)):
        with pytest.raises(penstock.Error, match="Python objects, which are no bytes of a file; make numbers"):
            penstock.save(path, memory, "host")
    assert not path.exists()
    path.write_bytes(b"x" * objects.nbytes)
    with (
        penstock.Context("host") as context,
        context.open(path) as file,
        pytest.raises(penstock.Error, match="objects"),
    ):
        file.read(objects)
    assert list(objects) == [1, "a"]


@pytest.mark.parametrize(
    ("shape", "dtype", "layout", "words"),
    [
        ((1.5,), "f4", {}, "'float' object"),
        (None, "f4", {}, "not iterable"),
        ((3,), "f5", {}, "is not a data type"),
        ((3,), "O", {}, "are Python objects, which Penstock neither reads nor writes"),
        ((3,), "f4", {"chunks": (1,)}, "there is no chunks=; there are chunk_shape, resizable, dimensions"),
    ],
)
def test_a_dataset_that_cannot_be_is_named(path: Path, shape: Any, dtype: str, layout: dict, words: str) -> None:
    with penstock.create(path, device="host") as file:
        with pytest.raises(TypeError, match=f"^dataset 'T': .*{words}"):
            file.create_dataset("T", shape, dtype, **layout)
        assert list(file) == []


@pytest.mark.parametrize("suffix", FLAT)
def test_names_of_dimensions_are_not_dropped_in_silence(tmp_path: Path, suffix: str) -> None:
    with penstock.create(tmp_path / f"x.{suffix}", device="host", **FLAT[suffix]) as file:
        with pytest.raises(penstock.Error, match="'data'.*keeps no names of dimensions; leave dimensions out"):
            file.create_dataset("data", (3,), "f4", dimensions=("x",))
        file.create_dataset("data", (3,), "f4")


@pytest.mark.parametrize(
    ("wrong", "kind"), [(-1, ValueError), (1, ValueError), (1 << 40, ValueError), ("4k", TypeError)]
)
def test_a_page_that_is_none_is_refused_by_name(tmp_path: Path, wrong: Any, kind: type[Exception]) -> None:
    pytest.importorskip("h5py")
    for suffix in ("h5", "nc"):
        with pytest.raises(kind, match="^page_bytes "):
            penstock.create(tmp_path / f"x.{suffix}", device="host", page_bytes=wrong)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "bits"), [("bfloat16", "uint16"), ("float8_e5m2", "uint8")])
def test_a_type_that_numpy_lacks_says_what_to_do(monkeypatch: pytest.MonkeyPatch, name: str, bits: str) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    context = penstock.Context("host")
    array = penstock.Array(context.allocate(8), name, (4,))
    with pytest.raises(TypeError, match=rf"pip install ml_dtypes.* array.view\('{bits}'\)"):
        array.to_numpy()
    assert array.view(bits).to_numpy().shape == (4,)


def test_attributes_that_refer_to_objects_are_listed_as_all_others(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["x"] = np.ones(3)
        file["x"].attrs["to"] = file["x"].ref
        file["x"].attrs["units"] = "K"
    with penstock.open(tmp_path / "x.h5", device="host") as file:
        assert dict(file["x"].attrs) == {"to": penstock.Reference("/x"), "units": "K"}
        assert all(name in file["x"].attrs for name in file["x"].attrs) and len(file["x"].attrs) == 2


@pytest.mark.parametrize("where", ["name", "dimension", "attribute", "text", "attribute of the file"])
def test_half_a_character_is_refused_by_its_name(path: Path, where: str) -> None:
    """In names and text that files keep as UTF-8; of all formats in the same words, before anything is written."""
    bad = "x\ud800"
    attributes = {"attribute": {bad: 1}, "text": {"k": [bad]}}.get(where, {})
    with penstock.create(path, device="host") as file, pytest.raises(ValueError, match=r"'x\\ud800' holds .*UTF-8; "):
        if where == "attribute of the file":
            file.attrs["k"] = bad
        dimensions = (bad,) if where == "dimension" else None
        name = bad if where == "name" else "a"
        file.create_dataset(name, (3,), "f4", attributes=attributes, dimensions=dimensions)


def test_half_a_character_is_a_name_that_is_not_there(path: Path) -> None:
    penstock.save(path, {"a": np.ones(3, "f4")}, "host")
    with penstock.open(path, device="host") as file:
        assert "x\ud800" not in file
        for ask in (lambda: file["x\ud800"], lambda: file.load(["x\ud800"]), lambda: file.attrs["x\ud800"]):
            with pytest.raises(KeyError, match="no (dataset|attribute)"):
                ask()


FOREIGN = {
    "text": (b"hello, this is a text file\n" * 40, "unsupported", "it is no .* file: it begins with b'hello"),
    "garbage": (bytes(range(255, 100, -1)) * 9, "unsupported", "it is no .* file: it begins with"),
    "short": (b"hi", "unsupported|damaged", "it is no .* file|too few for a safetensors file"),
    "empty": (b"", "unsupported", "it is empty; copy or download it again"),
    "zeros": (bytes(5000), "damaged", "it begins with .* zeros, as no .* file does"),
    "matlab": (b"MATLAB 5.0 MAT-file, Platform".ljust(300), "unsupported", "a MATLAB 5 file.*scipy.io.loadmat"),
    "gzip": (b"\x1f\x8b\x08" + bytes(400), "unsupported", "compressed by gzip; gunzip"),
    "zip": (b"PK\x03\x04" + b"\x14" * 400, "unsupported", "a ZIP archive; unpack"),
}


@pytest.mark.parametrize("content", FOREIGN)
@pytest.mark.parametrize("suffix", ["h5", "nc", "nc3", "npy", "safetensors"])
def test_what_is_no_file_of_its_suffix_is_called_that_and_not_damaged(
    tmp_path: Path, suffix: str, content: str
) -> None:
    if suffix in ("h5", "nc"):
        pytest.importorskip("h5py")
    raw, codes, words = FOREIGN[content]
    (tmp_path / f"x.{suffix}").write_bytes(raw)
    for use in (penstock.open, penstock.load):
        with pytest.raises(penstock.Error, match=words) as told:
            use(tmp_path / f"x.{suffix}", device="host")
        assert told.value.code in codes.split("|") and told.value.advice
