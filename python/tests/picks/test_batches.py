"""Samples and batches: each sample once an epoch, in an order that seed and epoch give, from files of every format."""

from __future__ import annotations

import gc
import importlib
import json
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import time
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import penstock
from penstock.data import BatchLoader, Samples

ROWS = 50


def rows(first: int = 0, count: int = ROWS) -> np.ndarray:
    return (np.arange(count)[:, None] + first + np.zeros((1, 3))).astype("float32")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    made = tmp_path_factory.mktemp("batches")
    penstock.save(made / "a.h5", {"x": rows(), "y": np.arange(ROWS)}, "host")
    penstock.save(made / "b.zarr", {"x": rows(ROWS)}, "host")
    np.save(made / "c.npy", rows(2 * ROWS, 7))
    return {name[0]: made / name for name in ("a.h5", "b.zarr", "c.npy")}


@pytest.fixture
def opened(files: dict[str, Path]) -> Any:
    handles = {name: penstock.open(path, device="host") for name, path in files.items()}
    yield {"a": handles["a"]["x"], "y": handles["a"]["y"], "b": handles["b"]["x"], "c": handles["c"]["data"]}
    for handle in handles.values():
        handle.close()


def numbers_of(batches: Any) -> list[list[int]]:
    return [np.asarray(batch)[:, 0].astype(int).tolist() for batch in batches]


def test_samples_are_the_rows_of_all_datasets(opened: Any) -> None:
    samples = Samples([opened["a"], opened["b"], opened["c"]])
    assert len(samples) == 107
    assert [float(np.asarray(samples[at])[0]) for at in (0, 49, 50, 106, -1)] == [0, 49, 50, 106, 106]
    wanted = [106, 3, 60, 3, -50, 100]
    assert np.asarray(samples.batch(wanted))[:, 0].tolist() == [106, 3, 60, 3, 57, 100]
    assert [float(np.asarray(one)[0]) for one in samples.__getitems__([55, 2])] == [55, 2]
    assert samples.batch([]).shape == (0, 3)
    for wrong in ([107], [-108, 3]):
        with pytest.raises(IndexError, match="out of bounds"):
            samples.batch(wrong)
    with pytest.raises(IndexError, match="index 107 is out of bounds for 107 samples"):
        samples[107]
    with pytest.raises(TypeError, match=r"an int, not slice; batch\(\) takes several"):
        samples[0:3]  # type: ignore[index]


def test_columns_keep_together(opened: Any) -> None:
    samples = Samples({"x": opened["a"], "y": opened["y"]})
    for batch in BatchLoader(samples, 8):
        assert np.array_equal(np.asarray(batch["x"])[:, 0], np.asarray(batch["y"]))
    one = samples.__getitems__([7, 9])[1]
    assert int(one["y"]) == 9


def test_datasets_that_do_not_fit_are_refused(opened: Any) -> None:
    with pytest.raises(ValueError, match=r"rows of dataset '.*y' are \(\) of int64, those of '.*x' \(3,\) of float32"):
        Samples([opened["a"], opened["y"]])
    with pytest.raises(ValueError, match="the same length"):
        Samples({"x": opened["a"], "z": opened["c"]})
    with pytest.raises(TypeError, match="taken from a Dataset"):
        Samples([])
    with pytest.raises(TypeError, match="samples of 'x' are taken from a Dataset"):
        Samples({"x": [np.zeros(3)]})


OPTIONS = st.fixed_dictionaries({"shuffle": st.booleans(), "drop_last": st.booleans(), "ahead": st.integers(1, 3)})


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 70), st.integers(1, 5), st.integers(0, 3), OPTIONS)
def test_each_sample_comes_once_on_one_rank(
    files: dict[str, Path], size: int, world: int, epoch: int, options: Any
) -> None:
    drop_last = options["drop_last"]
    with penstock.open(files["a"], device="host") as file:
        seen: list[int] = []
        counts = set()
        for rank in range(world):
            loader = BatchLoader(file["x"], size, rank=rank, world=world, **options)
            loader.set_epoch(epoch)
            batches = numbers_of(loader)
            assert len(batches) == len(loader)
            assert all(len(batch) == size for batch in batches[: None if drop_last else -1])
            counts.add(len(batches))
            seen += [number for batch in batches for number in batch]
        assert len(set(seen)) == len(seen)
        if drop_last:
            assert len(counts) == 1
        else:
            assert sorted(seen) == list(range(ROWS))


