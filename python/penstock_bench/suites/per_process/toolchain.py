"""The programs, built on the spot: their sources come with the package, the compilers are the site's.

With mpicc and mpirun the processes are MPI's. Where one of them is not there, or mpirun does not start a program, the
programs fork them. What must stay true: what is not there is told in words.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from penstock import Error, get_include, get_library_dir
from penstock_bench.suites import mpi_programs
from penstock_bench.suites.per_process.cases import API, FORTRAN, OFFLOADED, C

SOURCES = Path(__file__).resolve().parent / "programs"
PROGRAMS = mpi_programs.BuiltPrograms("bench per-process")


@dataclass
class Toolchain:
    """Compilers and mpirun. `absent`: what is not here, and why."""

    c: str
    fortran: str = ""
    mpirun: str = ""
    absent: dict[str, str] = field(default_factory=dict)

    @property
    def started_by(self) -> str:
        return "mpirun" if self.mpirun else "forked"

    def started(self, processes: int) -> list[str]:
        """What begins the command of a program."""
        return [self.mpirun, "-n", str(processes)] if self.mpirun else []


def found() -> Toolchain:
    """Raises Error where there is no compiler of C."""
    absent: dict[str, str] = {}
    mpirun = _mpirun(absent)
    plain = next((one for one in map(shutil.which, ("cc", "gcc", "clang")) if one), None)
    compiler = shutil.which("mpicc") if mpirun else plain
    if compiler is None:
        cause = "there is no C compiler: neither mpicc with mpirun nor cc, gcc or clang"
        raise Error(code="not_found", operation="bench per-process", cause=cause, advice="install one of them")
    return Toolchain(compiler, _fortran(bool(mpirun), absent), mpirun, absent)


def build(tools: Toolchain, folder: Path, device: str = "host") -> dict[str, Path]:
    """The programs by their way. Raises Error where one of C cannot be built; what else cannot is told as absent.

    `device` is the one whose code calls the host, as a Context's name.
    """
    processes = SOURCES / "ranks" / ("mpi.c" if tools.mpirun else "fork.c")
    common = ["-O2", f"-I{SOURCES}"]
    helper = folder / "ranks.o"
    PROGRAMS.compile([tools.c, *common, "-c", str(processes), "-o", str(helper)])
    rest, threads = [str(SOURCES / "array" / "main.c"), str(helper)], "-lpthread"
    programs = {C: folder / "array_c"}
    PROGRAMS.compile([tools.c, *common, *rest, str(SOURCES / "array" / "stdio.c"), threads, "-o", str(programs[C])])
    if tools.fortran:
        programs[FORTRAN] = folder / "array_fortran"
        fortran = [str(SOURCES / "array" / "fortran.f90"), str(helper), threads, "-o", str(programs[FORTRAN])]
        PROGRAMS.compile([tools.fortran, "-O2", f"-J{folder}", *fortran])
    try:
        library = get_library_dir()
        flags = [f"-I{get_include()}", f"-L{library}", f"-Wl,-rpath,{library}", "-lpenstock", threads]
    except Error as error:
        tools.absent |= dict.fromkeys((API, OFFLOADED), f"{error.operation}: {error.cause}")
        return programs
    programs[API] = folder / "array_penstock"
    PROGRAMS.compile([tools.c, *common, *rest, str(SOURCES / "array" / "penstock.c"), *flags, "-o", str(programs[API])])
    try:
        calls, runtime = _device_calls(folder, device)
        program = folder / "array_device_calls"
        PROGRAMS.compile([tools.c, *common, *rest, str(calls), *flags, *runtime, "-lstdc++", "-lm", "-o", str(program)])
        programs[OFFLOADED] = program
    except Error as error:
        tools.absent[OFFLOADED] = error.cause
    return programs


def _device_calls(folder: Path, device: str) -> tuple[Path, list[str]]:
    """The compiled code of a device that calls the host, and what is linked with it. Raises Error."""
    source, made = str(SOURCES / "array" / "device_calls.cu"), folder / "device_calls.o"
    common = ["-O2", "-std=c++20", f"-I{SOURCES}", f"-I{get_include()}", "-c", "-o", str(made)]
    if not device.startswith("cuda"):
        compiler = next((one for one in map(shutil.which, ("c++", "g++", "clang++")) if one), None)
        if compiler is None:
            raise _absent("there is no C++ compiler: neither c++ nor g++ nor clang++")
        PROGRAMS.compile([compiler, *common, "-x", "c++", source])
        return made, []
    compiler = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    if compiler is None:
        raise _absent("there is no nvcc, which compiles code of a GPU")
    PROGRAMS.compile([compiler, *common, "-arch=native", f'-DPENSTOCK_BENCH_DEVICE="{device}"', "-x", "cu", source])
    toolkit = Path(compiler).resolve().parents[1]
    places = [f"-L{toolkit / one}" for one in ("lib64", "lib", "targets/x86_64-linux/lib")]  # NVIDIA's own, and conda's
    return made, [*places, "-lcudart_static", "-ldl", "-lrt"]


def _absent(cause: str) -> Error:
    return Error(code="not_found", operation="bench per-process", cause=cause, advice="install it")


def _mpirun(absent: dict[str, str]) -> str:
    """Empty where processes are forked."""
    found, cause = mpi_programs.starter()
    if cause:
        absent["processes of MPI"] = f"{cause}: the programs fork their processes"
    return found


def _fortran(with_mpi: bool, absent: dict[str, str]) -> str:
    """Empty where there is no gfortran: the size of a buffer is told to its runtime."""
    name = "mpif90" if with_mpi and shutil.which("mpif90") else "gfortran"
    compiler = shutil.which(name)
    if with_mpi and name == "gfortran":
        compiler, name = None, "mpif90"  # its libraries are those of MPI
    if compiler is None:
        absent[FORTRAN] = f"there is no {name}"
        return ""
    if "GNU Fortran" not in mpi_programs.ran([compiler, "--version"]).stdout:
        absent[FORTRAN] = f"{name} is not gfortran, and the buffers of other runtimes are not known"
        return ""
    return compiler
