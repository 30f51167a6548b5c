"""Memory of a GPU on which its library has work under way: that work comes first. Skipped where there is no GPU."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock
from penstock import _core

pytestmark = pytest.mark.skipif(_core.cuda_devices()[0] == 0, reason=f"no GPU: {_core.cuda_devices()[1]}")
SIZE = 1 << 20
CYCLES = 200_000_000  # a tenth of a second of a GPU


class _Arrays:
    """Arrays of a library, and its kernels that take long: they are queued, and then the array is filled."""

    def __init__(self, library: str, stream: str) -> None:
        self.torch: Any = pytest.importorskip("torch")
        self.cupy: Any = pytest.importorskip("cupy") if library == "cupy" else None
        self.stream = stream

    def zeros(self) -> Any:
        made = self.torch.zeros(SIZE, dtype=self.torch.uint8, device="cuda:0")
        if self.cupy:
            made = self.cupy.zeros(SIZE, np.uint8)
        self.torch.cuda.synchronize()
        return made

    def on_stream(self) -> AbstractContextManager[Any]:
        side = self.torch.cuda.Stream()
        self.kept = side
        if self.stream == "default":
            return nullcontext()
        if self.cupy:
            return self.cupy.cuda.ExternalStream(side.cuda_stream)
        return self.torch.cuda.stream(side)

    def fill_late(self, array: Any, value: int) -> None:
        stream = self.torch.cuda.current_stream() if self.stream == "default" else self.kept
        with self.torch.cuda.stream(stream):
            self.torch.cuda._sleep(CYCLES)
        if self.cupy:
            array.fill(value)
        else:
            array.fill_(value)

    def numbers(self, array: Any) -> np.ndarray:
        self.torch.cuda.synchronize()
        return array.get() if self.cupy else array.cpu().numpy()


class _Unordered:
    """The same memory, said to have nothing under way."""

    def __init__(self, array: Any) -> None:
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, "stream": None, "version": 3}


@pytest.fixture
def context() -> penstock.Context:
    return penstock.Context("cuda:0")


@pytest.fixture
def content(tmp_path: Path) -> np.ndarray:
    made = np.random.default_rng(1).integers(1, 200, SIZE).astype(np.uint8)
    made.tofile(tmp_path / "data.bin")
    return made


@pytest.fixture(params=["cupy default", "cupy side", "torch default", "torch side"])
def arrays(request: pytest.FixtureRequest) -> _Arrays:
    return _Arrays(*request.param.split())


def _read(context: penstock.Context, path: Path, arrays: _Arrays, seen_as: Callable[[Any], Any]) -> np.ndarray:
    array = arrays.zeros()
    with context.open(path) as file, arrays.on_stream():
        arrays.fill_late(array, 255)
        file.read(seen_as(array))
    return arrays.numbers(array)


@pytest.mark.parametrize("size", [4096, 60_000, 200_000, SIZE])
def test_what_is_read_stays_although_a_kernel_was_queued(
    context: penstock.Context, content: np.ndarray, tmp_path: Path, arrays: _Arrays, size: int
) -> None:
    found = _read(context, tmp_path / "data.bin", arrays, lambda array: array[:size])
    assert np.array_equal(found[:size], content[:size]) and (found[size:] == 255).all()


def test_a_row_that_is_read_stays_although_a_kernel_was_queued(
    context: penstock.Context, content: np.ndarray, tmp_path: Path, arrays: _Arrays
) -> None:
    np.save(tmp_path / "rows.npy", content.reshape(256, 4096))
    array = arrays.zeros()
    with penstock.open(tmp_path / "rows.npy", context=context) as opened, arrays.on_stream():
        rows = next(iter(opened.values()))
        for row in range(3):  # the first read plans, the others do not
            arrays.fill_late(array, 255)
            rows.read(row, out=array[:4096])
            assert np.array_equal(arrays.numbers(array)[:4096], content.reshape(256, 4096)[row])
    assert (arrays.numbers(array)[4096:] == 255).all()


def test_control_what_is_said_to_be_unordered_is_not_waited_for(
    context: penstock.Context, content: np.ndarray, tmp_path: Path
) -> None:
    # A read that other work on the machine delays comes behind the kernel, which proves nothing: it is tried again.
    tried = [_read(context, tmp_path / "data.bin", _Arrays("cupy", "side"), _Unordered) for _ in range(5)]
    assert any(found.size == content.size and (found == 255).all() for found in tried)


def test_what_a_queued_kernel_computes_is_written(context: penstock.Context, tmp_path: Path, arrays: _Arrays) -> None:
    array = arrays.zeros()
    with context.create(tmp_path / "out.bin", SIZE) as file, arrays.on_stream():
        arrays.fill_late(array, 7)
        file.write(array)
    assert (np.fromfile(tmp_path / "out.bin", np.uint8) == 7).all()


def test_tensors_of_every_type_are_memory(context: penstock.Context, content: np.ndarray, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    with context.open(tmp_path / "data.bin") as file:
        for dtype in (torch.uint8, torch.bfloat16, torch.float16, torch.float32, torch.int64, torch.complex64):
            tensor = torch.zeros(SIZE // dtype.itemsize, dtype=dtype, device="cuda:0")
            file.read(tensor)
            assert np.array_equal(tensor.view(torch.uint8).cpu().numpy(), content), dtype
