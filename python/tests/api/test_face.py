"""What a user meets first: help, names and listings of the package, with and without the packages it can do without."""

from __future__ import annotations

import errno
import importlib.metadata
import pickle
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import assert_one_line_error, run_penstock
from places import ROOT

import penstock as ps
from penstock._extras import EXTRAS

OTHERS = ("torch", "xarray", "zarr", "h5py", "matplotlib", "typer", "rich", "cupy")
LIMIT_S = 60


def run(code: str, absent: tuple[str, ...] = OTHERS) -> subprocess.CompletedProcess[str]:
    """The code in a Python of its own, where these packages cannot be imported."""
    head = f"import sys\nsys.modules.update(dict.fromkeys({absent!r}))\n"
    return subprocess.run([sys.executable, "-c", head + code], capture_output=True, text=True, timeout=LIMIT_S)


def printed(code: str) -> str:
    done = run(code)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_help_shows_the_package_without_the_packages_it_can_do_without() -> None:
    text = printed("import penstock; help(penstock)")
    assert "Penstock moves bytes" in text
    assert "open(" in text
    assert "Penstock moves bytes" in printed("help('penstock')")


def test_a_star_import_and_a_listing_of_members_work_without_them() -> None:
    assert printed("from penstock import *\nprint(DataFile.__name__)") == "DataFile\n"
    assert "'open'" in printed("import inspect, penstock; print([name for name, _ in inspect.getmembers(penstock)])")


@pytest.mark.parametrize("name", ["torch", "xarray", "zarr_store"])
def test_a_submodule_whose_package_is_not_there_is_no_attribute(name: str) -> None:
    assert printed(f"import penstock; print(hasattr(penstock, {name!r}))") == "False\n"
    done = run(f"import penstock; penstock.{name}")
    assert "AttributeError: penstock." in done.stderr
    assert "pip install" in done.stderr


@pytest.mark.parametrize("name", ["torch", "xarray", "zarr_store"])
def test_importing_it_says_what_it_needs(name: str) -> None:
    last = run(f"import penstock.{name}").stderr.splitlines()[-1]
    assert last.startswith(f"ModuleNotFoundError: penstock.{name} needs "), last
    assert "pip install" in last


@pytest.mark.parametrize("name", ["data", "flow", "gpu", "hmatrix", "nbody"])
def test_a_package_of_penstock_is_there_without_an_import_of_its_own(name: str) -> None:
    if name in ("flow", "hmatrix", "nbody"):
        pytest.importorskip(f"penstock.{name}")
    assert printed(f"import penstock; print(penstock.{name}.__name__)") == f"penstock.{name}\n"


READERS = {
    "hdf5": lambda place: ps.open(place / "no.h5"),
    "netcdf3": lambda place: ps.open(place / "no.nc3"),
    "npy": lambda place: ps.open(place / "no.npy"),
    "safetensors": lambda place: ps.load(place / "no.safetensors"),
    "zarr": lambda place: ps.open(place / "no.zarr"),
    "bytes": lambda place: ps.load(place / "no.bin"),
    "raw": lambda place: ps.open(place / "no.bin", dtype="f4"),
    "context": lambda place: ps.Context("host").open(place / "no"),
    "gpu": lambda place: ps.gpu.open(place / "no.bin", "f4", (-1, 2)),
    "in no folder": lambda place: ps.create(place / "none" / "new.h5"),
}