def test_epochs_differ_and_seeds_say_how(opened: Any) -> None:
    loader = BatchLoader(opened["a"], 16, seed=3)
    first, second = numbers_of(loader), numbers_of(loader)
    assert first != second
    again = BatchLoader(opened["a"], 16, seed=3)
    assert [numbers_of(again), numbers_of(again)] == [first, second]
    assert numbers_of(BatchLoader(opened["a"], 16, seed=4)) != first
    assert numbers_of(BatchLoader(opened["a"], 16, shuffle=False)) == [
        [*range(at, min(at + 16, 50))] for at in range(0, 50, 16)
    ]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 9))
def test_a_place_is_taken_up_again(files: dict[str, Path], handed: int) -> None:
    with penstock.open(files["a"], device="host") as file:
        whole = BatchLoader(file["x"], 16, seed=3)
        expected = numbers_of(whole) + numbers_of(whole) + numbers_of(whole)
        loader = BatchLoader(file["x"], 16, seed=3)
        found: list[list[int]] = []
        while len(found) < handed:
            for batch in loader:
                found += numbers_of([batch])
                if len(found) == handed:
                    break
        state = pickle.loads(pickle.dumps(loader.state_dict()))
        other = BatchLoader(file["x"], 16, seed=3)
        other.load_state_dict(state)
        while len(found) < len(expected):
            found += numbers_of(other)
        assert found == expected


def test_a_rank_without_samples_has_the_epochs_of_the_others(opened: Any) -> None:
    ranks = [BatchLoader(opened["a"], 8, rank=rank, world=len(opened["a"]) + 1) for rank in (0, len(opened["a"]))]
    for epoch in range(3):
        assert [loader.state_dict()["epoch"] for loader in ranks] == [epoch] * 2
        assert [len(list(loader)) for loader in ranks] == [1, 0]


def test_an_epoch_that_is_none_is_refused_and_the_place_stays(opened: Any) -> None:
    loader = BatchLoader(opened["a"], 8)
    next(iter(loader))
    place = loader.state_dict()
    wrong: Any
    for wrong, error in ((-1, ValueError), (1.5, TypeError), ("a", TypeError), (None, TypeError)):
        with pytest.raises(error, match="epoch is -1, it must be 0 or more|integer"):
            loader.set_epoch(wrong)
        assert loader.state_dict() == place


def test_a_place_is_of_plain_numbers(opened: Any) -> None:
    given: Any = {"seed": np.int64(3), "world": np.int32(2), "shuffle": np.bool_(True)}
    size: Any = np.int64(8)
    loader = BatchLoader(opened["a"], size, **given)
    loader.set_epoch(size)
    place = json.loads(json.dumps(loader.state_dict()))
    assert place["epoch"] == 8 and place["seed"] == 3
    loader.load_state_dict(place)


def test_a_place_of_another_order_is_refused(opened: Any) -> None:
    state = BatchLoader(opened["a"], 16, seed=3).state_dict()
    with pytest.raises(ValueError, match="the place is one of seed=3, this loader has seed=4"):
        BatchLoader(opened["a"], 16, seed=4).load_state_dict(state)


def test_sizes_that_make_no_sense_are_refused(opened: Any) -> None:
    for wrong in ({"batch_size": 0}, {"batch_size": 1, "ahead": 0}, {"batch_size": 1, "rank": 2, "world": 2}):
        with pytest.raises(ValueError, match="it must be"):
            BatchLoader(opened["a"], **wrong)
    with pytest.raises(TypeError, match="no option .workers.; there are shuffle, seed"):
        BatchLoader(opened["a"], 4, workers=3)


def test_batches_are_read_ahead_and_no_further(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    batch = Samples.batch
    monkeypatch.setattr(Samples, "batch", lambda self, numbers: asked.append(len(numbers)) or batch(self, numbers))
    batches = iter(BatchLoader(opened["a"], 5, ahead=3))
    next(batches)
    deadline = time.monotonic() + 10
    while len(asked) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.05)
    assert len(asked) == 3
    del batches
    gc.collect()
    assert not [one for one in threading.enumerate() if one.name.startswith("penstock-batches")]


