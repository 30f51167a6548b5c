"""Where the headers, the C library and the Fortran module of this installation are, and the flags that use them.

They lie beside the compiled module: include/, lib/ and share/ of the package. A source tree has none of them. What must
stay true: a function returns a place that is there, or raises an Error that says what to do.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from penstock import _core
from penstock._error import Error


def get_include() -> str:
    """The folder to give a compiler with -I: it holds `penstock.h` and `penstock/ondevice/stored_array.hpp`.

    Raises Error where this installation has no headers, as a source tree has none; so do the others here.
    """
    return str(_found(_package() / "include", "penstock/ondevice/stored_array.hpp", "the headers"))


def get_library_dir() -> str:
    """The folder to give a linker with -L, and programs as their rpath: it holds `libpenstock.so`, the C ABI."""
    package = _package()
    libraries = [*package.glob("lib*/libpenstock.so"), *package.glob("lib*/*/libpenstock.so")]
    return str(_found(libraries[0].parent if libraries else package / "lib", "libpenstock.so", "the library"))


def get_cmake_dir() -> str:
    """The folder of `penstockConfig.cmake`, for -Dpenstock_DIR=."""
    return str(_found(Path(get_library_dir(), "cmake", "penstock"), "penstockConfig.cmake", "the CMake package"))


def get_pkgconfig_dir() -> str:
    """The folder of `penstock.pc`, for PKG_CONFIG_PATH."""
    return str(_found(Path(get_library_dir(), "pkgconfig"), "penstock.pc", "the pkg-config file"))


def get_fortran_source() -> str:
    """The file `penstock.f90`, the module to compile with a Fortran program."""
    return str(_found(_package() / "share" / "penstock", "penstock.f90", "the Fortran module") / "penstock.f90")


def fortran_sources() -> str:
    """For a shell: the modules to compile with a Fortran program, in the order that they need."""
    return _sources("penstock", "penstock_history", "penstock_snapshot", "penstock_restart")


def mpi_fortran_sources() -> str:
    """The same for a program of MPI, which `mpifort` compiles: these modules, and those that call MPI."""
    parts = ("mpi", "mpi_exchange", "mpi_snapshot", "mpi_restart")
    return f"{fortran_sources()} {_sources(*(f'penstock_{part}' for part in parts))}"


def _sources(*modules: str) -> str:
    folder = Path(get_fortran_source()).parent
    return shlex.join(str(folder / f"{name}.f90") for name in modules)


def cflags() -> str:
    return shlex.quote(f"-I{get_include()}")


def rpath() -> str:
    """What makes a program find `libpenstock.so` where it lies now, without LD_LIBRARY_PATH."""
    return shlex.quote(f"-Wl,-rpath,{get_library_dir()}")


def libs() -> str:
    return " ".join((shlex.quote(f"-L{get_library_dir()}"), rpath(), "-lpenstock"))


def _package() -> Path:
    return Path(str(_core.__file__)).parent


def _found(folder: Path, file: str, what: str) -> Path:
    """The folder, if the file is in it."""
    if not (folder / file).is_file():
        raise Error(
            code="not_found",
            operation=f"find {what}",
            file=str(folder),
            cause="this installation has none; a source tree is not installed",
            advice="install the package (pip install . in the source tree) and use that",
        )
    return folder
