"""Rows, small reads, decoded chunks, batches and compressed writing on the GPU where there is one, else on the emulated
device: what is computed on the host has to come to the device, and the other way."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest
from format_kit import sample

import penstock as ps
from penstock import _core
from penstock._arrays.dtype import DType
from penstock.data import BatchLoader, Samples
from penstock.formats.model import Container, DatasetInfo
from penstock.formats.reading.rows import known_rows

if TYPE_CHECKING:
    from penstock.formats.reading.mover import Mover

GPU = _core.cuda_devices()[0] > 0
DEVICE = "cuda:0" if GPU else "host"
COMPRESSED = [("h5", "gzip"), ("zarr", "gzip"), ("zarr", "zstd"), ("h5", None), ("zarr", None), ("npy", None)]


def stored_at(folder: Path, ending: str, filters: str | None, rows: np.ndarray) -> tuple[Path, str]:
    """A file of those rows, in chunks where it is compressed; and the name of its dataset."""
    options: dict[str, Any] = {} if filters is None else {"compression": filters, "chunk_shape": (7, *rows.shape[1:])}
    path = folder / f"stored.{ending}"
    if ending == "npy":
        ps.save(path, rows, "host")
        return path, "data"
    ps.save(path, {"x": rows}, "host", **options)
    return path, "x"


def on_device(values: np.ndarray) -> Any:
    """Those values in memory of the device, as another library's array."""
    return pytest.importorskip("cupy").asarray(values) if GPU else values


@pytest.mark.parametrize(("ending", "filters"), COMPRESSED)
@pytest.mark.parametrize("type_name", ["f4", "i2"])
def test_rows_come_in_any_order(tmp_path: Path, ending: str, filters: str | None, type_name: str) -> None:
    rows = sample((500, 30, 3), type_name)
    path, name = stored_at(tmp_path, ending, filters, rows)
    chance = np.random.default_rng(3)
    with ps.open(path, device=DEVICE) as file:
        data = file[name]
        for wanted in (chance.integers(-500, 500, 200), np.array([499]), np.arange(499, -1, -1), np.zeros(9, int)):
            found = data[wanted]
            assert found.device == DEVICE
            assert np.array_equal(found.to_numpy(), rows[wanted])
        keep = chance.random(500) < 0.3
        assert np.array_equal(data[keep].to_numpy(), rows[keep])
        assert np.array_equal(data[3:100, [7, 2, 29], 1].to_numpy(), rows[3:100, [7, 2, 29], 1])


@pytest.mark.parametrize("ending", ["h5", "npy"])
def test_rows_go_to_memory_of_others_as_fast_as_to_new_memory(tmp_path: Path, ending: str) -> None:
    rows = sample((500, 30, 3), "f4")
    path, name = stored_at(tmp_path, ending, None, rows)
    numbers = np.random.default_rng(3).integers(0, 500, 200)
    with ps.open(path, device=DEVICE) as file:
        out = on_device(np.zeros((200, 30, 3), "f4"))
        assert file[name].read(numbers, out=out) is out
        assert np.array_equal(out.get() if GPU else out, rows[numbers])
        assert "on the calling thread" in file.evidence()["plan"], "by small reads, not by a transfer"
        other = on_device(np.zeros((200, 30, 3), "f8"))
        with pytest.raises(TypeError, match="float64"):
            file[name].read(numbers, out=other)


@pytest.mark.skipif(not GPU, reason="needs a GPU: work is queued on it")
@pytest.mark.parametrize("own_stream", [False, True])
def test_rows_wait_for_work_that_is_queued_on_their_memory(tmp_path: Path, own_stream: bool) -> None:
    cupy = pytest.importorskip("cupy")
    rows = sample((4000, 1000), "f4")
    path, name = stored_at(tmp_path, "h5", None, rows)
    numbers = np.random.default_rng(3).integers(0, 4000, 3000)
    with ps.open(path, device=DEVICE) as file, cupy.cuda.Stream(non_blocking=True) if own_stream else nullcontext():
        out = cupy.zeros((3000, 1000), "f4")
        file[name].read(numbers, out=out)
        for _ in range(10):
            for _ in range(300):
                out += 1
            file[name].read(numbers, out=out)
            assert np.array_equal(out.get(), rows[numbers])


@pytest.mark.parametrize(("ending", "filters"), COMPRESSED)
def test_one_row_after_another(tmp_path: Path, ending: str, filters: str | None) -> None:
    rows = sample((300, 40), "f8")
    path, name = stored_at(tmp_path, ending, filters, rows)
    with ps.open(path, device=DEVICE) as file:
        for at in np.random.default_rng(4).integers(0, 300, 400):
            found = file[name][int(at)]
            assert found.device == DEVICE
            assert np.array_equal(found.to_numpy(), rows[at]), at


