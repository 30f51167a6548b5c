"""Lists and masks that lie in memory of a device: read and written with as if they were NumPy's, copied once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from format_kit import sample

import penstock as ps
from penstock import _core

GPU = _core.cuda_devices()[0] > 0
DEVICE = "cuda:0" if GPU else "host"


class _OnDevice:
    """Numbers in memory of the device, as Numba has them: NumPy cannot take them. Counts how often it is described."""

    def __init__(self, context: ps.Context, values: np.ndarray, step: int = 1) -> None:
        self._buffer = context.allocate(max(1, values.nbytes))
        if values.nbytes:
            context.copy_to_device(self._buffer, values.reshape(-1).view(np.uint8))
        self._values, self._step = values, step

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        values = self._values[:: self._step]
        told = {"shape": values.shape, "typestr": values.dtype.str, "version": 3, "stream": None}
        return {**told, "data": (self._buffer.address, False), "strides": None if self._step == 1 else values.strides}

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise TypeError("implicit conversion to a NumPy array is not allowed")


class _LikeCuPy(_OnDevice):
    """Has gaps, which only its own library copies."""

    def get(self) -> np.ndarray:
        return self._values[:: self._step]


_LikeCuPy.__module__ = "cupy"


@pytest.fixture
def context() -> ps.Context:
    return ps.Context(DEVICE)


@pytest.fixture(params=["npy", "h5", "packed.h5", "zarr"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    made, options = tmp_path / f"x.{request.param}", {}
    if request.param == "packed.h5":
        options = {"compression": "gzip", "chunk_shape": (7, 6)}
    ps.save(made, {"data": ROWS} if request.param != "npy" else ROWS, "host", **options)
    return made


ROWS = sample((50, 6), "f4")
NUMBERS = np.array([7, 3, -1, 7, 49, 0])
MASK = np.arange(50) % 3 == 1


@pytest.mark.parametrize("type_name", ["i8", "i4", "u1"])
def test_lists_may_lie_on_the_device(path: Path, context: ps.Context, type_name: str) -> None:
    numbers = NUMBERS.clip(0).astype(type_name)
    with ps.open(path, context=context) as file:
        data, there = file["data"], _OnDevice(context, numbers)
        for _ in range(2):  # the second read takes another way where there is one
            assert np.array_equal(data[there].to_numpy(), ROWS[numbers])
        assert np.array_equal(data[there, 2:5].to_numpy(), ROWS[numbers, 2:5])
        assert np.array_equal(data[4, _OnDevice(context, np.array([5, 0]))].to_numpy(), ROWS[4, [5, 0]])
        assert np.array_equal(data.read(there).to_numpy(), ROWS[numbers])
        assert np.array_equal(data.start_read(there).result().to_numpy(), ROWS[numbers])
        assert np.array_equal(data.gather(there).to_numpy(), ROWS[numbers])
        assert data.extents(there) == data.extents(numbers)
        assert data[_OnDevice(context, np.empty(0, type_name))].shape == (0, 6)


def test_masks_may_lie_on_the_device(path: Path, context: ps.Context) -> None:
    with ps.open(path, context=context) as file:
        data = file["data"]
        assert np.array_equal(data[_OnDevice(context, MASK)].to_numpy(), ROWS[MASK])
        whole = (np.arange(300) % 7 == 2).reshape(50, 6)
        assert np.array_equal(data[_OnDevice(context, whole)].to_numpy(), ROWS[whole])


def test_an_array_that_was_read_is_an_index(tmp_path: Path, context: ps.Context) -> None:
    """As of a dataset, so of an array: on a GPU both lie in its memory."""
    ps.save(tmp_path / "x.h5", {"rows": ROWS, "numbers": NUMBERS, "mask": MASK}, "host")
    with ps.open(tmp_path / "x.h5", context=context) as file:
        numbers, mask, rows = file["numbers"][...], file["mask"][...], file["rows"]
        assert np.array_equal(rows[numbers].to_numpy(), ROWS[NUMBERS])
        assert np.array_equal(rows[numbers[::2]].to_numpy(), ROWS[NUMBERS[::2]])
        assert np.array_equal(rows[mask].to_numpy(), ROWS[MASK])
        read = rows[...]
        assert np.array_equal(read[numbers].to_numpy(), ROWS[NUMBERS])
        assert np.array_equal(read[_OnDevice(context, NUMBERS)].to_numpy(), ROWS[NUMBERS])


@pytest.mark.parametrize("ending", ["h5", "zarr"])
def test_rows_are_written_by_a_list_on_the_device(tmp_path: Path, context: ps.Context, ending: str) -> None:
    path, wanted, fresh = tmp_path / f"x.{ending}", np.array([9, 3, 40]), sample((3, 6), "f4", 5)
    ps.save(path, {"data": ROWS}, "host")
    with ps.open(path, write=True, context=context) as file:
        buffer = context.allocate(fresh.nbytes)
        context.copy_to_device(buffer, fresh.view(np.uint8))
        file["data"][_OnDevice(context, wanted)] = ps.Array(buffer, "f4", fresh.shape)
        found = file["data"][_OnDevice(context, wanted)].to_numpy()
    assert np.array_equal(found, fresh)


def test_lists_with_gaps_are_copied_by_cupy_and_refused_of_others(tmp_path: Path, context: ps.Context) -> None:
    ps.save(tmp_path / "x.h5", {"data": ROWS}, "host")
    with ps.open(tmp_path / "x.h5", context=context) as file:
        assert np.array_equal(file["data"][_LikeCuPy(context, NUMBERS, 2)].to_numpy(), ROWS[NUMBERS[::2]])
        with pytest.raises(ps.Error, match="the device array is not contiguous"):
            file["data"][_OnDevice(context, NUMBERS, 2)]


def test_what_is_wrong_on_the_device_is_told_as_of_numpys(tmp_path: Path, context: ps.Context) -> None:
    ps.save(tmp_path / "x.h5", {"data": ROWS}, "host")
    with ps.open(tmp_path / "x.h5", context=context) as file:
        data = file["data"]
        with pytest.raises(IndexError, match="index 50 is out of bounds for dimension 0 of extent 50"):
            data[_OnDevice(context, np.array([3, 50]))]
        with pytest.raises(TypeError, match="indices are integers, those of dimension 0 are float32"):
            data[_OnDevice(context, np.array([3], "f4"))]
        with pytest.raises(IndexError, match="a mask of 50 elements does not fit dimension 1 of extent 6"):
            data[:, _OnDevice(context, MASK)]


@pytest.mark.skipif(not GPU, reason="needs a GPU: arrays of its libraries")
@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_arrays_of_the_libraries_of_a_gpu_are_indices(path: Path, context: ps.Context, library: str) -> None:
    module = pytest.importorskip(library)
    with ps.open(path, context=context) as file:
        for wanted in (NUMBERS, MASK):
            there = module.asarray(wanted) if library == "cupy" else module.asarray(wanted).to(DEVICE)
            assert np.array_equal(file["data"][there].to_numpy(), ROWS[wanted])