@pytest.mark.parametrize("what", READERS)
def test_a_missing_file_is_a_file_not_found_error_of_an_operation_that_users_know(what: str, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        READERS[what](tmp_path)
    error = caught.value
    assert isinstance(error, ps.Error) and error.code == "not_found"
    assert error.errno == errno.ENOENT and str(error.filename).startswith(str(tmp_path))
    assert error.operation.split()[0] in ("open", "create") and str(error).startswith(error.operation)


def test_what_the_system_refused_is_pythons_own_error_too(tmp_path: Path) -> None:
    for opened in (lambda: ps.Context("host").open(tmp_path), lambda: ps.open(tmp_path, format="npy")):
        with pytest.raises(IsADirectoryError) as caught:
            opened()
        assert caught.value.errno == errno.EISDIR
    kinds = {
        ("permission_denied", errno.EACCES): PermissionError,
        ("io_error", errno.EEXIST): FileExistsError,
        ("timed_out", 0): TimeoutError,
    }
    for (code, number), kind in kinds.items():
        assert isinstance(ps.Error(code=code, cause="so", system_code=number), kind)
    for code, number in (("device_error", errno.ENOENT), ("not_found", 0), ("io_error", errno.EIO)):
        assert not isinstance(ps.Error(code=code, cause="so", system_code=number), OSError)


def test_errors_go_through_a_pickle_with_all_they_say(tmp_path: Path) -> None:
    found = []
    for opened in (lambda: ps.open(tmp_path / "no.h5"), lambda: ps.Context("host").allocate(1 << 62)):
        with pytest.raises(ps.Error) as caught:
            opened()
        found.append(caught.value)
    found.append(ps.Error(code="timed_out", operation="read", file="a file", length_bytes=7, cause="late"))
    for error in found:
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error) and str(again) == str(error) and vars(again) == vars(error)
        assert getattr(again, "errno", None) == getattr(error, "errno", None)
    assert found[-1].errno == errno.ETIMEDOUT


def test_a_chunk_that_could_only_be_rounded_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(bytes(10000))
    for given, advice in (("3", "use 4096"), ("5000", "use 8192")):
        ran = run_penstock("read", tmp_path / "data", "--to", "host", "--chunk-bytes", given)
        assert_one_line_error(ran, f"--chunk-bytes: {given} is not a multiple of 4096 bytes", advice)
        assert ran.code == 2
    with ps.Context("host") as context, context.open(tmp_path / "data") as file:
        with pytest.raises(ps.Error, match="chunk_bytes 3 is no multiple of 4096; use 4096"):
            file.read(bytearray(10000), chunk_bytes=3)
        assert file.read(bytearray(10000), chunk_bytes=4096).bytes == 10000


def undocumented(name: str, kind: type) -> Iterator[str]:
    """Public members of a class without a word about them."""
    for member, found in vars(kind).items():
        one = getattr(found, "__func__", found)
        text = one.fget.__doc__ if isinstance(one, property) else getattr(one, "__doc__", None)
        told = callable(one) or isinstance(one, property)
        if not member.startswith("_") and told and not (text or "").strip():
            yield f"{name}.{member}"


def untold_fields(name: str, kind: type) -> Iterator[str]:
    """Public fields that the words about their class do not name."""
    for field in vars(kind).get("__annotations__", {}):
        if not field.startswith("_") and not re.search(rf"\b{field}\b", kind.__doc__ or ""):
            yield f"{name}.{field}"


def test_every_public_member_says_what_it_is() -> None:
    found = [(name, getattr(ps, name)) for name in ps.__all__ if name not in ("gpu", "hmatrix")]
    for module in (ps.gpu, ps.hmatrix, pytest.importorskip("penstock.nbody"), pytest.importorskip("penstock.flow")):
        found += [(f"{module.__name__}.{name}", getattr(module, name)) for name in module.__all__]
    assert [name for name, one in found if not (one.__doc__ or "").strip()] == []
    assert [name for name, one in found if (one.__doc__ or "").lstrip().startswith("Args:")] == [], "arguments of what?"
    types = [(name, one) for name, one in found if isinstance(one, type)]
    assert [text for name, one in types for text in undocumented(name, one)] == []
    assert [text for name, one in types if not issubclass(one, dict) for text in untold_fields(name, one)] == []


def test_types_and_codes_that_docstrings_name_are_there() -> None:
    for name, one in vars(ps).items():
        if isinstance(one, type):
            for member in vars(one).values():
                for wanted in re.findall(r"see\s+(?:penstock\.)?([A-Z]\w+)", getattr(member, "__doc__", None) or ""):
                    assert hasattr(ps, wanted), f"{name}: see {wanted}"
    page = (ROOT / "docs/python.md").read_text()
    header = (ROOT / "include/penstock.h").read_text()
    codes = re.findall(r"^    PENSTOCK_(\w+) = [1-9]", header[: header.index("Values of every field")], re.M)
    assert len(codes) == 15
    assert [code for code in codes if f"`{code.lower()}`" not in page] == []


