"""`penstock config`: what compilers and build tools need to use the C library and the Fortran module of the package."""

from __future__ import annotations

import shlex
import sys
from typing import Annotated

import typer

from penstock import _include


def config(
    cflags: Annotated[bool, typer.Option("--cflags", help="Flags to compile C and C++.")] = False,
    libs: Annotated[bool, typer.Option("--libs", help="Flags to link, with the rpath.")] = False,
    rpath: Annotated[bool, typer.Option("--rpath", help="The rpath alone, to add to the flags of pkg-config.")] = False,
    fortran: Annotated[
        bool, typer.Option("--fortran", help="Sources of the Fortran modules, to compile with your program.")
    ] = False,
    mpi_fortran: Annotated[
        bool, typer.Option("--mpi-fortran", help="The same and the modules for MPI, to compile with mpifort.")
    ] = False,
    cmake_dir: Annotated[bool, typer.Option("--cmake-dir", help="Folder for CMake: -Dpenstock_DIR=FOLDER.")] = False,
    pkg_config_dir: Annotated[bool, typer.Option("--pkg-config-dir", help="Folder for PKG_CONFIG_PATH.")] = False,
) -> int:
    """Print what a compiler needs to use this package from C, C++ and Fortran; values asked for come on one line.

    Without an option, all values are printed, each on a line with its name.

    Example: gcc program.c $(penstock config --cflags --libs)
    """
    known = {
        "cflags": (cflags, _include.cflags),
        "libs": (libs, _include.libs),
        "rpath": (rpath, _include.rpath),
        "fortran": (fortran, _include.fortran_sources),
        "mpi-fortran": (mpi_fortran, _include.mpi_fortran_sources),
        "cmake-dir": (cmake_dir, lambda: shlex.quote(_include.get_cmake_dir())),
        "pkg-config-dir": (pkg_config_dir, lambda: shlex.quote(_include.get_pkgconfig_dir())),
    }
    asked = [find() for wanted, find in known.values() if wanted]
    lines = [" ".join(asked)] if asked else [f"{name}: {find()}" for name, (_, find) in known.items()]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0
