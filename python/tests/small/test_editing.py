"""Small reads and writes of files that are changed in place: what NumPy holds after the same, whoever makes them."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from places import examples

import penstock
from penstock.formats import state
from penstock.formats.pending import HostWork, Pending
from penstock.formats.reading.execution import Execution

h5py = pytest.importorskip("h5py")

ROWS, COLUMNS = 40, 300
KINDS = ("contiguous", "chunked", "turned", "growing", "packed")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "edited.h5"
    numbers = np.arange(ROWS * COLUMNS, dtype="f4").reshape(ROWS, COLUMNS)
    with h5py.File(made, "w") as file:
        file["contiguous"] = numbers
        file.create_dataset("chunked", data=numbers, chunks=(7, 64))
        file["turned"] = numbers.astype(">f4")
        file.create_dataset("growing", data=numbers, chunks=(8, COLUMNS), maxshape=(None, COLUMNS))
        file.create_dataset("packed", data=numbers, chunks=(8, COLUMNS), compression="gzip")
    return made


@pytest.fixture
def edited(path: Path) -> Iterator[penstock.DataFile]:
    with penstock.open(path, write=True, device="host") as file:
        yield file


def numpy_of(found: Any) -> np.ndarray:
    return np.asarray(found.to_numpy() if hasattr(found, "to_numpy") else found)


def no_transfers(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("a transfer was planned")

    monkeypatch.setattr(state, "write_job", refuse)
    monkeypatch.setattr(state, "read_job", refuse)


@pytest.mark.parametrize("kind", ["contiguous", "chunked", "turned", "growing"])
def test_rows_are_written_and_read_without_a_transfer(
    edited: penstock.DataFile, path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset, row = edited[kind], np.full(COLUMNS, 7, "f4")
    dataset[0] = row
    dataset[1] = row
    no_transfers(monkeypatch)
    dataset[2] = row
    dataset[3:5, 10:20] = np.full((2, 10), 8, "f4")
    out = np.empty((4, COLUMNS), "f4")
    dataset.read(slice(1, 5), out=out)
    expected = np.arange(ROWS * COLUMNS, dtype="f4").reshape(ROWS, COLUMNS)
    expected[:3], expected[3:5, 10:20] = 7, 8
    assert np.array_equal(out, expected[1:5]) and np.array_equal(numpy_of(dataset[2]), expected[2])
    edited.close()
    with h5py.File(path) as file:
        assert np.array_equal(file[kind], expected)


@pytest.mark.parametrize("kind", ["contiguous", "chunked", "turned", "growing"])
@pytest.mark.parametrize("rows", [[3, 1, 17, 2], np.array([0, -1, 20], "i4"), np.arange(ROWS) % 3 == 0])
def test_listed_rows_need_no_transfer_from_the_first_on(
    edited: penstock.DataFile, path: Path, kind: str, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_transfers(monkeypatch)
    expected = np.arange(ROWS * COLUMNS, dtype="f4").reshape(ROWS, COLUMNS)
    value = np.random.default_rng(3).random(expected[rows].shape).astype("f4")
    edited[kind][rows] = value
    expected[rows] = value
    assert np.array_equal(numpy_of(edited[kind][...]), expected)
    edited.close()
    with h5py.File(path) as file:
        assert np.array_equal(file[kind], expected)


def test_rows_named_twice_are_refused_each_time(edited: penstock.DataFile) -> None:
    for _ in range(3):
        with pytest.raises(ValueError, match="twice"):
            edited["contiguous"][[4, 5, 4]] = np.zeros((3, COLUMNS), "f4")


def test_who_closes_waits_for_listed_rows(tmp_path: Path) -> None:
    path, shape = tmp_path / "x.h5", (60_000, 512)
    with h5py.File(path, "w") as file:
        file["x"] = np.zeros(shape, "f4")
        offset = file["x"].id.get_offset()
    value, rows = np.ones(shape, "f4"), np.random.default_rng(1).permutation(shape[0])
    file = penstock.open(path, write=True, device="host")
    writer = threading.Thread(target=file["x"].__setitem__, args=(rows, value))
    with path.open("rb", buffering=0) as plain:
        writer.start()
        while writer.is_alive() and not any(os.pread(plain.fileno(), 4, offset)):  # the first row goes first
            pass
    file.close()
    writer.join()
    with h5py.File(path) as found:
        assert (found["x"][...] == 1).all()


def test_longer_lists_are_left_to_transfers_which_hear_signals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, most = tmp_path / "x.h5", 128 * 1024
    with h5py.File(path, "w") as file:
        file["x"] = np.zeros(most + 1, "u1")
    no_transfers(monkeypatch)
    with penstock.open(path, write=True, device="host") as file:
        file["x"][np.arange(most)] = np.ones(most, "u1")
        with pytest.raises(AssertionError, match="a transfer was planned"):
            file["x"][np.arange(most + 1)] = np.ones(most + 1, "u1")


def test_rows_out_of_a_mapping_of_the_file_are_those_before(path: Path) -> None:
    with h5py.File(path) as file:
        offset, before = file["contiguous"].id.get_offset(), file["contiguous"][...]
    mapped = np.memmap(path, "f4", "r", offset, (ROWS, COLUMNS))
    order = np.arange(ROWS)[::-1].copy()
    with penstock.open(path, write=True, device="host") as file:
        file["contiguous"][order] = mapped.view(np.ndarray)
    with h5py.File(path) as file:
        assert np.array_equal(file["contiguous"][...], before[::-1])


def test_evidence_counts_them(edited: penstock.DataFile) -> None:
    dataset, row = edited["contiguous"], np.zeros(COLUMNS, "f4")
    for number in range(10):
        dataset[number] = row
    assert sum(share["bytes"] for share in edited.evidence()["paths"]) == 10 * row.nbytes


def test_evidence_names_reads_and_writes_of_one_size(edited: penstock.DataFile) -> None:
    dataset, row = edited["contiguous"], np.zeros(COLUMNS, "f4")
    for _ in range(2):  # so that neither goes by a transfer
        edited._file.editor("contiguous")
    numpy_of(dataset[0])
    dataset[1] = row
    plan = edited.evidence()["plan"]
    assert "read 1.172 KiB" in plan and "write 1.172 KiB" in plan


def index_of(draw: st.DrawFn, rows: int, masks: bool = True) -> Any:
    if draw(st.integers(0, 3)) == 0:  # rows in any order, once each: a list, an array or a mask
        chosen = draw(st.lists(st.integers(0, rows - 1), min_size=1, max_size=rows, unique=True))
        mask = np.isin(np.arange(rows), chosen)
        more = [np.array(chosen, "i4") - rows, mask] if masks else []
        return draw(st.sampled_from([chosen, np.array(chosen), np.array(chosen, "i4"), *more]))
    first = draw(st.integers(0, rows - 1))
    if draw(st.booleans()):
        return first
    low = draw(st.integers(0, COLUMNS - 1))
    columns = slice(low, draw(st.integers(low + 1, COLUMNS)), draw(st.sampled_from([1, 1, 3])))
    return slice(first, draw(st.integers(first + 1, rows)), draw(st.sampled_from([1, 1, 2]))), columns


@st.composite
def step(draw: st.DrawFn) -> tuple[str, str, int]:
    doing = draw(st.sampled_from(["write", "write", "read", "read", "whole", "append", "add", "note", "background"]))
    return doing, draw(st.sampled_from(KINDS)), draw(st.integers(0, 1 << 30))


def test_any_steps_leave_what_numpy_holds(path: Path) -> None:
    whole = path.read_bytes()

    @settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(step(), min_size=3, max_size=25), st.data())
    def check(steps: list[tuple[str, str, int]], data: st.DataObject) -> None:
        path.write_bytes(whole)
        with h5py.File(path) as file:
            held = {name: np.array(file[name]) for name in file}
        kept = {}  # datasets that were found once, as a program holds them
        with penstock.open(path, write=True, device="host") as file:
            for number, (doing, kind, seed) in enumerate(steps):
                dataset, model = kept.setdefault(kind, file[kind]), held[kind]
                index = data.draw(st.composite(index_of)(len(model), masks=kind != "growing"))  # it may grow
                value = np.random.default_rng(seed).random(model[index].shape).astype(model.dtype)
                if doing in ("write", "background") and kind != "packed":
                    if doing == "write":
                        dataset[index] = value
                    else:
                        file[kind].start_write(value, index)
                    model[index] = value
                elif doing == "append" and kind == "growing":
                    dataset.append(value := np.full((3, COLUMNS), seed, "f4"))
                    held[kind] = np.concatenate([model, value])
                elif doing == "add":
                    file[f"new {number}"] = held[f"new {number}"] = np.full((5, 5), seed, "f4")
                elif doing == "note":
                    dataset.attrs["seed"] = seed
                elif doing == "whole":
                    assert np.array_equal(numpy_of(dataset[...]), model)
                assert np.array_equal(numpy_of(dataset[index]), held[kind][index])
        with h5py.File(path) as file:
            assert set(file) == set(held)
            for name, model in held.items():
                assert np.array_equal(file[name], model), name

    check()


def test_what_is_being_written_is_read_back_whole(edited: penstock.DataFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each write begins when a caller waits for it: as on a machine that has no thread for it yet."""
    steps = Execution.steps

    def held(work: Execution) -> Any:
        yield HostWork(0)
        yield from steps(work)

    monkeypatch.setattr(Execution, "steps", held)
    monkeypatch.setattr(Pending, "_start_thread", lambda _: None)
    dataset = edited["contiguous"]
    for value in range(1, 4):
        pending = dataset.start_write(np.full((ROWS, COLUMNS), value, "f4"))
        assert not pending.is_over
        assert (numpy_of(dataset[ROWS - 1]) == value).all()
        pending.result()