@pytest.mark.parametrize(
    ("package", "arguments", "extra"),
    [
        ("typer", ["--version"], "cli"),
        ("typer", ["read", "x"], "cli"),
        ("rich", ["doctor", "."], "cli"),
        ("matplotlib", ["hmatrix", "solve", "--shape", "sphere", "--triangles", "80", "--picture", "x.png"], "report"),
    ],
)
def test_the_command_names_the_extra_that_is_missing(
    package: str, arguments: list[str], extra: str, tmp_path: Path
) -> None:
    code = f"import os; os.chdir({str(tmp_path)!r}); from penstock.cli import main; sys.exit(main({arguments!r}))"
    done = run(code, (package,))
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
    wanted = f"the package {package} is not installed; pip install 'penstock[{extra}]'"
    assert done.stderr.startswith("penstock: ") and wanted in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_package_needs_numpy_and_nothing_else(tmp_path: Path) -> None:
    """Of what does not come with Python, tomli aside, in a Python of its own where nothing else can be found."""
    code = """
class Only:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in sys.stdlib_module_names and top not in ("numpy", "penstock", "penstock_bench"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Only())
import numpy as np, penstock as ps
for end in ("npy", "safetensors", "zarr", "nc3"):
    ps.save(f"x.{end}", np.ones(5) if end == "npy" else {"a": np.ones(5)})
    print(end, ps.load(f"x.{end}") is not None)
"""
    done = run(f"import os; os.chdir({str(tmp_path)!r})" + code, ())
    assert done.returncode == 0 and done.stdout.count("True") == 4, done.stderr


def test_extras_are_those_of_the_package() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    of = {"PIL": "matplotlib", "pynvml": "nvidia-ml-py"}  # the distribution that brings a module
    for package, extra in EXTRAS.items():
        listed = re.search(rf"^{extra} = \[([^\]]*)\]", text, re.M)
        assert listed and f'"{of.get(package, package)}>=' in listed.group(1), (package, extra)


def commands() -> list[list[str]]:
    """All subcommands of all packages that are installed."""
    pytest.importorskip("typer")
    from penstock.cli.app import main_command

    found = []
    for name, one in main_command().commands.items():
        found += [[name, inner] for inner in getattr(one, "commands", {})] or [[name]]
    return found


def test_help_says_what_values_are_in_whole_sentences_with_an_example() -> None:
    assert ["hmatrix", "solve"] in commands() and ["read"] in commands()
    for words in commands():
        text = run_penstock(*words, "--help", env={"COLUMNS": "200"}).out
        words_of_types = re.search(r"<(str|bool|int|float)>|\[\[", text)
        version = tuple(int(part) for part in importlib.metadata.version("typer").split(".")[:2])
        assert not words_of_types or version in ((0, 27), (0, 28)), text  # which add them
        assert "Of a write over it" not in text
        example = re.search(rf"Example: (penstock {' '.join(words)}\b.*)|Example: .*penstock {' '.join(words)} ", text)
        assert example, text
        for option in re.findall(r" (--[a-z-]+)", example.group(0)):
            assert text.count(option) > 1, f"{words}: the example has {option}"
        told = [line.strip() for line in text[text.index("Usage") : text.index("╭")].splitlines()]
        assert all(line[-1] in ".)" or len(line) > 150 for line in told[1:] if line and "penstock" not in line), text


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (["write", "x"], "penstock write"),
        (["hmatrix", "solve", "--nope"], "penstock hmatrix solve"),
        (["wrte"], "penstock"),
    ],
)
def test_a_wrong_command_line_is_sent_to_the_help_that_tells(arguments: list[str], command: str) -> None:
    ran = run_penstock(*arguments)
    assert ran.code == 2
    assert_one_line_error(ran, f"See {command} --help.")


def test_a_shell_completes_commands() -> None:
    words = {"_PENSTOCK_COMPLETE": "complete_bash", "COMP_WORDS": "penstock re", "COMP_CWORD": "1"}
    assert run_penstock(env=words).out.split()[:1] == ["read"]


def test_the_advice_of_doctor_sends_nobody_to_doctor(tmp_path: Path) -> None:
    items = run_penstock("doctor", tmp_path, "--json").json["items"]
    assert len(items) > 10
    assert [one["name"] for one in items if "doctor" in str(one.get("advice"))] == []
    sources = list((ROOT / "src" / "path").rglob("*status.cpp"))
    assert sources  # what doctor shows of a cuFile that is not here to be asked
    assert [one.name for one in sources if "penstock doctor" in one.read_text()] == []
