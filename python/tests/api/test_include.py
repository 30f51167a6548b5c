"""Headers, library and Fortran module inside the installed package: they are there, and programs of users build."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from c_abi.compilers import works
from c_abi.mpi_rig import MAY_START
from command import assert_one_line_error, run_penstock
from places import EXAMPLES, ROOT

import penstock as ps

NVCC = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
LIMIT_S = 240
WITHOUT = ("include", "libpenstock.so", "cmake", "pkgconfig", "share", "__pycache__")

HOST_PROGRAM = """
#include <penstock/ondevice/stored_array.hpp>
#include <penstock/device_cache.hpp>
float first(const penstock::ondevice::StoredRef& ref) {
    const penstock::ondevice::StoredArray<float> array(ref);
    return array[0];
}
"""
KERNEL = """
#include <penstock/ondevice/calls.hpp>
#include <penstock/ondevice/stored_array.hpp>
extern "C" __global__ void tell(const penstock::ondevice::CallsRef* calls, unsigned function, long long log) {
    const penstock::ondevice::CallEnd end = calls->call(function, threadIdx.x);
    calls->print(log, "thread ", threadIdx.x, " got ", end.value, ' ', 0.5f);
}
extern "C" __global__ void add_up(const penstock::ondevice::StoredRef* ref, float* sum) {
    const penstock::ondevice::StoredArray<float> array(*ref);
    for (unsigned long long i = threadIdx.x; i < array.size(); i += blockDim.x) atomicAdd(sum, array[i]);
}
"""


def compiled(command: list[str | Path]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=LIMIT_S)


def test_the_folder_holds_the_headers() -> None:
    folder = Path(ps.get_include())
    source, installed = (
        {str(one.relative_to(top)) for one in top.rglob("*") if one.is_file()} for top in (ROOT / "include", folder)
    )
    assert source == installed
    assert {"penstock.h", "penstock/host_function.h", "penstock/ondevice/array.hpp"} <= source


def test_a_host_program_compiles(tmp_path: Path) -> None:
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    (tmp_path / "program.cpp").write_text(HOST_PROGRAM)
    command = [compiler, "-std=c++20", "-Wall", "-Werror", "-c", tmp_path / "program.cpp", "-o", tmp_path / "program.o"]
    done = compiled([*command, f"-I{ps.get_include()}"])
    assert done.returncode == 0, done.stderr
    assert compiled(command).returncode != 0, "control: without the folder it does not"


@pytest.mark.skipif(NVCC is None, reason="no nvcc")
def test_a_kernel_compiles(tmp_path: Path) -> None:
    (tmp_path / "kernel.cu").write_text(KERNEL)
    examples = EXAMPLES / "gpu_kernel.cu", EXAMPLES / "calls" / "gpu_log.cu"
    for source, until in ((tmp_path / "kernel.cu", "-ptx"), *((one, "-c") for one in examples)):
        command = [NVCC, "-std=c++20", "-arch=sm_80", until, source, "-o", tmp_path / "kernel.o"]
        done = compiled([*command, f"-I{ps.get_include()}"])
        assert done.returncode == 0, done.stdout + done.stderr


def nvrtc() -> ctypes.CDLL:
    folders = [Path(NVCC).resolve().parents[1] / one for one in ("lib64", "lib")] if NVCC else []
    found = [one for folder in folders for one in sorted(folder.glob("libnvrtc.so*"))]
    for builtins in {one.resolve() for folder in folders for one in folder.glob("libnvrtc-builtins.so*")}:
        ctypes.CDLL(os.fspath(builtins))  # NVRTC asks for them by name, which the system need not know
    for name in (*map(str, found), "libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    pytest.skip("no NVRTC")


def test_a_kernel_compiles_where_there_are_no_headers_of_the_system() -> None:
    """As CuPy's RawModule compiles: by NVRTC, which has no C library."""
    library, program = nvrtc(), ctypes.c_void_p()
    assert library.nvrtcCreateProgram(ctypes.byref(program), KERNEL.encode(), b"kernel.cu", 0, None, None) == 0
    options = [b"-std=c++17", b"-arch=sm_80", f"-I{os.fspath(ps.get_include())}".encode()]
    result = library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    size = ctypes.c_size_t()
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    assert result == 0, log.value.decode()


