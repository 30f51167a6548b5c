"""Penstock moves bytes between files and GPU memory and proves which path they took.

    import penstock

    with penstock.open("snapshot.h5") as file:              # HDF5, netCDF, NPY, safetensors, Zarr, or raw
        x = file["PartType1/Coordinates"][:1000]            # an Array on the GPU; cupy.asarray(x), torch.from_dlpack(x)
        print(file.evidence()["paths"])

    with penstock.Context() as context, context.open("snapshot.bin") as file:
        buffer = context.allocate(file.size_bytes)
        outcome = file.read(buffer)
        print(outcome.bytes_per_second, outcome.evidence["paths"])

Everything runs without a GPU too: the device "host" is an emulated one on ordinary memory.
"""

from typing import TYPE_CHECKING, Any

from penstock._api import Buffer, Context, File, Outcome, Plan, Transfer
from penstock._array import Array
from penstock._core import path_names
from penstock._dtype import DType
from penstock._error import Error
from penstock._open import create, load, open, save
from penstock._sizes import parse_bytes

if TYPE_CHECKING:
    from penstock import torch
    from penstock.formats.datafile import DataFile
    from penstock.formats.dataset import Dataset
    from penstock.formats.group import Group
    from penstock.formats.model import Extent
    from penstock.formats.pending import Pending

__version__: str = "0.1.0"

__all__ = [
    "Array",
    "Buffer",
    "Context",
    "DType",
    "DataFile",
    "Dataset",
    "Error",
    "Extent",
    "File",
    "Group",
    "Outcome",
    "Pending",
    "Plan",
    "Transfer",
    "create",
    "load",
    "open",
    "parse_bytes",
    "path_names",
    "save",
    "torch",
]

# These bring NumPy, or PyTorch, and are imported when they are first named.
_LATER = {
    "DataFile": "penstock.formats.datafile",
    "Dataset": "penstock.formats.dataset",
    "Extent": "penstock.formats.model",
    "Group": "penstock.formats.group",
    "Pending": "penstock.formats.pending",
}


def __getattr__(name: str) -> Any:
    import importlib

    if name == "torch":
        return importlib.import_module("penstock.torch")
    if name in _LATER:
        return getattr(importlib.import_module(_LATER[name]), name)
    raise AttributeError(f"module 'penstock' has no attribute {name!r}")
