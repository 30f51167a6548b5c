"""What users do by mistake: names that mean something else, files that change behind one's back, arguments that no
format could mean. None of it loses data, gives wrong data, or ends in anything but an error that says why."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from format_kit import slow

import penstock
from penstock._shared import shared_context

HDF5 = ("h5", "nc")
SUFFIXES = [*HDF5, "nc3", "npy", "safetensors", "zarr"]
NAMED = [one for one in SUFFIXES if one != "npy"]


@pytest.fixture(autouse=True)
def _libraries(request: pytest.FixtureRequest) -> None:
    if getattr(request.node, "callspec", None) is not None and request.node.callspec.params.get("suffix") in HDF5:
        pytest.importorskip("h5py")


def make(path: Path, value: Any) -> None:
    with penstock.create(path, device="host") as file:
        file["data"] = value


def leftovers(folder: Path) -> list[str]:
    return [one.name for one in folder.iterdir() if "penstock-" in one.name]


def test_a_folder_that_is_no_store_is_never_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    precious = tmp_path / "results.zarr"
    precious.mkdir()
    (precious / "thesis.tex").write_text("years of work")
    with pytest.raises(penstock.Error, match="thesis.tex"):
        penstock.create(precious, device="host")
    with pytest.raises(penstock.Error, match="thesis.tex"):
        penstock.create(str(precious) + "/", format="zarr", device="host")
    monkeypatch.chdir(precious)
    for name in ("", "."):
        with pytest.raises((ValueError, penstock.Error)):
            penstock.create(name, format="zarr", device="host")
    assert (precious / "thesis.tex").read_text() == "years of work"
    assert leftovers(tmp_path) == []


def test_a_folder_that_was_made_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    file = penstock.create(tmp_path / "x.zarr", device="host")
    (tmp_path / "x.zarr").mkdir()
    (tmp_path / "x.zarr" / "notes").touch()
    with pytest.raises(penstock.Error, match="notes"):
        file.close()
    assert [one.name for one in tmp_path.rglob("*")] == ["x.zarr", "notes"]


@pytest.mark.parametrize("older", ["empty", "store"])
def test_a_store_or_an_empty_folder_is_replaced(tmp_path: Path, older: str) -> None:
    if older == "empty":
        (tmp_path / "x.zarr").mkdir()
    else:
        make(tmp_path / "x.zarr", np.zeros(3))
    make(tmp_path / "x.zarr", np.ones(2))
    assert penstock.load(tmp_path / "x.zarr", "host")["data"].shape == (2,)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_that_was_replaced_is_noticed(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x.{suffix}"
    make(path, np.zeros((4, 6), "f4"))
    with penstock.open(path, device="host") as file:
        make(path, np.ones((6, 4), "f4"))  # as many bytes, in the same place
        with pytest.raises(penstock.Error, match="replaced"):
            file["data"].read()


def test_a_raw_file_that_was_replaced_is_noticed_and_one_that_grows_is_fine(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    np.zeros(8, "f4").tofile(path)
    with penstock.open(path, dtype="f4", device="host") as file:
        with path.open("ab") as other:
            other.write(bytes(64))
        assert file["data"].read().shape == (8,)
        np.ones(8, "f4").tofile(tmp_path / "new")
        (tmp_path / "new").replace(path)
        with pytest.raises(penstock.Error, match="replaced"):
            file["data"].read()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_stays_the_same_when_the_process_changes_its_folder(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    file = penstock.create(f"x.{suffix}", device="host")
    file["data"] = np.arange(4.0)
    monkeypatch.chdir("other")
    file.close()
    assert file["data"].shape == (4,)
    monkeypatch.chdir(tmp_path)
    with penstock.open(f"x.{suffix}", device="host") as file:
        monkeypatch.chdir("other")
        assert np.array_equal(file["data"].read().to_numpy(), np.arange(4.0))
    assert os.listdir(tmp_path / "other") == []  # noqa: PTH208


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_names_that_are_too_long_are_errors_at_once(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"{'x' * 300}.{suffix}"
    for action in (penstock.open, penstock.create, penstock.load):
        with pytest.raises(penstock.Error, match="File name too long|nothing of that name"):
            action(path, device="host")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_metadata_is_said_to_be_one(tmp_path: Path) -> None:
    (tmp_path / "x.zarr").mkdir()
    with pytest.raises(penstock.Error, match="zarr.json"):
        penstock.open(tmp_path / "x.zarr", device="host")


@pytest.mark.parametrize("suffix", ["h5", "nc", "nc3", "zarr"])
@pytest.mark.parametrize(
    ("shape", "layout", "words"),
    [
        ((-1,), {}, "negative"),
        ((1 << 62, 1 << 10), {}, "too large"),
        ((4, 4), {"chunk_shape": (4,)}, "rank"),
        ((4, 4), {"resizable": (None,)}, "rank"),
        ((4, 4), {"dimensions": ("x",)}, "rank"),
        ((4, 4), {"resizable": (2, 4)}, "less than"),
    ],
)
def test_layouts_that_mean_nothing(
    tmp_path: Path, suffix: str, shape: tuple[int, ...], layout: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words), penstock.create(tmp_path / f"x.{suffix}", device="host") as file:
        file.create_dataset("x", shape, "f4", **layout)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", NAMED)
def test_shapes_are_whole_numbers_and_one_number_is_a_shape(tmp_path: Path, suffix: str) -> None:
    with penstock.create(tmp_path / f"x.{suffix}", device="host") as file:
        assert file.create_dataset("x", 5, "f4").shape == (5,)
        with pytest.raises(TypeError, match="float"):
            file.create_dataset("y", (1.5,), "f4")


@pytest.mark.parametrize("suffix", NAMED)
def test_names_with_a_zero_character_are_refused(tmp_path: Path, suffix: str) -> None:
    with penstock.create(tmp_path / f"x.{suffix}", device="host") as file:
        with pytest.raises(ValueError, match="zero character"):
            file["a\0b"] = np.ones(3)
        assert list(file) == []


@pytest.mark.parametrize("suffix", ["zarr"])
def test_a_dataset_name_that_is_too_long_for_a_folder(tmp_path: Path, suffix: str) -> None:
    with penstock.create(tmp_path / f"x.{suffix}", device="host") as file:
        with pytest.raises(penstock.Error, match="too long"):
            file["x" * 300] = np.ones(3)
        file["y"] = np.ones(3)
    assert list(penstock.load(tmp_path / f"x.{suffix}", "host")) == ["y"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_masks_are_not_dropped_in_silence(tmp_path: Path, suffix: str) -> None:
    masked = np.ma.array([1.0, 2.0], mask=[False, True])
    with penstock.create(tmp_path / f"x.{suffix}", device="host") as file:
        with pytest.raises(TypeError, match="filled"):
            file["data"] = masked
        file["data"] = np.ma.array([1.0, 2.0])


@pytest.mark.parametrize("format", ["hdf5", "netcdf4", "netcdf3", "npy", "safetensors", "zarr", "raw"])
def test_pipes_and_folders_are_no_files(tmp_path: Path, format: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    layout = {"dtype": "u1"} if format == "raw" else {}
    for name in ("pipe", "") if format != "zarr" else ("pipe",):
        with pytest.raises(penstock.Error, match="not a regular file|it is a folder") as found:
            penstock.open(tmp_path / name, format=format, device="host", **layout)
        assert found.value.code == "not_a_regular_file"
        assert "\n" not in str(found.value)


def test_shapes_of_raw_files(tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(bytes(10))
    np.save(tmp_path / "x.npy", np.zeros(3))
    with penstock.open(tmp_path / "x.bin", dtype="u1", shape=5, device="host") as file:
        assert file["data"].shape == (5,)
    with pytest.raises(TypeError, match="float"):
        penstock.open(tmp_path / "x.bin", dtype="u1", shape=(1.5,), device="host")
    for layout in ({"shape": (3,)}, {"offset_bytes": 8}):
        with pytest.raises(TypeError, match="dtype="):
            penstock.open(tmp_path / "x.npy", device="host", **layout)


@pytest.mark.parametrize("given", [{"shape": (5,)}, {"offset_bytes": 8}, {"names": ["a"]}, {"like": np.empty(())}])
def test_what_only_arrays_have_is_not_dropped_in_silence(tmp_path: Path, given: dict[str, Any]) -> None:
    (tmp_path / "x.bin").write_bytes(bytes(16))
    with pytest.raises(TypeError, match=f"^{next(iter(given))}= is for arrays.*dtype="):
        penstock.load(tmp_path / "x.bin", "host", **given)
    assert penstock.load(tmp_path / "x.bin", "host", offset_bytes=0).bytes == 16


def test_an_empty_file_is_named_by_load(tmp_path: Path) -> None:
    (tmp_path / "x.bin").touch()
    with pytest.raises(penstock.Error, match=r"^load /.*x\.bin: it is empty; copy or download it again$"):
        penstock.load(tmp_path / "x.bin", "host")
    (tmp_path / "x.nc3").touch()
    with pytest.raises(penstock.Error, match=r"^open /.*x\.nc3: it is empty; copy or download it again$"):
        penstock.load(tmp_path / "x.nc3", "host")


def test_arrays_need_a_suffix_that_says_their_format(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^the suffix of .*x\.txt is that of no known format: hdf5 .*format="):
        penstock.save(tmp_path / "x.txt", {"T": np.ones(3)}, "host")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_name_that_is_no_text_is_said_to_be_none(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(TypeError, match="^names of datasets are text, not 1$"):
        penstock.save(tmp_path / f"x.{suffix}", {1: np.ones(3)}, "host")  # type: ignore[dict-item]


@pytest.mark.parametrize("suffix", [*HDF5, "nc3", "zarr"])
def test_names_that_cannot_be_are_told_without_temporary_names(tmp_path: Path, suffix: str) -> None:
    for name in ("../x", ""):
        with pytest.raises(penstock.Error, match=f"'{name}' is not a valid name for a") as found:
            penstock.save(tmp_path / f"x.{suffix}", {name: np.ones(3)}, "host")
        assert ".penstock-" not in str(found.value)


def test_an_array_of_zarr_holds_no_other(tmp_path: Path) -> None:
    with pytest.raises(penstock.Error, match=r"dataset 'a' of .*: another array of this call lies in it; give another"):
        penstock.save(tmp_path / "x.zarr", {"a": np.ones(3), "a/b": np.ones(3)}, "host")


def test_one_dataset_is_not_called_several(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones(3))
    assert ", npy, 1 dataset, to host>" in str(penstock.open(tmp_path / "x.npy", device="host"))


def test_one_name_is_no_list_of_names(tmp_path: Path) -> None:
    penstock.save(tmp_path / "x.safetensors", {"a": np.ones(2), "b": np.ones(2), "ab": np.ones(3)}, "host")
    with penstock.open(tmp_path / "x.safetensors", device="host") as file, pytest.raises(TypeError, match="'ab'"):
        file.read_many("ab")
    with pytest.raises(TypeError, match=r"\['ab'\]"):
        penstock.load(tmp_path / "x.safetensors", "host", names="ab")


def test_a_progress_function_that_fails_ends_the_read(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones(1_000_000))

    def fail(done: int, total: int) -> None:
        raise RuntimeError("enough")

    with slow() as context, penstock.open(tmp_path / "x.npy", context=context) as file:
        out = penstock.Array(context.allocate(8_000_000), "float64", (1_000_000,))
        with pytest.raises(RuntimeError, match="enough"):
            file["data"].read(out=out, progress=fail)
        assert file._file._pending == set()  # nothing writes into `out` any more


@pytest.mark.parametrize("timeout", [-1, float("nan")])
def test_a_timeout_below_zero_is_refused(tmp_path: Path, timeout: float) -> None:
    np.save(tmp_path / "x.npy", np.ones(3))
    with penstock.open(tmp_path / "x.npy", device="host") as file, pytest.raises(ValueError, match="timeout"):
        file.read_many(["data"]).wait(timeout)


def same_memory() -> dict[str, Any]:
    """Pairs of outs of 4 and 8 float64 that share bytes, each kind of memory once."""
    array, plain, other = np.zeros(8), bytearray(64), np.zeros(8)
    ours = penstock.Array(shared_context("host").allocate(64), "float64", (8,))

    class ByDLPack:
        def __init__(self, of: np.ndarray) -> None:
            self.__dlpack__, self.__dlpack_device__ = of.__dlpack__, of.__dlpack_device__

    return {
        "numpy": (array[:4], array),
        "part": (array[4:], array),
        "penstock": (ours[:4], ours),
        "bytes": (memoryview(plain)[32:].cast("d"), memoryview(plain).cast("d")),
        "mixed": (memoryview(array)[3:7], array),
        "dlpack": (ByDLPack(other[:4]), ByDLPack(other)),
    }


@pytest.mark.parametrize("kind", list(same_memory()))
def test_one_memory_for_two_datasets_is_refused(tmp_path: Path, kind: str) -> None:
    penstock.save(tmp_path / "x.safetensors", {"few": np.ones(4), "many": np.full(8, 2.0)}, "host")
    few, many = same_memory()[kind]
    with penstock.open(tmp_path / "x.safetensors", device="host") as file:
        with pytest.raises(ValueError, match="share memory") as caught:
            file.read_many({"few": few, "many": many})
        assert "'few'" in str(caught.value)
        assert "'many'" in str(caught.value)
        file.read_many({"few": few}).result()  # each alone is fine
        file.read_many({"many": many}).result()


def test_memory_of_two_datasets_may_touch(tmp_path: Path) -> None:
    penstock.save(tmp_path / "x.safetensors", {"few": np.ones(4), "many": np.full(8, 2.0)}, "host")
    whole = np.zeros(12)
    with penstock.open(tmp_path / "x.safetensors", device="host") as file:
        file.read_many({"many": whole[:8], "few": whole[8:]}).result()
    assert whole.tolist() == [2.0] * 8 + [1.0] * 4


@pytest.mark.parametrize("device", ["r", "rb", "r+", "w"])
def test_a_mode_in_the_place_of_the_device(tmp_path: Path, device: str) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.arange(3))
    for wrong in (lambda: penstock.load(path, device), lambda: penstock.save(path, np.arange(3), device)):
        with pytest.raises(penstock.Error, match="argument is the device, and no device is named") as found:
            wrong()
        assert repr(device) in str(found.value)
        assert f"({str(path)!r}" in str(found.value)
        assert "needs no mode" in str(found.value)


@pytest.mark.parametrize("device", ["data", ["data"]])
def test_a_name_in_the_place_of_the_device(tmp_path: Path, device: object) -> None:
    with pytest.raises(penstock.Error, match=r"second argument is the device.*names=\['data'\]\) reads datasets"):
        penstock.load(tmp_path / "x.h5", device)