@pytest.mark.parametrize(
    ("index", "value", "error"),
    [
        (0, np.zeros(COLUMNS - 1, "f4"), ValueError),
        (0, np.zeros(COLUMNS, "f8"), TypeError),
        (0, np.zeros(COLUMNS, "i4"), TypeError),
        (0, np.ones(COLUMNS, ">f4"), None),
        (0, np.zeros((2, COLUMNS), "f4")[:, ::-1][0], None),
        (ROWS, np.zeros(COLUMNS, "f4"), IndexError),
        (0, np.zeros((1, COLUMNS), "f4"), ValueError),
        ([5, 2, ROWS], np.zeros((3, COLUMNS), "f4"), IndexError),
        ([5, 2], np.zeros((3, COLUMNS), "f4"), ValueError),
        ([5, 2], np.zeros((2, COLUMNS), ">f4"), None),
    ],
)
def test_errors_are_those_of_the_first_write(
    edited: penstock.DataFile, index: Any, value: np.ndarray, error: type[Exception] | None
) -> None:
    dataset, told = edited["contiguous"], []
    for _ in range(4):
        try:
            dataset[index] = value
            told.append(None)
        except Exception as raised:
            told.append((type(raised), str(raised)))
        dataset[1] = np.zeros(COLUMNS, "f4")
    assert len(set(told)) == 1
    assert (told[0] is None) == (error is None) and (error is None or issubclass(told[0][0], error))
    if error is None:
        assert np.array_equal(numpy_of(dataset[index]), value)