def test_what_a_read_raises_comes_in_place_of_the_batch(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", rows())
    with penstock.open(tmp_path / "a.npy", device="host") as file:
        loader = BatchLoader(file["data"], 10, shuffle=False)
        with (tmp_path / "a.npy").open("r+b") as raw:
            raw.truncate(128 + 12 * 25)
        found = iter(loader)
        next(found), next(found)
        with pytest.raises(penstock.Error, match=r"a\.npy"):
            next(found)


def _of_child(samples: Samples) -> list[float]:
    return np.asarray(samples.batch([49, 0]))[:, 0].tolist()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_other_processes_open_the_files_anew(opened: Any, method: str) -> None:
    samples = Samples(opened["a"])
    assert _of_child(samples) == [49, 0]
    with multiprocessing.get_context(method).Pool(1) as pool:
        assert pool.apply(_of_child, (samples,)) == [49, 0]


def test_a_fork_opens_the_files_anew(opened: Any) -> None:
    samples = Samples(opened["a"])
    _of_child(samples)
    child = os.fork()
    if not child:
        os._exit(0 if _of_child(samples) == [49, 0] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def faces_of(fake_worker: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """penstock.torch with NumPy in PyTorch's place. `fake_worker`: says which worker of a DataLoader this is."""
    fake, data = types.ModuleType("torch"), types.ModuleType("torch.utils.data")
    fake.from_dlpack = np.from_dlpack  # type: ignore[attr-defined]
    fake.float32, fake.int64 = np.float32, np.int64  # type: ignore[attr-defined]
    data.Dataset = data.IterableDataset = type("Dataset", (), {})  # type: ignore[attr-defined]
    data.get_worker_info = fake_worker  # type: ignore[attr-defined]
    for name, module in (("torch", fake), ("torch.utils", types.ModuleType("torch.utils")), (data.__name__, data)):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, "penstock.torch", raising=False)
    monkeypatch.delitem(vars(penstock), "torch", raising=False)
    faces = importlib.import_module("penstock.torch")
    del sys.modules["penstock.torch"]
    del vars(penstock)["torch"]  # else the module of the fake would stay; monkeypatch would put it back
    return faces


@pytest.mark.parametrize("workers", [1, 2, 3, 7])
@pytest.mark.parametrize("done", [0, 2, 5])
def test_workers_of_pytorch_share_the_batches_in_turn(
    opened: Any, workers: int, done: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = types.SimpleNamespace(id=0, num_workers=workers)
    faces = faces_of(lambda: here, monkeypatch)
    expected = numbers_of(BatchLoader(opened["a"], 9, seed=4))[done:]
    shares = []
    for here.id in range(workers):
        loader = faces.BatchLoader(opened["a"], 9, seed=4)
        loader.load_state_dict(loader.state_dict() | {"batch": done})
        shares.append(numbers_of(loader))
        assert loader.state_dict()["epoch"] == 1
    in_turn = [shares[at % workers][at // workers] for at in range(len(expected))]
    assert in_turn == expected
    assert sum(map(len, shares)) == len(expected)


def test_batches_of_pytorch_share_the_memory(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the DLPack protocol."""
    faces = faces_of(lambda: None, monkeypatch)
    dataset = faces.Dataset({"x": opened["a"], "y": opened["y"]})
    assert isinstance(dataset[3]["x"], np.ndarray)
    assert [int(one["y"]) for one in dataset.__getitems__([5, 2])] == [5, 2]
    loader = faces.BatchLoader(opened["a"], 20, shuffle=False, drop_last=True)
    assert [type(batch) for batch in loader] == [np.ndarray] * 2
    assert numbers_of(faces.BatchLoader(dataset, 50, shuffle=False).__iter__().__next__()[name] for name in "x") == [
        list(range(50))
    ]


@pytest.mark.parametrize("parts", ["a", "ab"])
@pytest.mark.parametrize(
    ("indices", "error"),
    [
        ([1.7], TypeError),
        ([True, False], TypeError),
        (np.array([2**64 - 1], "u8"), IndexError),
        ([2**64], TypeError),
        ([[1, 2]], TypeError),
        ([-101], IndexError),
        ([3, 100], IndexError),
    ],
)
def test_what_names_no_sample_is_refused(opened: Any, parts: str, indices: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="sample|integers"):
        Samples([opened[part] for part in parts]).batch(indices)


def test_unsigned_numbers_name_samples(opened: Any) -> None:
    found = Samples([opened["a"], opened["b"]]).batch(np.array([99, 0, 50], "u1"))
    assert np.asarray(found)[:, 0].tolist() == [99, 0, 50]


def test_an_epoch_that_another_left_ends_with_an_error(opened: Any) -> None:
    loader = BatchLoader(opened["a"], 20, shuffle=False)
    first = iter(loader)
    next(first)
    assert len(list(loader)) == 2  # goes on behind it
    with pytest.raises(RuntimeError, match="another epoch was begun after batch 1 of 3"):
        next(first)


def test_the_next_epoch_may_be_named_at_the_last_batch(opened: Any) -> None:
    loader = BatchLoader(opened["a"], ROWS, shuffle=False)
    for _ in loader:
        loader.set_epoch(7)
    assert (loader.state_dict()["epoch"], loader.state_dict()["batch"]) == (7, 0)


@pytest.mark.parametrize("change", [{"batch": -1}, {"epoch": -1}, {"seed": None}, {"batch": 4}, {"batch": 2**70}])
def test_a_place_that_is_none_is_refused(opened: Any, change: dict[str, Any]) -> None:
    loader = BatchLoader(opened["a"], 20)
    place = {**loader.state_dict(), **change}
    with pytest.raises(ValueError, match="place|there is no batch"):
        loader.load_state_dict({name: value for name, value in place.items() if value is not None})
    with pytest.raises(TypeError, match="a dict that state_dict"):
        loader.load_state_dict(None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="integer"):
        loader.load_state_dict({**loader.state_dict(), "batch": 0.5})  # type: ignore[dict-item]
    assert numbers_of(loader) == numbers_of(BatchLoader(opened["a"], 20))


def test_wrong_options_are_told_at_once(opened: Any) -> None:
    with pytest.raises(ValueError, match="seed is -1"):
        BatchLoader(opened["a"], 20, seed=-1)
    with pytest.raises(TypeError):
        BatchLoader(opened["a"], 2.5)  # type: ignore[arg-type]


def test_text_of_several_files_is_one_batch(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    for name, values in (("a", ["x", "y"]), ("b", ["zürich", ""])):
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            file["t"] = values
    with penstock.open(tmp_path / "a.h5", device="host") as a, penstock.open(tmp_path / "b.h5", device="host") as b:
        assert Samples([a["t"], b["t"]]).batch([2, 0, 3, 1]).tolist() == ["zürich", "x", "", "y"]


@pytest.mark.parametrize(("cores", "threads"), [(1, 2), (2, 2), (16, 4), (128, 8)])
def test_a_loader_has_threads_by_cores_unless_told(
    cores: int, threads: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    np.save(tmp_path / "x.npy", np.arange(10))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
    with penstock.open(tmp_path / "x.npy", device="host") as file:
        loader, told = BatchLoader(file["data"], 2), BatchLoader(file["data"], 2, threads=3)
    assert (loader._threads, loader._ahead) == (threads, 2 * threads)
    assert (told._threads, told._ahead) == (3, 6)


@pytest.mark.parametrize("how", ["", "raise ValueError('left')", "import sys; sys.exit()"])
def test_a_program_may_end_in_the_midst_of_an_epoch(tmp_path: Path, how: str) -> None:
    """Its iterator is held to the end, so that no loop closes it."""
    np.save(tmp_path / "x.npy", rows())
    program = (
        "import penstock; from penstock.data import BatchLoader\n"
        f"file = penstock.open({str(tmp_path / 'x.npy')!r}, device='host')\n"
        "batches = iter(BatchLoader(next(iter(file.values())), 2, threads=3))\n"
        f"assert len(next(batches)) == 2\n{how}"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert ("left" in done.stderr) == ("left" in how)
    assert done.returncode == int("left" in how), done.stderr
