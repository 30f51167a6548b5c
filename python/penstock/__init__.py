"""Penstock moves bytes between files and GPU memory and proves which path they took.

    import penstock

    with penstock.Context() as context, context.open("snapshot.bin") as file:
        buffer = context.allocate(file.size_bytes)
        outcome = file.read(buffer)
        print(outcome.bytes_per_second, outcome.evidence["paths"])

Everything runs without a GPU too: the device "host" is an emulated one on ordinary memory.
"""

from penstock._api import Buffer, Context, File, Outcome, Plan, Transfer, load, save
from penstock._core import path_names
from penstock._error import Error
from penstock._sizes import parse_bytes

__version__: str = "0.1.0"

__all__ = [
    "Buffer",
    "Context",
    "Error",
    "File",
    "Outcome",
    "Plan",
    "Transfer",
    "load",
    "parse_bytes",
    "path_names",
    "save",
]
