"""The headers inside the installed package: they are there; host programs and kernels of users compile with them."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import penstock as ps

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NVCC = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
LIMIT_S = 240

HOST_PROGRAM = """
#include <penstock/ondevice/stored_array.hpp>
#include <penstock/device_cache.hpp>
float first(const penstock::ondevice::StoredRef& ref) {
    const penstock::ondevice::StoredArray<float> array(ref);
    return array[0];
}
"""
KERNEL = """
#include <penstock/ondevice/stored_array.hpp>
extern "C" __global__ void add_up(const penstock::ondevice::StoredRef* ref, float* sum) {
    const penstock::ondevice::StoredArray<float> array(*ref);
    for (unsigned long long i = threadIdx.x; i < array.size(); i += blockDim.x) atomicAdd(sum, array[i]);
}
"""


def compiled(command: list[str | Path]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=LIMIT_S)


def test_the_folder_holds_the_headers() -> None:
    folder = Path(ps.get_include())
    for name in ("penstock.h", "penstock/context.hpp", "penstock/device_cache.hpp", "penstock/ondevice/array.hpp"):
        assert (folder / name).is_file(), name
    source = Path(__file__).resolve().parents[2] / "include" / "penstock" / "ondevice"
    assert {one.name for one in source.glob("*.hpp")} == {one.name for one in folder.glob("penstock/ondevice/*.hpp")}


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
    for source in (tmp_path / "kernel.cu", EXAMPLES / "gpu_kernel.cu"):
        command = [NVCC, "-std=c++20", "-arch=sm_80", "-c", source, "-o", tmp_path / "kernel.o"]
        done = compiled([*command, f"-I{ps.get_include()}"])
        assert done.returncode == 0, done.stdout + done.stderr


def nvrtc() -> ctypes.CDLL:
    folders = [Path(NVCC).resolve().parents[1] / one for one in ("lib64", "lib")] if NVCC else []
    found = [one for folder in folders for one in sorted(folder.glob("libnvrtc.so*"))]
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