def asked(*options: str) -> list[str]:
    """What `penstock config` prints, as words; skips where the package is not installed."""
    ran = run_penstock("config", *options)
    if ran.code != 0 and "this installation has none" in ran.err:
        pytest.skip("the package is not installed: this tree has no libpenstock.so beside it")
    assert ran.code == 0, ran.err
    return ran.out.split()


def built_and_run(command: list[str | Path], place: Path) -> str:
    """The program `snapshot` of a compiler's command, run in the place."""
    done = subprocess.run([*map(str, command), "-o", "snapshot"], cwd=place, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    ran = subprocess.run([place / "snapshot"], cwd=place, capture_output=True, text=True, timeout=LIMIT_S)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_a_c_program_is_built_by_what_config_prints(tmp_path: Path) -> None:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    strict = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    text = built_and_run([compiler, *strict, EXAMPLES / "snapshot.c", *asked("--cflags", "--libs")], tmp_path)
    assert "snapshot.bin holds 1048576 cells, read back as they were" in text
    assert (tmp_path / "snapshot.bin").stat().st_size == 8 << 20


def test_a_cpp_program_is_built_by_what_config_prints(tmp_path: Path) -> None:
    """It links the library that the Python modules link: the package has one."""
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    source = EXAMPLES.parent / "tests" / "package" / "consumer.cpp"
    command = [compiler, "-std=c++20", "-Wall", "-Wextra", "-Werror", "-o", tmp_path / "consumer", source]
    done = compiled([*command, *asked("--cflags", "--libs")])
    assert done.returncode == 0, done.stderr
    ran = subprocess.run([tmp_path / "consumer", source], capture_output=True, text=True, timeout=LIMIT_S)
    assert ran.returncode == 0 and '"paths"' in ran.stdout, ran.stdout + ran.stderr
    packages = Path(ps.get_library_dir()).parents[1]
    libraries = {path for top in ("penstock", "penstock_bench") for path in (packages / top).rglob("lib*.so*")}
    assert {path.name for path in libraries} == {
        *("libpenstock.so", "libpenstock.so.0"),
        *("libpenstock_preload.so", "libpenstock_vfd.so"),
    }
    assert len(libraries) == 4
    places = {"penstock": "lib", "penstock/hmatrix": "../lib", "penstock_bench": "../penstock/lib"}
    for place, library in places.items():
        (module,) = (packages / place).glob("_*.so")
        needed = compiled(["readelf", "-d", module]).stdout
        assert "[libpenstock.so.0]" in needed and f"(RPATH)              Library rpath: [$ORIGIN/{library}]" in needed


def test_a_fortran_program_is_built_by_what_config_prints(tmp_path: Path) -> None:
    compiler = shutil.which("gfortran")
    if compiler is None:
        pytest.skip("no gfortran")
    strict = ["-std=f2018", "-Wall", "-Wextra", "-Werror", "-Wno-compare-reals", "-fimplicit-none"]
    sources = [*asked("--fortran"), EXAMPLES / "snapshot.f90"]
    text = built_and_run([compiler, *strict, *sources, *asked("--libs")], tmp_path)
    assert "snapshot.bin holds 1048576 cells, read back as they were" in text


def test_each_fortran_module_is_named_once_and_before_those_that_use_it() -> None:
    names = [Path(one).stem for one in asked("--mpi-fortran")]
    assert sorted(names) == sorted(one.stem for one in Path(ps.get_fortran_source()).parent.glob("*.f90"))
    for number, one in enumerate(asked("--mpi-fortran")):
        used = {
            name
            for name in names
            if f"use {name}," in Path(one).read_text() or f"use {name}\n" in Path(one).read_text()
        }
        assert used <= set(names[:number]), one


def test_a_fortran_program_of_mpi_is_built_by_what_config_prints(tmp_path: Path) -> None:
    if not works("mpifort"):
        pytest.skip("no MPI with a Fortran compiler")
    sources = [*asked("--mpi-fortran"), EXAMPLES / "restart/mpi_restart.f90"]
    folder = Path(ps.get_fortran_source()).parent
    assert {Path(one) for one in sources[:-1]} == set(folder.glob("*.f90"))
    assert compiled(["mpifort", "-J", tmp_path, *sources, *asked("--libs"), "-o", tmp_path / "program"]).returncode == 0
    command = ["mpirun", "-n", "2", str(tmp_path / "program"), str(tmp_path / "run")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, env=os.environ | MAY_START)
    assert ran.returncode == 0 and "generation 2 of 2 ranks" in ran.stdout, ran.stdout + ran.stderr


def test_pkg_config_finds_the_package_where_config_says(tmp_path: Path) -> None:
    compiler, tool = shutil.which("gcc") or shutil.which("cc"), shutil.which("pkg-config")
    if compiler is None or tool is None:
        pytest.skip("no C compiler" if compiler is None else "no pkg-config")
    environment = os.environ | {"PKG_CONFIG_PATH": asked("--pkg-config-dir")[0]}
    command = [tool, "--cflags", "--libs", "penstock"]
    flags = subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout.split()
    text = built_and_run([compiler, EXAMPLES / "snapshot.c", *flags, *asked("--rpath")], tmp_path)
    assert "read back as they were" in text


def test_all_of_config_is_there_and_python_says_the_same() -> None:
    asked()
    lines = dict(line.split(": ", 1) for line in run_penstock("config").out.splitlines())
    assert lines["cflags"] == f"-I{ps.get_include()}"
    assert f"-L{ps.get_library_dir()}" in lines["libs"].split() and lines["rpath"] in lines["libs"].split()
    assert lines["fortran"].split()[0] == ps.get_fortran_source() and all(map(os.path.isfile, lines["fortran"].split()))
    assert lines["cmake-dir"] == ps.get_cmake_dir() and Path(lines["cmake-dir"], "penstockConfig.cmake").is_file()
    assert lines["pkg-config-dir"] == ps.get_pkgconfig_dir() and Path(lines["pkg-config-dir"], "penstock.pc").is_file()


@pytest.mark.parametrize(
    "option", ["--cflags", "--libs", "--rpath", "--fortran", "--mpi-fortran", "--cmake-dir", "--pkg-config-dir"]
)
def test_an_installation_without_them_says_what_to_do(option: str, tmp_path: Path) -> None:
    """The package without what compilers need, as in a source tree: of lib/ the library alone is left."""
    package, bare = Path(ps.__file__).parent, tmp_path / "penstock"
    shutil.copytree(package, bare, ignore=shutil.ignore_patterns(*WITHOUT))
    if not list(bare.glob("_core*.so")):
        pytest.skip("the module is built elsewhere")
    ran = run_penstock("config", option, env={"PYTHONPATH": str(tmp_path)})
    assert_one_line_error(ran, "this installation has none", "pip install . in the source tree")


def test_a_source_tree_that_was_not_compiled_says_what_to_do(tmp_path: Path) -> None:
    """Whatever is asked of it first."""
    shutil.copytree(Path(ps.__file__).parent, tmp_path / "penstock", ignore=shutil.ignore_patterns("*.so", *WITHOUT))
    words = f"{tmp_path}/penstock has no module that was compiled for Python", "run pip install . in the source tree"
    for arguments in (("config", "--cflags"), ("doctor",), ("read", "x"), ("bench", "--list")):
        assert_one_line_error(run_penstock(*arguments, env={"PYTHONPATH": str(tmp_path)}), *words)
    for code in ("from penstock import path_names", "import penstock; penstock.open", "import penstock._api"):
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
        last = done.stderr.rstrip().rpartition("\n")[2]
        assert done.returncode == 1 and last.startswith("ImportError: ") and all(word in last for word in words), last
