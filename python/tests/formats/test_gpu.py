"""Datasets to and from a real GPU, and the libraries there. Skipped where there is none."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import formats_rig as rig
import numpy as np
import pytest
from format_kit import few, sample
from formats_rig import opened, values
from hypothesis import given
from hypothesis.extra.numpy import basic_indices

import penstock
from penstock import _core

pytestmark = pytest.mark.skipif(_core.cuda_devices()[0] == 0, reason=f"no GPU: {_core.cuda_devices()[1]}")
DEVICE = "cuda:0"


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.fixture
def cupy() -> Any:
    return pytest.importorskip("cupy")


@pytest.fixture
def stored(tmp_path: Path) -> dict[str, np.ndarray]:
    content = {"a": sample((300, 40, 3), "f4"), "b": sample((1000,), "i8", 2), "c": sample((), "f8", 3)}
    penstock.save(tmp_path / "x.safetensors", content, "host")
    np.save(tmp_path / "big.npy", sample((200, 30), ">f8"))
    return content


@pytest.fixture
def file(tmp_path: Path, stored: dict[str, np.ndarray]) -> Iterator[penstock.DataFile]:
    with penstock.open(tmp_path / "x.safetensors", device=DEVICE) as file:
        yield file


def test_selections_are_those_of_numpy(tmp_path: Path, file: penstock.DataFile, stored: dict[str, np.ndarray]) -> None:
    @few
    @given(basic_indices((300, 40, 3), allow_newaxis=False, allow_ellipsis=True))
    def check(index: Any) -> None:
        assert np.array_equal(file["a"][index].to_numpy(), stored["a"][index])

    check()
    with penstock.open(tmp_path / "big.npy", device=DEVICE) as big:
        for index in (..., (slice(None, None, -3), slice(2, 20)), 7):
            assert np.array_equal(big["data"][index].to_numpy(), sample((200, 30), "f8")[index])


@pytest.mark.parametrize("seed", range(20))
def test_any_layout_comes_to_the_gpu(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    stored = rig.stored_at_random(chance)
    with opened(tmp_path, stored, DEVICE) as file:
        array = file["x"].read()
        assert array.device == DEVICE
        expected = values(stored).astype(array.dtype.dtype)
        assert array.to_numpy().tobytes() == expected.tobytes()
        assert array.to_numpy().shape == expected.shape


def test_libraries_share_the_memory(
    file: penstock.DataFile, stored: dict[str, np.ndarray], torch: Any, cupy: Any
) -> None:
    array = file["a"].read()
    tensor, other = torch.from_dlpack(array), cupy.asarray(array)
    assert tensor.data_ptr() == other.data.ptr == cupy.from_dlpack(array).data.ptr == array.address
    assert tensor.device.type == "cuda"
    tensor += 1
    torch.cuda.synchronize()
    assert np.array_equal(other.get(), stored["a"] + 1)
    with pytest.raises(TypeError, match="to_numpy"):
        np.asarray(array)
    assert np.array_equal(cupy.asarray(array[::2, 1]).get(), (stored["a"] + 1)[::2, 1])
    jax = pytest.importorskip("jax")
    assert np.array_equal(np.asarray(jax.dlpack.from_dlpack(array)), stored["a"] + 1)


def test_out_of_torch_and_cupy(file: penstock.DataFile, stored: dict[str, np.ndarray], torch: Any, cupy: Any) -> None:
    tensor = torch.zeros(300, 40, 3, device=DEVICE)
    assert file["a"].read(out=tensor) is tensor
    assert np.array_equal(tensor.cpu().numpy(), stored["a"])
    array = cupy.zeros(500, "i8")
    file["b"].read(slice(None, None, 2), out=array)
    assert np.array_equal(array.get(), stored["b"][::2])
    part = torch.zeros(4, 1000, dtype=torch.int64, device=DEVICE)[2]
    file["b"].read(out=part)
    assert np.array_equal(part.cpu().numpy(), stored["b"])


def test_out_that_does_not_fit(file: penstock.DataFile, torch: Any) -> None:
    for out, kind, word in (
        (torch.zeros(1000, dtype=torch.int64), ValueError, "cuda:0"),
        (np.zeros(1000, "i8"), ValueError, "host"),
        (torch.zeros(1000, device=DEVICE), TypeError, "float32.*int64"),
        (torch.zeros(2000, dtype=torch.int64, device=DEVICE)[::2], ValueError, "strides"),
        (torch.zeros(999, dtype=torch.int64, device=DEVICE), ValueError, "999"),
    ):
        with pytest.raises(kind, match=word):
            file["b"].read(out=out)


@pytest.mark.parametrize("suffix", ["h5", "nc", "npy", "zarr", "gzip.h5", "big.nc3"])
def test_small_reads_into_arrays_of_cupy(tmp_path: Path, suffix: str, cupy: Any) -> None:
    values = np.random.default_rng(4).random((40, 1024), dtype="f4")
    options = {"chunk_shape": (4, 1024), "compression": "gzip"} if "gzip" in suffix else {}
    penstock.save(tmp_path / f"x.{suffix}", {"data": values}, **options)
    with penstock.open(tmp_path / f"x.{suffix}", device=DEVICE) as file:
        for row in (3, 3, 17, -1):
            out = cupy.zeros(1024, "f4")
            assert file["data"].read(row, out=out) is out
            assert np.array_equal(out.get(), values[row])
            assert np.array_equal(file["data"][row].to_numpy(), values[row])
        both = cupy.zeros((2, 8), "f4")
        file["data"].read(np.s_[5:7, 16:24], out=both)
        assert np.array_equal(both.get(), values[5:7, 16:24])
        for wrong in (cupy.zeros(1023, "f4"), cupy.zeros((1, 1024), "f4"), cupy.zeros(2048, "f4")[::2]):
            with pytest.raises(ValueError, match="1024|strides"):
                file["data"].read(3, out=wrong)
        with pytest.raises(TypeError, match="float"):
            file["data"].read(3, out=cupy.zeros(1024, "f8"))


def test_work_queued_on_a_stream_comes_first(
    file: penstock.DataFile, stored: dict[str, np.ndarray], torch: Any, cupy: Any
) -> None:
    for given_stream in (True, False):
        stream = torch.cuda.Stream() if given_stream else torch.cuda.default_stream()
        tensor = torch.zeros(1000, dtype=torch.int64, device=DEVICE)
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(200_000_000)
            tensor.fill_(-1)
        file["b"].read(out=tensor, stream=stream if given_stream else None)
        torch.cuda.synchronize()
        assert np.array_equal(tensor.cpu().numpy(), stored["b"])
    other = cupy.cuda.Stream(non_blocking=True)
    assert file["b"].read(stream=other).shape == (1000,)


def test_values_computed_just_now_are_written(tmp_path: Path, torch: Any, cupy: Any) -> None:
    source = torch.ones(500, 300, device=DEVICE)
    torch.cuda.synchronize()
    torch.cuda._sleep(200_000_000)
    source *= 3
    other = cupy.arange(1000).reshape(10, 100)
    with penstock.create(tmp_path / "x.safetensors", device=DEVICE) as file:
        file.write_many(
            {"t": source, "strided": source.T[::3], "c": other, "turned": other[::-1].T, "host": np.arange(7)}
        ).result()
    found = penstock.load(tmp_path / "x.safetensors", "host")
    assert np.array_equal(found["t"], np.full((500, 300), 3, "f4"))
    assert np.array_equal(found["strided"], np.full((100, 500), 3, "f4"))
    assert np.array_equal(found["c"], other.get())
    assert np.array_equal(found["turned"], other.get()[::-1].T)
    assert np.array_equal(found["host"], np.arange(7))


def test_torch_functions_are_drop_ins(tmp_path: Path, stored: dict[str, np.ndarray], torch: Any) -> None:
    reference = pytest.importorskip("safetensors.torch")
    weights = {
        "w": torch.randn(1000, 300, dtype=torch.bfloat16),
        "b": torch.randn(7).to(torch.float8_e5m2),
        "n": torch.arange(3),
    }
    reference.save_file(weights, tmp_path / "m.safetensors")
    for device in ("cuda", "cuda:0", 0, torch.device("cuda")):
        found = penstock.torch.load_file(tmp_path / "m.safetensors", device=device)
        for name, tensor in found.items():
            assert tensor.device == torch.device(DEVICE)
            assert tensor.dtype == weights[name].dtype
            assert torch.equal(tensor.cpu().view(torch.uint8), weights[name].view(torch.uint8))
    penstock.torch.save_file(found, tmp_path / "n.safetensors")
    again = reference.load_file(tmp_path / "n.safetensors")
    assert all(torch.equal(again[name].view(torch.uint8), weights[name].view(torch.uint8)) for name in weights)


def test_like_gives_arrays_of_a_library(tmp_path: Path, stored: dict[str, np.ndarray], torch: Any, cupy: Any) -> None:
    for like in (cupy.empty(()), torch.empty(0)):
        found = penstock.load(tmp_path / "x.safetensors", DEVICE, like=like)
        assert all(type(one) is type(like) for one in found.values())
        assert float(found["c"]) == float(stored["c"])


def test_members_of_compound_elements_are_gathered_on_the_gpu(tmp_path: Path, cupy: Any) -> None:
    particles = np.zeros(1000, np.dtype([("x", "f4"), ("id", ">i8"), ("v", "f8", (3,))]))
    particles["x"], particles["id"] = np.arange(1000), np.arange(1000)
    particles["v"] = np.arange(3000).reshape(-1, 3)
    np.save(tmp_path / "p.npy", particles)
    with penstock.open(tmp_path / "p.npy", device=DEVICE) as file:
        for name in ("x", "id", "v"):
            assert np.array_equal(cupy.from_dlpack(file["data"].field(name)).get(), particles[name])


def test_hdf5_comes_to_the_gpu(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    content = sample((300, 70), "f4")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["plain"] = content
        file.create_dataset("chunked", data=content, chunks=(64, 16))
        file.create_dataset("packed", data=content, chunks=(64, 16), compression="gzip")
        file["big"] = content.astype(">f4")
    with penstock.open(tmp_path / "x.h5", device=DEVICE, decode="host") as opened:
        for name in opened:
            for index in (..., (slice(5, 200, 7), slice(60, 3, -2))):
                assert np.array_equal(opened[name][index].to_numpy(), content[index]), name
        assert opened.evidence()["formats"]["host_decoded_bytes"] > 0
