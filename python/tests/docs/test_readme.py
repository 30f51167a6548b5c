"""README and docs: every block of code is run as written, in a scratch directory; make targets are checked to exist."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT

import penstock

FORMATS = {  # pages, and the packages that their code needs
    "hdf5": ("h5py",),
    "netcdf3": (),
    "netcdf4": ("h5py",),
    "zarr": ("zarr",),
    "npy": (),
    "safetensors": (),
    "raw": (),
    "raw-history": (),
    "xarray": ("xarray",),
    "particles": ("h5py",),
}
PAGES = (
    "README.md",
    "docs/cli.md",
    "docs/profile.md",
    "docs/bench.md",
    "docs/gpu.md",
    "docs/python.md",
    "docs/simulation.md",
    *(f"docs/simulation/{one}.md" for one in ("stores", "ranks", "scale", "restarts", "snapshots")),
    "docs/unmodified.md",
    "docs/untrusted-files.md",
    "docs/applications/hmatrix.md",
    "docs/formats/hmat.md",
    "docs/formats/hdf5-driver.md",
    *(f"docs/formats/{one}.md" for one in FORMATS),
    *(str(page.relative_to(ROOT)) for page in sorted((ROOT / "docs/guide").glob("*.md"))),
)
PROGRAMS = {  # that a page's code runs
    "install-and-link": ("gcc", "gfortran", "pkg-config", "cmake"),
    "simulation": ("gcc", "gfortran"),
    "snapshots": ("gcc", "gfortran"),
    "unmodified": ("gfortran",),
}
SOURCES = {  # examples that a page says to have
    "install-and-link": ("snapshot.c", "snapshot.f90"),
    "simulation": ("history/history.c", "history/history.f90"),
    "snapshots": ("particles/particles.f90",),
}
# How a block of Python begins that needs a package which may be absent, and perhaps another driver of HDF5.
NEEDS = re.compile(r"# needs ([a-z0-9]+)(, and the variables of penstock vfd-path)?\n")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LIMIT_S = 180


def blocks(page: str) -> list[tuple[str, str]]:
    return BLOCK.findall((ROOT / page).read_text())


def need_installed() -> None:
    try:
        penstock.get_library_dir()
    except penstock.Error:
        pytest.skip("the package is not installed: this tree has no libpenstock.so beside it")


def run_path() -> str:
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])


def run(command: list[str], place: Path, **more: str) -> str:
    """What it wrote beside its output."""
    environment = os.environ | {"PATH": run_path(), "PENSTOCK_PROGRESS": "0"} | more
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, f"{command[-1]}\n{done.stdout}{done.stderr}"
    return done.stderr


def run_block(language: str, code: str, place: Path) -> None:
    if language == "bash":
        lines = [line for line in code.splitlines() if not line.startswith("make ")]
        run(["bash", "-euc", "\n".join(lines)], place)
    elif language == "python":
        if can_import(code):
            said = run([sys.executable, "-X", "dev", "-W", "error", "-c", code], place, **driver_of(code))
            # With -X dev asyncio tells what took 0.1 s, which on a busy machine is anything.
            told = [line for line in said.splitlines() if not line.startswith("Executing <")]
            assert not told, f"{code}\n{said}"
    elif language == "toml":
        (place / "mine.toml").write_text(code)
        run(["penstock", "bench", "mine.toml", "--dir", ".", "--repeats", "1"], place)
    elif language == "json":
        compare_report(code, place)
    elif language == "c":
        run_c(code, place)
    elif language in ("cpp", "cuda"):
        compile_block(language, code, place)
    else:
        pytest.fail(f"a block of {language} that no test runs")


def compare_report(code: str, place: Path) -> None:
    """The report that a page shows is the one that the blocks before it have made, but for what differs by machine."""
    shown, made = json.loads(code), json.loads((place / "report.json").read_text())
    for report in (shown, made):
        report |= {"program": Path(report["program"]).name, "process": 0, "seconds": 0.0}
    written, told = made["files"][0]["written"], shown["files"][0]["written"]
    assert 0 <= written["bytes"] - (64 << 20) < 1024  # lengths of records: a compiler's own affair
    written["bytes"] = told["bytes"]
    if written["why"] != "asked for":  # the folder of the test lies in memory
        written |= told
    assert made == shown


def can_import(code: str) -> bool:
    needed = NEEDS.match(code)
    return needed is None or importlib.util.find_spec(needed.group(1)) is not None


def driver_of(code: str) -> dict[str, str]:
    """Variables of the environment that the block says it needs."""
    needed = NEEDS.match(code)
    if needed is None or not needed.group(2):
        return {}
    environment = os.environ | {"PATH": run_path()}
    command = ["bash", "-euc", 'eval "$(penstock vfd-path)"; env -0']
    told = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    all_of_them = dict(line.split("=", 1) for line in told.split("\0") if "=" in line)
    return {name: value for name, value in all_of_them.items() if name.startswith("HDF5_")}


def run_c(code: str, place: Path) -> None:
    """Compiles against the headers and library inside the installed package."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    package = Path(penstock.__file__).parent
    (place / "program.c").write_text(code)
    where = [f"-I{package}/include", f"-L{package}/lib", f"-Wl,-rpath,{package}/lib"]
    run([compiler, "-std=c11", "-Wall", "-Werror", "program.c", *where, "-lpenstock", "-o", "program"], place)
    run(["./program"], place)


