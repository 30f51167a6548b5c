"""`make report DIR=...`: what a user types as DIR is the name of a directory, and nothing of it is ever run; what is
done and how long it takes is told at once, and a build shows that it lives."""

from __future__ import annotations

import importlib.util
import io
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT

MAKEFILE = ROOT / "Makefile"
HAS_GPU = any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/dxg").exists()
PROGRESS = MAKEFILE.parent / "tools" / "progress.py"
HOSTILE = [
    'x"; touch run-by-it; "',
    "x'; touch run-by-it; '",
    "`touch run-by-it`",
    "$(touch run-by-it)",
    "$(shell touch run-by-it)",
    "$${HOME} $(info x) #",
    "-n",
    "a b; touch run-by-it",
    "a\ntouch run-by-it\nb",
]
STUB = "#!/bin/sh\nprintf '%s\\0' \"$@\" >> arguments\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """All that the recipes need, with a `penstock` that writes down how it was called."""
    if shutil.which("make") is None or not PROGRESS.exists():
        pytest.skip("no make, or no Makefile")
    shutil.copy(MAKEFILE, tmp_path)
    (tmp_path / "tools").mkdir()
    shutil.copy(PROGRESS, tmp_path / "tools")
    for name in ("pyproject.toml", "CMakeLists.txt", "tools/setup.sh", ".venv/bin/penstock", "python/penstock/x.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(STUB)
        (tmp_path / name).chmod(0o755)
    for name in ("system", "venv", "package"):
        (tmp_path / "build" / "stamps").mkdir(parents=True, exist_ok=True)
        (tmp_path / "build" / "stamps" / name).touch()
    return tmp_path


def asked_nothing(**more: str) -> dict[str, str]:
    """The environment without what a caller, or a `make` that runs these tests, asks of the Makefile."""
    asked = {
        *re.findall(r"^(\w+) *[?:]?= ", MAKEFILE.read_text(), re.MULTILINE),
        "MAKEFLAGS",
        "MAKEOVERRIDES",
        "MFLAGS",
    }
    return {name: value for name, value in os.environ.items() if name not in asked} | more


def make(tree: Path, target: str, directory: str, by_environment: bool) -> subprocess.CompletedProcess[str]:
    words = ["make", target] if by_environment else ["make", target, f"DIR={directory}"]
    environment = asked_nothing(**({"DIR": directory} if by_environment else {}))
    return subprocess.run(words, cwd=tree, env=environment, capture_output=True, text=True, timeout=60, check=False)


def make_named(tree: Path, target: str, *named: str) -> subprocess.CompletedProcess[str]:
    """With variables that are named on the command line."""
    words = ["make", target, *named]
    return subprocess.run(words, cwd=tree, env=asked_nothing(), capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.sampled
@pytest.mark.parametrize("by_environment", [False, True], ids=["argument", "environment"])
@pytest.mark.parametrize("target", ["report", "report-all"])
@pytest.mark.parametrize("directory", HOSTILE)
def test_nothing_of_a_directory_is_run(tree: Path, target: str, directory: str, by_environment: bool) -> None:
    refused = make(tree, target, directory, by_environment)
    assert refused.returncode != 0
    assert f"DIR={directory}: no directory that can be written" in refused.stderr
    (tree / directory).mkdir()
    done = make(tree, target, directory, by_environment)
    assert done.returncode == 0, done.stderr
    assert f"--dir={directory}" in (tree / "arguments").read_text().split("\0")
    assert not (tree / "run-by-it").exists()


def unbuilt(tree: Path, python: str) -> None:
    """The package is to be built, by such a Python."""
    for folder in ("python/penstock_bench", "bindings", "apps", "src", "include", "cmake"):
        (tree / folder).mkdir()
    (tree / "build" / "stamps" / "package").unlink()
    (tree / ".venv" / "bin" / "python").write_text(f"#!/bin/sh\n{python}\n")
    (tree / ".venv" / "bin" / "python").chmod(0o755)


def test_what_is_done_and_how_long_it_takes_is_told_first(tree: Path) -> None:
    unbuilt(tree, "echo '  [1/2] Building'")
    done = make_named(tree, "report", "JOBS=2")
    first, building, measuring = done.stderr.splitlines()
    minutes = 4 if HAS_GPU else 3
    assert first == (
        f"make report: installs what is missing, builds the package (about {minutes} minutes on 2 cores; "
        "later runs build only what changed), measures in ., and writes report.html"
    )
    assert building == f"building the package: about {minutes} minutes on 2 cores"
    assert measuring.startswith("measuring: about")
    assert "[1/2]" in (tree / "build" / "package.log").read_text()
    again = make(tree, "report", ".", by_environment=False)
    assert again.stderr.startswith("make report: builds what changed, measures in .,")


def test_a_first_report_compiles_cuda_where_there_is_a_gpu_or_one_is_named(tree: Path) -> None:
    unbuilt(tree, 'echo "$@"')
    built = tree / "build" / "package.log"
    named = ["ARCHITECTURES=90"]
    # The last was built by the first, and is no longer installed.
    for arguments, cuda in ((named, True), ([], HAS_GPU), (named, True)):
        assert make_named(tree, "report", *arguments).returncode == 0
        assert f"PENSTOCK_CUDA={'ON' if cuda else 'OFF'}" in built.read_text()
    assert make_named(tree, "build").returncode == 0
    assert "PENSTOCK_CUDA=ON" in built.read_text()
    assert re.search(r'^PENSTOCK_CUDA = "ON"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)


def test_a_first_report_compiles_no_application_and_a_build_does(tree: Path) -> None:
    unbuilt(tree, 'echo "$@"')
    built = tree / "build" / "package.log"
    make(tree, "report", ".", by_environment=False)
    assert "PENSTOCK_APPS=OFF" in built.read_text()
    built.unlink()
    make(tree, "report", ".", by_environment=False)
    assert not built.exists()
    make(tree, "build", ".", by_environment=False)
    assert "PENSTOCK_APPS=ON" in built.read_text()
    (tree / "CMakeLists.txt").write_text("changed")
    make(tree, "report", ".", by_environment=False)
    assert "PENSTOCK_APPS=ON" in built.read_text()
    # `pip install .` and `make wheel` come to the same folder, where CMake would remember what a report left out.
    assert re.search(r'^PENSTOCK_APPS = "ON"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)


def test_what_is_tested_has_applications_and_kernels_where_there_is_a_gpu_or_one_is_named(tree: Path) -> None:
    unbuilt(tree, 'echo "$@"')
    (tree / "build" / "stamps" / "test-tools").touch()
    built = tree / "build" / "package.log"
    for named, cuda in (([], HAS_GPU), (["ARCHITECTURES=90"], True)):
        for stamp in (tree / "build" / "stamps").glob("pa*"):  # of the package, or a part of it
            stamp.unlink()
        built.unlink(missing_ok=True)
        make_named(tree, "test", *named)
        assert f"PENSTOCK_APPS=ON -C cmake.define.PENSTOCK_CUDA={'ON' if cuda else 'OFF'}" in built.read_text()
        built.unlink()
        for target in ("report", "test"):  # what was tested is measured too, and is there for the next test
            make_named(tree, target, *named)
            assert not built.exists()


@pytest.mark.parametrize(
    ("says", "compiled_for"),
    [("9.0\\n8.0\\n9.0\\n", "80;90"), ("9.0\\n", "90"), ("NVIDIA-SMI has failed.\\n", "80"), ("", "80")],
)
def test_kernels_are_compiled_for_the_gpus_that_are_here(tree: Path, says: str, compiled_for: str) -> None:
    unbuilt(tree, 'echo "$@"')
    tools = tree / "of-the-gpu"
    tools.mkdir()
    (tools / "nvidia-smi").write_text(f"#!/bin/sh\nprintf '{says}'\n")
    (tools / "nvidia-smi").chmod(0o755)
    environment = asked_nothing(PATH=f"{tools}:{os.environ['PATH']}")
    subprocess.run(["make", "build"], cwd=tree, env=environment, capture_output=True, timeout=60, check=True)
    built = (tree / "build" / "package.log").read_text()
    assert f"cmake.define.CMAKE_CUDA_ARCHITECTURES={compiled_for} " in built


def test_a_build_that_fails_tells_its_last_lines_and_where_all_of_them_are(tree: Path) -> None:
    unbuilt(tree, "seq 100; echo 'x.cpp:1: error: no such thing'; exit 3")
    failed = make(tree, "report", ".", by_environment=False)
    assert failed.returncode != 0 and not any((tree / "build" / "stamps").glob("pa*"))
    assert "x.cpp:1: error: no such thing\n" in failed.stderr and "\n50\n" not in failed.stderr
    assert ".venv/bin/python ended with exit code 3; all that it said: build/package.log" in failed.stderr
    assert "\n50\n" in (tree / "build" / "package.log").read_text()


@pytest.mark.parametrize(
    ("terminal", "told"),
    [
        (False, "preparing the build, 1 min 0 s\n[50/200] 2 min 0 s, about 6 min 0 s left\n"),
        (True, "\r\033[Kpreparing the build, 1 min 0 s\r\033[K[50/200] 2 min 0 s, about 6 min 0 s left\r\033[K"),
    ],
)
def test_a_build_shows_how_far_it_is(terminal: bool, told: str) -> None:
    spec = importlib.util.spec_from_file_location("progress", PROGRESS)
    if spec is None or spec.loader is None or not PROGRESS.exists():
        pytest.skip("no tools beside the tests")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    stream, times = io.StringIO(), iter([0.0, 0.5, 60.0, 60.5, 120.0])
    progress = module.Progress(stream, terminal, lambda: next(times))
    progress.tick()
    progress.tick()
    progress.heard("  [50/200] Building CXX object a.o")
    progress.tick()
    progress.tick()
    progress.end()
    assert stream.getvalue() == told
    progress.heard("[200/200] Linking")
    assert progress.text(300.0) == "[200/200] 5 min 0 s, installing"


@pytest.mark.parametrize("fails", ["none", "cmake", "ctest", "ruff", "python", "tools/skipped.py"])
def test_a_test_that_fails_hides_no_other(tree: Path, fails: str) -> None:
    """Tests of C++, the linter, tests of Python and what was skipped: each runs, and one failure is that of all. What
    cannot be built is not tested. Tests of Python are read beside the build, and only their run counts."""
    parts = {name: tree / ".venv" / "bin" / name for name in ("cmake", "ctest", "ruff", "python")}
    parts["tools/skipped.py"] = tree / "tools" / "skipped.py"
    for name, place in parts.items():
        run = f"import sys\nopen('ran', 'a').write('{name}\\n')\nsys.exit({int(name == fails)})\n"
        place.write_text(f"#!{sys.executable}\n{run}")
        place.chmod(0o755)
    (tree / "build" / "stamps" / "test-tools").touch()
    done = make(tree, "test", ".", by_environment=False)
    assert (done.returncode == 0) == (fails == "none"), done.stderr
    ran = (tree / "ran").read_text().split()
    if fails == "cmake":
        assert ran == ["cmake"]
    else:
        assert sorted(ran[:3]) == ["cmake", "cmake", "python"]
        assert ran[3:] == ["ctest", "ruff", "python", "tools/skipped.py"]
