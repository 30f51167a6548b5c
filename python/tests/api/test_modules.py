"""The compiled modules: each takes objects of another, raises the one Error, shows its entry point only, and refuses to
be of another build. All load one library."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import penstock
from penstock import Context, Error, _core
from penstock.hmatrix import _hmatrix
from penstock_bench import _measure

MODULES = [_core, _hmatrix, _measure]
FIELDS = ("code", "operation", "file", "offset_bytes", "length_bytes", "cause", "advice", "system_code")


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=False)


def test_contexts_files_and_memory_of_the_core_are_taken_and_transfers_given(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(bytes(range(256)) * 64)
    with Context("host") as context, context.open(tmp_path / "data") as file:
        memory = context.allocate(16384)
        blocks = {"direction": "read", "block_bytes": 4096, "seed": 0}
        transfer = _measure.start_blocks(file._raw, memory, blocks)
        assert type(transfer) is _core.Transfer and transfer.result().bytes == 16384
        assert bytes(memory) == bytes(range(256)) * 64
        corners, triangles, _ = _hmatrix.shape("sphere", 80)
        how = {"eps": 1e-3, "progress": None, "galerkin": False, "workers": 1}
        made = _hmatrix.assemble_mesh(context._raw, tmp_path / "x.hmat", corners, triangles, how)
        assert made["unknowns"] == len(triangles) == _hmatrix.info(context._raw, tmp_path / "x.hmat")["unknowns"]


def raised(module: ModuleType, context: Context, name: Path) -> Any:
    calls = {
        _core: lambda: _core.open(context._raw, name),
        _hmatrix: lambda: _hmatrix.info(context._raw, name),
        _measure: lambda: _measure.storm(context._raw, name),
    }
    with pytest.raises(Error) as caught:
        calls[module]()
    return caught.value


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_an_error_of_each_module_is_the_one_class_with_all_its_fields(module: ModuleType, tmp_path: Path) -> None:
    with Context("host") as context:
        error, of_core = (raised(one, context, tmp_path / "none") for one in (module, _core))
    assert type(error) is type(of_core) and isinstance(error, Error) and isinstance(error, FileNotFoundError)
    fields = {name: getattr(error, name) for name in FIELDS}
    assert fields == {name: getattr(of_core, name) for name in FIELDS} | {"operation": fields["operation"]}
    assert fields["file"] == str(tmp_path / "none") and fields["code"] == "not_found" and fields["system_code"] == 2


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_each_module_can_be_the_first_that_is_imported(module: ModuleType) -> None:
    call = {
        "_core": "open(_core.Context(device='host'), '/none')",
        "_hmatrix": "info(_core.Context(device='host'), '/none')",
        "_measure": "storm(_core.Context(device='host'), '/none')",
    }
    name = module.__name__.rpartition(".")[2]
    code = f"import {module.__name__} as first\nfrom penstock import _core\n"
    done = python(f"{code}try: first.{call[name]}\nexcept FileNotFoundError as error: print(type(error).__bases__[0])")
    assert done.stdout == "<class 'penstock._error.Error'>\n", done.stderr


@pytest.mark.parametrize("module", [_hmatrix, _measure], ids=lambda module: module.__name__)
def test_a_module_refuses_a_core_of_another_build(module: ModuleType) -> None:
    code = "from penstock import _core\n_core.shared_layout = _core.shared_layout.replace(' ', ' 1')\n"
    done = python(f"{code}import {module.__name__}")
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: {module.__name__} and penstock._core are of two builds (")
    assert last.endswith("install penstock again, all of it")


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_a_module_shows_its_entry_point_only(module: ModuleType) -> None:
    if shutil.which("nm") is None:
        pytest.skip("no nm")
    command = ["nm", "-D", "--defined-only", "--format=posix", module.__file__]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    names = {line.partition("@")[0] for line in shown if line.split()[1] != "A"}  # A: of a version script itself
    assert names == {"PyInit_" + module.__name__.rpartition(".")[2]}


def test_all_modules_load_the_one_library_of_the_package() -> None:
    names = ", ".join(module.__name__ for module in MODULES)
    done = python(f"import {names}\nprint(open('/proc/self/maps').read())")
    loaded = {line.split()[-1] for line in done.stdout.splitlines() if "libpenstock" in line}
    assert len(loaded) == 1, done.stderr
    assert Path(loaded.pop()).samefile(Path(penstock.__file__).parent / "lib" / "libpenstock.so.0")