def compile_block(language: str, code: str, place: Path) -> None:
    """C++ and kernels against the headers inside the installed package, which has no C++ library to link; headers of
    applications are not among them, and come from this tree."""
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    compiler = (shutil.which("c++") or shutil.which("g++")) if language == "cpp" else nvcc
    if compiler is None:
        return  # api/test_include.py says so, by tests that are skipped
    source = place / ("program.cu" if language == "cuda" else "program.cpp")
    source.write_text(code)
    standard = "-std=c++17" if language == "cuda" else "-std=c++20"
    headers = [f"-I{penstock.get_include()}", f"-I{ROOT / 'apps'}"]
    run([compiler, standard, *headers, "-c", str(source), "-o", "program.o"], place)


@pytest.mark.parametrize("page", PAGES)
def test_blocks_run_as_written(page: str, tmp_path: Path) -> None:
    for package in FORMATS.get(Path(page).stem, ()):
        pytest.importorskip(package)
    for program in PROGRAMS.get(Path(page).stem, ()):
        if shutil.which(program, path=run_path()) is None:
            pytest.skip(f"no {program}")
    for source in SOURCES.get(Path(page).stem, ()):
        need_installed()
        shutil.copy(ROOT / "examples" / source, tmp_path)
    found = blocks(page)
    assert found
    for language, code in found:
        run_block(language, code, tmp_path)


def printed(code: str, place: Path) -> list[str]:
    """Lines of a shell, with the device of a machine without a GPU."""
    environment = os.environ | {"PATH": run_path(), "PENSTOCK_PROGRESS": "0"}
    command = ["bash", "-euc", code]
    done = subprocess.run(command, cwd=place, env=environment, stdout=subprocess.PIPE, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, code
    return re.sub(r"cuda:\d+", "host", done.stdout).splitlines()


def test_the_readme_shows_what_its_first_lines_print(tmp_path: Path) -> None:
    """Of Python all of it, of the command the lines without their numbers and paths."""
    text, codes = (ROOT / "README.md").read_text(), dict(blocks("README.md"))
    (tmp_path / "first.py").write_text(codes["python"])
    assert printed("python first.py", tmp_path) == re.findall(r"^print\(.*\)  # (.*)$", codes["python"], re.M)
    writes, read = codes["bash"].splitlines()[1:3]
    printed(writes, tmp_path)
    (shown,) = re.findall(r"^```\n(read .*?)^```$", text, re.M | re.S)
    told = {line.split()[0] for line in printed(read, tmp_path)}
    assert {line.split()[0] for line in shown.splitlines()} == {"read", "path", "cache"} & told


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")
def test_the_readme_shows_how_the_program_in_c_ends(tmp_path: Path) -> None:
    need_installed()
    text = (ROOT / "README.md").read_text()
    (line,) = re.findall(r"`(gcc .*?)`", text)
    (shown,) = re.findall(r"It ends with\n`(.*?)`\.", text)
    shutil.copy(ROOT / "examples" / "snapshot.c", tmp_path)
    assert printed(f"{line}\n./a.out", tmp_path)[-1] == shown


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
def test_make_has_the_targets_that_the_readme_names() -> None:
    lines = [line for _, code in blocks("README.md") for line in code.splitlines() if line.startswith("make ")]
    lines += re.findall(r"`(make [a-z-]+)`", (ROOT / "README.md").read_text())
    assert {line.split()[1] for line in lines} == {"build", "report", "report-all", "soak", "test", "test-all"}
    for line in lines:
        command = line.split("#")[0].split()
        done = subprocess.run([*command, "--dry-run"], cwd=ROOT, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr


def test_a_block_that_fails_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        run_block("bash", "penstock read absent.bin\n", tmp_path)
    with pytest.raises(AssertionError):
        run_block("python", "raise SystemExit(3)", tmp_path)
    with pytest.raises(AssertionError):
        run_block("python", "# needs numpy\nraise SystemExit(3)", tmp_path)
    needs = "# needs numpy, and the variables of penstock vfd-path\n"
    run_block("python", f"{needs}import os\nassert os.environ['HDF5_DRIVER'] == 'penstock'", tmp_path)
    with pytest.raises(AssertionError):
        run_block("python", "import penstock\nfile = penstock.create('x.npy', device='host')", tmp_path)


@pytest.mark.parametrize("page", [*PAGES, "docs/README.md", "CHANGELOG.md", "CONTRIBUTING.md"])
def test_links_lead_to_files(page: str) -> None:
    """To none of a folder: the site has no page for it."""
    for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / page).read_text()):
        if "://" not in target:
            assert ((ROOT / page).parent / target).is_file(), target


def test_the_index_of_the_docs_leads_to_every_page() -> None:
    index = (ROOT / "docs/README.md").read_text()
    pages = [page for folder in ("docs", "docs/guide", "docs/formats") for page in (ROOT / folder).glob("*.md")]
    names = [str(page.relative_to(ROOT / "docs")) for page in pages if page.name != "README.md"]
    assert [name for name in names if f"]({name})" not in index] == []


def test_each_figure_of_a_machine_in_the_readme_has_its_results_beside_it() -> None:
    text = (ROOT / "README.md").read_text()
    shown = re.findall(r"docs/figures/(h200-[\w-]+)\.svg", text)
    assert shown
    suites = re.findall(r"\(docs/measured/([\w-]+)\.md\)", text)
    for figure in shown:
        of = [suite for suite in suites if figure.removeprefix("h200-").startswith(suite)]
        assert of, f"{figure}: no page of its numbers is linked"
        assert all((ROOT / "bench/tables" / suite / "h200.csv").is_file() for suite in of)


def test_the_list_of_examples_has_each_program() -> None:
    listed = set(re.findall(r"\]\(([^)#]+)\)", (ROOT / "examples/README.md").read_text()))
    programs = {path for path in (ROOT / "examples").rglob("*") if path.suffix in (".py", ".c", ".cpp", ".cu", ".f90")}
    assert listed == {str(path.relative_to(ROOT / "examples")) for path in programs}