@pytest.mark.parametrize(("ending", "filters"), [one for one in COMPRESSED if one[1]])
@pytest.mark.parametrize("decode", ["auto", "host"])
def test_decoded_chunks_come_to_the_device(tmp_path: Path, ending: str, filters: str, decode: Any) -> None:
    rows = sample((700, 1000), "f4")
    path, name = stored_at(tmp_path, ending, filters, rows)
    with ps.open(path, device=DEVICE) as file:
        whole = file[name].read(decode=decode)
        assert whole.device == DEVICE
        assert np.array_equal(whole.to_numpy(), rows)
        part = file[name][5:666:3, ::-2]
        assert np.array_equal(part.to_numpy(), rows[5:666:3, ::-2])


@pytest.mark.parametrize(("ending", "filters"), COMPRESSED[:3])
@pytest.mark.parametrize("shape", [(700, 333), (5, 3), (64, 1024)])
def test_memory_of_the_device_is_compressed(tmp_path: Path, ending: str, filters: str, shape: tuple[int, int]) -> None:
    values = sample(shape, "f4")
    path = tmp_path / f"written.{ending}"
    ps.save(path, {"x": on_device(values)}, DEVICE, compression=filters)
    with ps.open(path, device="host") as file:
        assert np.array_equal(file["x"].read().to_numpy(), values)


@pytest.mark.parametrize("ending", ["h5", "zarr"])
def test_rows_of_a_file_are_written_from_the_device(tmp_path: Path, ending: str) -> None:
    rows = sample((100, 20), "f4")
    path, name = stored_at(tmp_path, ending, None, rows)
    wanted = np.array([99, 3, 50, 4])
    fresh = sample((4, 20), "f4", 9)
    with ps.open(path, write=True, device=DEVICE) as file:
        file[name][wanted] = on_device(fresh)
    rows[wanted] = fresh
    with ps.open(path, device="host") as file:
        assert np.array_equal(file[name].read().to_numpy(), rows)


@pytest.mark.parametrize(("ending", "filters"), COMPRESSED)
def test_batches_on_the_device(tmp_path: Path, ending: str, filters: str | None) -> None:
    rows = sample((230, 16), "f4")
    path, name = stored_at(tmp_path, ending, filters, rows)
    (tmp_path / "more").mkdir()
    other = stored_at(tmp_path / "more", "npy", None, rows[:70] + 1)
    both = np.concatenate([rows, rows[:70] + 1])
    with ps.open(path, device=DEVICE) as file, ps.open(other[0], device=DEVICE) as more:
        samples = Samples([file[name], more[other[1]]])
        for epoch in range(2):
            order = np.random.default_rng([5, epoch]).permutation(300)
            loader = BatchLoader(samples, 64, seed=5)
            loader.set_epoch(epoch)
            batches = list(loader)
            assert [len(batch) for batch in batches] == [64, 64, 64, 64, 44]
            assert all(batch.device == DEVICE for batch in batches)
            assert np.array_equal(np.concatenate([batch.to_numpy() for batch in batches]), both[order])


def test_batches_of_tensors_follow_the_order_of_the_stream(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from penstock.torch import BatchLoader as TensorBatches, Dataset

    rows = sample((1000, 4096), "f4")
    path, name = stored_at(tmp_path, "npy", None, rows)
    with ps.open(path, device=DEVICE) as file:
        found = []
        for batch in TensorBatches(file[name], 100, shuffle=False):
            assert batch.device.type == ("cuda" if GPU else "cpu")
            found.append((batch * 2).sum(dim=1))
            del batch  # its memory may be given to the next one
        expected = torch.from_numpy(rows).to(found[0].device)
        assert torch.allclose(torch.cat(found), (expected * 2).sum(dim=1), rtol=1e-4, equal_nan=True)
        loader = torch.utils.data.DataLoader(Dataset(file[name]), 50, shuffle=True)
        assert sum(len(batch) for batch in loader) == 1000


def test_a_gpu_does_not_look_for_all_of_many_chunks_before_its_first_rows() -> None:
    class NoMetadata(Container):
        names = info = table = attributes = close = None  # type: ignore[assignment]  # nothing is asked

        def watch(self, name: str) -> Any:
            raise LookupError(name)

    info = DatasetInfo("x", (10_000_000, 4), DType.of("float32"), (64, 4), layout="chunked")
    mover, container = cast("Mover", SimpleNamespace(emulated=False)), NoMetadata()
    assert known_rows(mover, container, info, _core.SmallTally()) is None
    with pytest.raises(LookupError):
        known_rows(mover, container, replace(info, shape=(100_000, 4)), _core.SmallTally())
