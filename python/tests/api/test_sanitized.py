"""Controls of the tests that CI runs once more with the modules under the address sanitizer: that it watches, and that
the modules are the watched ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from places import SANITIZED

from penstock import _core
from penstock.hmatrix import _hmatrix
from penstock_bench import _measure

pytestmark = pytest.mark.skipif(not SANITIZED, reason="the modules are not under the address sanitizer")

# The caller says that 4096 bytes are its own, of which 1000 are.
OVERFLOW = """
import ctypes, sys
import penstock
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
memory = (ctypes.c_char * 4096).from_address(libc.malloc(int(sys.argv[2])))
with penstock.Context("host") as context, context.open(sys.argv[1]) as file:
    print(file.read(memory).bytes)
"""


@pytest.mark.parametrize("module", [_core, _hmatrix, _measure], ids=lambda module: module.__name__)
def test_the_module_is_watched(module: ModuleType) -> None:
    code = Path(module.__file__).read_bytes()
    assert b"__asan_report_store8" in code and b"__ubsan_handle_" in code


@pytest.mark.parametrize(("bytes_of_caller", "seen"), [(1000, True), (4096, False)])
def test_bytes_behind_the_memory_of_the_caller_end_the_process(
    tmp_path: Path, bytes_of_caller: int, seen: bool
) -> None:
    (tmp_path / "file").write_bytes(bytes(4096))
    program = [sys.executable, "-c", OVERFLOW, str(tmp_path / "file"), str(bytes_of_caller)]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=100, check=False)
    assert ("AddressSanitizer: heap-buffer-overflow" in ended.stderr) == seen, ended.stderr
    assert (ended.returncode != 0) == seen and (ended.stdout == "4096\n") != seen
