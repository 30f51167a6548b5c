"""Penstock moves bytes between files and GPU memory and proves which path they took.

    import penstock

    with penstock.open("snapshot.h5") as file:              # HDF5, netCDF, NPY, safetensors, Zarr, or raw
        x = file["PartType1/Coordinates"][:1000]            # an Array on the GPU; cupy.asarray(x), torch.from_dlpack(x)
        print(file.evidence()["paths"])

    with penstock.Context() as context, context.open("snapshot.bin") as file:
        buffer = context.allocate(file.size_bytes)
        outcome = file.read(buffer)
        print(outcome.bytes_per_second, outcome.evidence["paths"])

    with penstock.gpu.open("rows.bin", "float32", (-1, 128)) as rows:  # larger than GPU memory, cached there
        some = rows.gather([5, 1_000_000, 7])

Everything runs without a GPU too: the device "host" is an emulated one on ordinary memory.
"""

TYPE_CHECKING = False  # as of typing, which takes longer to import than all else here
if TYPE_CHECKING:
    from penstock import (
        data as data,  # known to type checkers, not in __all__, like flow and nbody
        flow as flow,
        gpu,
        hmatrix,
        nbody as nbody,
        torch as torch,  # known to type checkers, not in __all__: see _OF_OTHERS
    )
    from penstock._api import Buffer, Context, File, Outcome, Plan, Transfer
    from penstock._arrays.array import Array
    from penstock._arrays.dtype import DType
    from penstock._arrays.host_array import HostArray
    from penstock._core import path_names
    from penstock._error import Error
    from penstock._include import (
        get_cmake_dir,
        get_fortran_source,
        get_include,
        get_library_dir,
        get_pkgconfig_dir,
    )
    from penstock._open import create, load, open, save
    from penstock._options import (
        ContextOptions,
        FileOptions,
        LayoutOptions,
        NewFileOptions,
        ReadOptions,
        TransferOptions,
    )
    from penstock._profiles import profile_folders
    from penstock._sizes import parse_bytes
    from penstock._told import Evidence
    from penstock._version import __version__ as __version__
    from penstock.formats.datafile import DataFile
    from penstock.formats.dataset import Dataset
    from penstock.formats.group import Group
    from penstock.formats.loading import UnreadableWarning
    from penstock.formats.model import Extent
    from penstock.formats.pending import Pending
    from penstock.formats.reference import Reference
    from penstock.history.devices import local_device
    from penstock.history.exchange import Exchange
    from penstock.history.grid import ScaleGrid
    from penstock.history.history import History, HistoryFacts, history_split
    from penstock.restart.restart import Restart, RestartFacts
    from penstock.snapshot.snapshot import Snapshot, SnapshotFacts, cell_order

__all__ = [
    "Array",
    "Buffer",
    "Context",
    "ContextOptions",
    "DType",
    "DataFile",
    "Dataset",
    "Error",
    "Evidence",
    "Exchange",
    "Extent",
    "File",
    "FileOptions",
    "Group",
    "History",
    "HistoryFacts",
    "HostArray",
    "LayoutOptions",
    "NewFileOptions",
    "Outcome",
    "Pending",
    "Plan",
    "ReadOptions",
    "Reference",
    "Restart",
    "RestartFacts",
    "ScaleGrid",
    "Snapshot",
    "SnapshotFacts",
    "Transfer",
    "TransferOptions",
    "UnreadableWarning",
    "cell_order",
    "create",
    "get_cmake_dir",
    "get_fortran_source",
    "get_include",
    "get_library_dir",
    "get_pkgconfig_dir",
    "gpu",
    "history_split",
    "hmatrix",
    "load",
    "local_device",
    "open",
    "parse_bytes",
    "path_names",
    "profile_folders",
    "save",
]

# Everything is imported when it is first named: some of it brings NumPy, or PyTorch, and the command must be able to
# answer a Ctrl-C before the rest is loaded.
_HOMES = {
    "_api": ("Buffer", "Context", "File", "Outcome", "Plan", "Transfer"),
    "_arrays.array": ("Array",),
    "_version": ("__version__",),
    "_core": ("path_names",),
    "_arrays.dtype": ("DType",),
    "_arrays.host_array": ("HostArray",),
    "_error": ("Error",),
    "_include": ("get_cmake_dir", "get_fortran_source", "get_include", "get_library_dir", "get_pkgconfig_dir"),
    "_open": ("create", "load", "open", "save"),
    "_options": (
        *("ContextOptions", "FileOptions", "LayoutOptions", "NewFileOptions", "ReadOptions"),
        "TransferOptions",
    ),
    "_profiles": ("profile_folders",),
    "_sizes": ("parse_bytes",),
    "_told": ("Evidence",),
    "formats.datafile": ("DataFile",),
    "formats.dataset": ("Dataset",),
    "formats.group": ("Group",),
    "formats.loading": ("UnreadableWarning",),
    "formats.model": ("Extent",),
    "formats.pending": ("Pending",),
    "formats.reference": ("Reference",),
    "history.devices": ("local_device",),
    "history.exchange": ("Exchange",),
    "history.grid": ("ScaleGrid",),
    "history.history": ("History", "HistoryFacts", "history_split"),
    "restart.restart": ("Restart", "RestartFacts"),
    "snapshot.snapshot": ("Snapshot", "SnapshotFacts", "cell_order"),
}
# Submodules on packages that Penstock does without: not in __all__, so that `import *` works where those are not there.
_OF_OTHERS = ("torch", "xarray", "zarr_store")
_SUBMODULES = ("data", "flow", "gpu", "hmatrix", "nbody")
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


if not TYPE_CHECKING:  # checkers know the names above, and find those that are misspelt

    def __getattr__(name: str) -> object:
        import importlib

        if name in _SUBMODULES:
            return importlib.import_module(f"penstock.{name}")
        if name == "_core":  # asked for before its first import, which finds nothing where it was not compiled
            return _compiled()
        if name in _OF_OTHERS:
            try:
                return importlib.import_module(f"penstock.{name}")
            except ImportError as cause:  # hasattr() and help() take an AttributeError only for "it is not there"
                raise AttributeError(f"penstock.{name} is not available: {cause}") from cause
        if name not in _HOME_OF:
            raise AttributeError(f"module 'penstock' has no attribute {name!r}")
        home = _HOME_OF[name]
        value = getattr(_compiled() if home == "_core" else importlib.import_module(f"penstock.{home}"), name)
        globals()[name] = value
        return value


def _compiled() -> object:
    """The compiled module. ImportError says what to do where there is none, as in a source tree."""
    import importlib
    import sys

    try:
        return importlib.import_module("penstock._core")
    except ModuleNotFoundError as error:
        if error.name != "penstock._core":
            raise
        here = f"{__path__[0]} has no module that was compiled for Python {sys.version_info[0]}.{sys.version_info[1]}"
        advice = "run pip install . in the source tree, and start Python in another folder"
        raise ImportError(f"{here}; {advice}", name="penstock._core", path=__path__[0]) from None


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
