"""Calls of kernels to the host, made by host code that was compiled from the same header."""

from __future__ import annotations

import contextlib
import ctypes
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from places import ROOT

import penstock as ps

KERNEL = r"""
#include <penstock/ondevice/calls.hpp>
using namespace penstock::ondevice;
extern "C" int call(const CallsRef* calls, unsigned function, unsigned long long value, const char* argument,
                    unsigned bytes, char* answer, unsigned most, long long* result) {
    const CallEnd end = calls->call({function, value, argument, bytes, answer, most});
    result[0] = end.value;
    result[1] = end.answer_bytes;
    return static_cast<int>(end.status);
}
extern "C" int find(const CallsRef* calls, const char* name, unsigned* function) {
    return static_cast<int>(calls->find(name, *function));
}
extern "C" int log_steps(const CallsRef* calls, const char* name, int steps) {
    const CallEnd log = calls->open(name, file_append | file_create);
    for (int step = 0; step < steps; ++step) calls->print(log.value, "step ", step, " energy ", 0.5 * step);
    return static_cast<int>(calls->close(log.value).status);
}
"""
LIBRARY = """
#include <penstock/host_function.h>
int64_t add_three(penstock_host_call* call) { return (int64_t)call->value + 3; }
"""
OK, INVALID, FAILED = 0, -7, -9


def built(compiler: str, source: Path) -> Path:
    program = shutil.which(compiler)
    if program is None:
        pytest.skip(f"no {compiler}")
    target = source.with_suffix(".so")
    command = [program, "-O1", "-shared", "-fPIC", f"-I{ROOT / 'include'}", str(source), "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    source = tmp_path_factory.mktemp("kernel") / "kernel.cpp"
    source.write_text(KERNEL)
    return ctypes.CDLL(str(built("g++", source)))


@pytest.fixture
def calls() -> Iterator[ps.gpu.Calls]:
    made = ps.gpu.Calls(device="host", slot_bytes="1 KiB")
    yield made
    with contextlib.suppress(ps.Error):  # of functions that are to fail
        made.close()


def called(
    kernel: ctypes.CDLL, ref: int, function: int, value: int = 0, argument: bytes = b""
) -> tuple[int, int, bytes]:
    answer, result = ctypes.create_string_buffer(64), (ctypes.c_longlong * 2)()
    status = kernel.call(
        ctypes.c_void_p(ref), function, ctypes.c_ulonglong(value), argument, len(argument), answer, 64, result
    )
    return status, result[0], answer.raw[: result[1]]


def test_a_function_gets_argument_and_value_and_answers(kernel: ctypes.CDLL, calls: ps.gpu.Calls) -> None:
    number = calls.register(lambda argument, value: (value * 2, argument[::-1]), "turned")
    assert called(kernel, calls.ref, number, 21, b"abc") == (OK, 42, b"cba")
    assert calls.number("turned") == number
    found = ctypes.c_uint()
    assert kernel.find(ctypes.c_void_p(calls.ref), b"turned", ctypes.byref(found)) == OK
    assert found.value == number
    assert kernel.find(ctypes.c_void_p(calls.ref), b"none", ctypes.byref(found)) == INVALID
    assert calls.stats() == {"calls": 3, "failures": 0}


@pytest.mark.parametrize(
    ("result", "expected"),
    [(None, (OK, 0, b"")), (-5, (OK, -5, b"")), (b"xy", (OK, 0, b"xy")), ((1, b""), (OK, 1, b""))],
)
def test_what_a_function_may_return(kernel: ctypes.CDLL, calls: ps.gpu.Calls, result: object, expected: object) -> None:
    assert called(kernel, calls.ref, calls.register(lambda argument, value: result, "f")) == expected


@pytest.mark.parametrize(
    ("result", "words"),
    [("text", "neither None, an int"), (b"x" * 65, "returned 65 bytes, and the caller takes 64"), (1 << 70, "64 bits")],
)
def test_a_wrong_result_is_an_error(kernel: ctypes.CDLL, calls: ps.gpu.Calls, result: object, words: str) -> None:
    number = calls.register(lambda argument, value: result, "f")
    assert called(kernel, calls.ref, number) == (FAILED, 0, b"")
    ((name, what),) = calls.errors()
    assert name == "f" and words in what


def test_what_a_function_raises_is_told_at_close(kernel: ctypes.CDLL) -> None:
    def lost(argument: bytes, value: int) -> None:
        raise KeyError(f"particle {value}")

    calls = ps.gpu.Calls(device="host")
    number = calls.register(lost)
    assert called(kernel, calls.ref, number, 7)[0] == FAILED
    assert called(kernel, calls.ref, number, 8)[0] == FAILED
    with pytest.raises(ps.Error, match=r"call 'lost' from a kernel: .*particle 7.*1 more"):
        calls.close()
    calls.close()
    assert len(calls.errors()) == 2 and calls.stats()["failures"] == 2
    with pytest.raises(ps.Error, match="closed"):
        calls.number("lost")


def test_files_are_written_by_name(kernel: ctypes.CDLL, calls: ps.gpu.Calls, tmp_path: Path) -> None:
    assert kernel.log_steps(ctypes.c_void_p(calls.ref), str(tmp_path / "log").encode(), 3) == OK
    assert (tmp_path / "log").read_text() == "step 0 energy 0\nstep 1 energy 0.5\nstep 2 energy 1\n"


def test_functions_of_a_shared_object_are_called_by_name(
    kernel: ctypes.CDLL, calls: ps.gpu.Calls, tmp_path: Path
) -> None:
    (tmp_path / "library.c").write_text(LIBRARY)
    calls.install(built("gcc", tmp_path / "library.c"))
    assert called(kernel, calls.ref, calls.number("add_three"), 4) == (OK, 7, b"")
    with pytest.raises(ps.Error, match="there is no function 'system'"):
        calls.number("system")
    with pytest.raises(ps.Error):
        calls.install(tmp_path / "none.so")


def test_what_cannot_be_is_refused(calls: ps.gpu.Calls) -> None:
    with pytest.raises(TypeError, match="cannot be called"):
        calls.register(7, "seven")  # type: ignore[arg-type]
    calls.register(print, "once")
    with pytest.raises(ps.Error, match="there is a function 'once'"):
        calls.register(print, "once")
    with pytest.raises(ps.Error, match="0 threads"):
        ps.gpu.Calls(device="host", threads=0)


def test_a_program_that_closes_nothing_ends() -> None:
    code = "import penstock as ps; c = ps.gpu.Calls(device='host'); c.register(print, 'f'); print(c.ref > 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")
