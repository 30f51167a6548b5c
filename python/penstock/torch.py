"""PyTorch tensors from and to safetensors files, drop-in replacements for the functions of `safetensors.torch`; and the
samples and batches of penstock.data as tensors.

    from penstock.torch import BatchLoader, Dataset, load_file, save_file

Tensors of one call are views of one buffer, read in one transfer; the memory is freed when the last of them goes
(safetensors.torch gives each tensor its own, on a GPU). Tensors that share memory, or are not contiguous, can be saved:
each gets its own bytes in the file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

try:
    import torch
    from torch.utils.data import Dataset as _TorchDataset, IterableDataset, get_worker_info
except ModuleNotFoundError as absent:
    if absent.name != "torch":
        raise
    raise ModuleNotFoundError("penstock.torch needs PyTorch: pip install torch", name="torch") from None

from penstock._arrays.array import Array
from penstock._arrays.dtype import DType
from penstock._open import create, open as open_file
from penstock._shared import shared_context
from penstock.data import BatchLoader as _BatchLoader, Samples, Source

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from penstock.data import BatchOptions

__all__ = ["BatchLoader", "Dataset", "load", "load_file", "save_file"]


class TensorSamples(Samples, _TorchDataset):  # type: ignore[type-arg]
    """`Dataset`, map-style for torch.utils.data.DataLoader: penstock.data.Samples, as tensors on the files' device.

    With `__getitems__` a DataLoader gets all samples of a batch by one read. Its workers open the files anew."""

    def _of(self, found: dict[str, Array]) -> Any:
        tensors = {name: tensor_of(array) for name, array in found.items()}
        return tensors if self._named else tensors[""]


class TensorLoader(_BatchLoader, IterableDataset):  # type: ignore[type-arg]
    """`BatchLoader`: penstock.data.BatchLoader, whose batches are tensors on the files' device. It takes the place of a
    DataLoader with workers: threads read ahead, and nothing is copied between processes.

    It is an IterableDataset of batches too, for a program that has a DataLoader: `DataLoader(loader, batch_size=None)`.
    Workers of one open the files anew and share the batches of an epoch, which come in the same order. They have copies
    of the loader: call set_epoch() here before each epoch, or load_state_dict() to begin behind some batches."""

    def __init__(
        self,
        samples: TensorSamples | Source | Mapping[str, Source],
        batch_size: int,
        **options: Unpack[BatchOptions],
    ) -> None:
        """Options: as of penstock.data.BatchLoader."""
        tensors = samples if isinstance(samples, TensorSamples) else TensorSamples(samples)
        super().__init__(tensors, batch_size, **options)
        self._worker_epoch = -1  # that the last iterator of a worker began

    def __iter__(self) -> Iterator[Any]:
        """A worker that stays begins an epoch each time: it has read ahead of a loop that was left, and another worker
        less or more, so that they do not know what the rest of that epoch is."""
        if get_worker_info() is not None:
            self._leave_ended()
            if self._epoch == self._worker_epoch:
                self._next_epoch()
            self._worker_epoch = self._epoch
        return super().__iter__()

    def _part(self) -> tuple[int, int]:
        """A DataLoader asks its workers in turn."""
        worker = get_worker_info()
        return (0, 1) if worker is None else (worker.id, worker.num_workers)


Dataset, BatchLoader = TensorSamples, TensorLoader


def load_file(filename: str | os.PathLike[str], device: str | int | torch.device = "cpu") -> dict[str, torch.Tensor]:
    """All tensors of a safetensors file on a device: "cpu", "cuda", "cuda:1", a number of a GPU, or a torch.device."""
    with open_file(filename, device=_device(device), format="safetensors") as file:
        return {name: tensor_of(array) for name, array in file.load().items()}


def load(data: bytes) -> dict[str, torch.Tensor]:
    """All tensors of the bytes of a safetensors file, on the CPU."""
    from penstock.formats.reading.request import request
    from penstock.formats.simple.safetensors import parse

    found = parse("safetensors bytes", lambda size, offset: data[offset : offset + size], len(data))
    for info, _ in found.datasets.values():
        request(info)  # raises Error of one that cannot be read
    buffer = shared_context("host").allocate(max(1, len(data)))
    memoryview(buffer)[: len(data)] = data
    arrays = {name: Array(buffer, info.dtype, info.shape, offset) for name, (info, offset) in found.datasets.items()}
    return {name: tensor_of(array) for name, array in arrays.items()}


def save_file(
    tensors: Mapping[str, torch.Tensor], filename: str | os.PathLike[str], metadata: Mapping[str, str] | None = None
) -> None:
    """Writes a safetensors file, which appears under its name when it is whole. Tensors of a GPU go from there."""
    values = {name: _target(tensor) for name, tensor in tensors.items()}
    device = next((one.device for one in values.values() if one.device != "host"), "host")
    with create(filename, format="safetensors", device=device) as file:
        for key, value in (metadata or {}).items():
            file.attrs[key] = value
        file.write_many(values).result()


def tensor_of(array: Array) -> torch.Tensor:
    """A tensor that shares the array's memory."""
    type = getattr(torch, array.dtype.name, None)
    if type is None:
        raise TypeError(f"PyTorch has no type {array.dtype}")
    if array.size == 0:
        return torch.empty(array.shape, dtype=type, device="cpu" if array.on_host else array.device)
    if array.itemsize == 1 and array.dtype.name not in ("uint8", "int8"):  # not every version takes these by DLPack
        return torch.from_dlpack(array.view("uint8")).view(type)
    if array.address % array.dtype.word_bytes:
        return torch.from_dlpack(array.reshape(-1).view("uint8")).clone().view(type).reshape(array.shape)
    return torch.from_dlpack(array)


def _target(tensor: torch.Tensor) -> Any:
    """A tensor as something to write, in the type it has."""
    from penstock.formats.reading.target import target_of

    if not isinstance(tensor, torch.Tensor):
        raise ValueError(f"a {type(tensor).__name__} is not a tensor")
    if tensor.layout != torch.strided:
        raise ValueError(f"a tensor of layout {tensor.layout} cannot be saved; use .to_dense()")
    tensor = tensor.detach()
    dtype = DType.of(tensor.dtype)
    if tensor.numel() == 0:
        return Array(shared_context("host").allocate(1), dtype, tuple(tensor.shape))
    if tensor.element_size() == 1:  # not every version gives these by DLPack
        return replace(target_of(tensor.view(torch.uint8)), dtype=dtype)
    return target_of(tensor)


def _device(device: str | int | torch.device) -> str:
    if isinstance(device, int):
        return f"cuda:{device}"
    name = str(device)
    if name == "cuda":
        return f"cuda:{torch.cuda.current_device()}"
    return "host" if name.startswith("cpu") else name