def test_rows_that_were_added_are_there_at_once(edited: penstock.DataFile) -> None:
    dataset, row = edited["growing"], np.full(COLUMNS, 7, "f4")
    for number in range(1, 4):
        for _ in range(3):  # the second makes what reads the others
            assert dataset[...].shape == (ROWS + number - 1, COLUMNS)
        dataset.append(row)
        assert dataset[...].shape == (ROWS + number, COLUMNS)
        assert (numpy_of(dataset[-1]) == 7).all()


def test_a_file_of_another_that_took_the_name_is_not_touched(path: Path) -> None:
    other = path.with_name("other.h5")
    other.write_bytes(path.read_bytes())
    before = other.read_bytes()
    with pytest.raises(penstock.Error), penstock.open(path, write=True, device="host") as file:
        dataset, row = file["contiguous"], np.full(COLUMNS, 7, "f4")
        for number in range(3):
            dataset[number] = row
        other.replace(path)
        with pytest.raises(penstock.Error):
            dataset[3] = row
        file.close()
    assert path.read_bytes() == before


@pytest.mark.parametrize("suffix", ["h5", "nc"])
def test_rows_of_a_new_file_and_of_one_that_was_published(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if suffix == "nc":
        pytest.importorskip("netCDF4")
    path, numbers = tmp_path / f"new.{suffix}", np.zeros((ROWS, COLUMNS), "f4")
    for made in (True, False):
        opened = penstock.create(path, device="host") if made else penstock.open(path, write=True, device="host")
        with opened as file:
            if made:
                file["x"] = numbers
            dataset = file["x"]
            for number in range(2):
                dataset[number] = numbers[number]
            with monkeypatch.context() as patched:
                no_transfers(patched)
                for number in range(ROWS):
                    numbers[number] = number + made
                    dataset[number] = numbers[number]
                assert np.array_equal(numpy_of(dataset[...]), numbers)
        with penstock.open(path, device="host") as file:
            assert np.array_equal(numpy_of(file["x"][...]), numbers)


def test_a_name_that_another_file_had_meanwhile_leads_to_the_first_again(path: Path) -> None:
    other, aside = path.with_name("other.h5"), path.with_name("aside.h5")
    other.write_bytes(path.read_bytes())
    before, row = other.read_bytes(), np.full(COLUMNS, 7, "f4")
    with penstock.open(path, write=True, device="host") as file:
        dataset = file["contiguous"]
        numpy_of(dataset[0])
        path.rename(aside)
        other.rename(path)
        for _ in range(2):
            with suppress(penstock.Error):
                numpy_of(dataset[0])
        path.rename(other)
        aside.rename(path)
        for number in range(1, 4):
            dataset[number] = row
    assert other.read_bytes() == before
    with h5py.File(path) as read:
        assert (read["contiguous"][1:4] == 7).all()


def test_a_closed_file_is_not_written(path: Path) -> None:
    with penstock.open(path, write=True, device="host") as file:
        dataset, row = file["contiguous"], np.full(COLUMNS, 7, "f4")
        for number in range(3):
            dataset[number] = row
    for use in (lambda: dataset.__setitem__(4, row), lambda: dataset[4]):
        with pytest.raises(ValueError, match="closed"):
            use()


def test_classic_netcdf_is_edited_without_a_transfer_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    netCDF4 = pytest.importorskip("netCDF4")  # noqa: N806 - its name
    path, numbers = tmp_path / "x.nc", np.arange(ROWS * COLUMNS, dtype="f8").reshape(ROWS, COLUMNS)
    with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_OFFSET") as made:
        for name, size in (("time", None), ("row", ROWS), ("column", COLUMNS)):
            made.createDimension(name, size)
        for name, first in (("fixed", "row"), ("record", "time"), ("other", "time")):
            made.createVariable(name, "f8", (first, "column"))[:] = numbers
    held = {name: numbers.copy() for name in ("fixed", "record", "other")}
    chance = np.random.default_rng(5)
    with penstock.open(path, write=True, device="host") as file:
        kept = {name: file[name] for name in held}
        for dataset in kept.values():
            for _ in range(2):
                dataset[0] = numbers[0]
        with monkeypatch.context() as patched:
            no_transfers(patched)
            for _ in range(60):
                name, row = str(chance.choice(list(held))), int(chance.integers(ROWS))
                first = int(chance.integers(COLUMNS))
                index = (slice(row, row + int(chance.integers(1, 4))), slice(first, None))
                value = chance.random(held[name][index].shape)
                kept[name][index] = held[name][index] = value
                assert np.array_equal(kept[name][index], held[name][index])
        kept["record"].append(numbers[:2])
        held["record"] = np.concatenate([held["record"], numbers[:2]])
        kept["record"][ROWS] = held["record"][ROWS] = numbers[5]
        assert np.array_equal(kept["record"][ROWS], numbers[5])
    with netCDF4.Dataset(path) as there:
        assert np.array_equal(there["record"][:].data, held["record"])
        for name in ("fixed", "other"):
            assert np.array_equal(there[name][:ROWS].data, held[name])


def test_classic_netcdf_of_another_file_is_not_written(tmp_path: Path) -> None:
    netCDF4 = pytest.importorskip("netCDF4")  # noqa: N806 - its name
    for name in ("x.nc", "other.nc"):
        with netCDF4.Dataset(tmp_path / name, "w", format="NETCDF3_CLASSIC") as made:
            made.createDimension("n", 100)
            made.createVariable("x", "f8", ("n",))[:] = np.zeros(100)
    file = penstock.open(tmp_path / "x.nc", write=True, device="host")
    dataset = file["x"]
    for _ in range(3):
        dataset[0] = 1.0
    (tmp_path / "other.nc").rename(tmp_path / "x.nc")
    for _ in range(2):
        with pytest.raises(penstock.Error, match="another file has taken its name"):
            dataset[1] = 1.0
    with suppress(penstock.Error):
        file.close()
    with netCDF4.Dataset(tmp_path / "x.nc") as there:
        assert not there["x"][:].any()
