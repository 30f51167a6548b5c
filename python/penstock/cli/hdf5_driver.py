"""`penstock vfd-path`, and what `doctor` says of the HDF5 libraries that could load the driver.

What must stay true: a library that ignores HDF5_DRIVER without a word, as those before 1.14 do, is told of.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib
import importlib.util
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock import Error, _core
from penstock.cli import driver_config

_LIBRARY = "libpenstock_vfd.so"
_FIRST = (1, 14)  # HDF5 that loads drivers


def vfd_path(
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            metavar="KEY=VALUE,...",
            help=f"Print HDF5_DRIVER_CONFIG too. The keys are: {driver_config.listing()}.",
        ),
    ] = None,
) -> int:
    """Print the environment variables that make HDF5 1.14 and later move its bytes by Penstock.

    A shell sets them by: eval "$(penstock vfd-path)"

    Example: penstock vfd-path --config evidence=stderr
    """
    if config is not None:
        driver_config.check(config)
    folder = shlex.quote(str(_driver().parent))
    lines = [
        f'export HDF5_PLUGIN_PATH={folder}"${{HDF5_PLUGIN_PATH:+:$HDF5_PLUGIN_PATH}}"',
        "export HDF5_DRIVER=penstock",
    ]
    if config is not None:
        lines.append(f"export HDF5_DRIVER_CONFIG={shlex.quote(config)}")
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def item() -> dict[str, Any]:
    """An entry of `doctor`."""
    found = list(_libraries())
    old = [f"{name} {text(version)}" for name, version in found if version < _FIRST]
    new = [f"{name} {text(version)}" for name, version in found if version >= _FIRST]
    parts = []
    if new:
        parts.append(f"{', '.join(new)} can load the driver of penstock vfd-path")
    if old:
        parts.append(f"{', '.join(old)} would silently ignore HDF5_DRIVER")
    advice = "use programs of HDF5 1.14 or later, such as h5py's and netCDF4's own" if old or not new else None
    state = "no" if not new else "partly" if old else "yes"
    return {
        "name": "hdf5_driver",
        "state": state,
        "detail": "; ".join(parts) or "no HDF5 library was found",
        "advice": advice,
    }


def text(version: tuple[int, ...]) -> str:
    return "HDF5 " + ".".join(map(str, version))


def _driver() -> Path:
    library = Path(str(_core.__file__)).resolve().parent / "lib" / "hdf5" / _LIBRARY
    if not library.is_file():
        linked = Path(str(_core.__file__)).parent / "lib" / "hdf5" / _LIBRARY
        library = linked.resolve()
    if library.is_file():
        return library
    raise Error(
        code="not_found",
        operation="vfd-path",
        file=str(library),
        cause="this installation has no driver for HDF5",
        advice="run make build in the source tree, or pip install . there",
    )


def _libraries() -> Iterator[tuple[str, tuple[int, ...]]]:
    """Name and version of each HDF5 that is found: of Python's packages, and of the system."""
    if importlib.util.find_spec("h5py"):
        yield "h5py:", _numbers(importlib.import_module("h5py").version.hdf5_version)
    if importlib.util.find_spec("netCDF4"):
        yield "netCDF4:", _numbers(importlib.import_module("netCDF4").__hdf5libversion__)
    for name in ("hdf5", "hdf5_serial", "hdf5_openmpi"):
        library = ctypes.util.find_library(name)
        version = _version_of(library) if library else None
        if version:
            yield f"{library}:", version


def _numbers(found: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", found)[:3])


def _version_of(library: str) -> tuple[int, ...] | None:
    parts = [ctypes.c_uint() for _ in range(3)]
    try:
        ctypes.CDLL(library).H5get_libversion(*map(ctypes.byref, parts))
    except (OSError, AttributeError):  # not to be loaded here, or no HDF5
        return None
    return tuple(part.value for part in parts)
