"""The site of the documentation describes every public name, and its reader of comments keeps the code as it is."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import penstock

ROOT = Path(__file__).resolve().parents[3]
SITE = ROOT / "docs" / "site"


def test_every_public_name_has_its_place_in_the_reference() -> None:
    text = (SITE / "python.rst").read_text()
    named = set(re.findall(r"^\.\. auto(?:function|class|exception):: penstock\.(\w+)$", text, re.M))
    modules = set(re.findall(r"^\.\. automodule:: penstock\.(\w+)\n   :members:", text, re.M))
    assert set(penstock.__all__) == (named | modules) & set(penstock.__all__)
    assert named <= {*penstock.__all__}, "a name that is gone"
    assert modules == {"gpu", "hmatrix", "torch", "xarray", "zarr_store"}
    for name in ("gpu", "hmatrix"):
        assert importlib.import_module(f"penstock.{name}").__all__  # what :members: shows


def test_every_header_and_every_module_of_fortran_has_its_place_in_the_reference() -> None:
    settings = dict(re.findall(r"^(\w+) += (.+)$", (SITE / "Doxyfile").read_text(), re.M))
    assert settings["INPUT"].split() == ["include", "bindings/fortran"] and settings["RECURSIVE"] == "YES"
    kinds, left_out = settings["FILE_PATTERNS"].split(), settings["EXCLUDE_PATTERNS"].split()
    headers = [one for one in (ROOT / "include").rglob("*") if one.is_file()]
    sources = [one for one in (ROOT / "bindings/fortran").glob("*.f90") if not one.match("*_test.f90")]
    modules = [name for one in sources for name in re.findall(r"^module (\w+)$", one.read_text(), re.M)]
    assert sorted(modules) == sorted(one.stem for one in sources)
    for one in headers + sources:
        assert any(map(one.match, kinds)) and not any(map(one.match, left_out)), one
    pages = [f"{one.stem}.h <{one.stem.replace('_', '__')}_8h.html>" for one in (ROOT / "include").glob("*.h")]
    pages += [f"{name} <namespace{name.replace('_', '__')}.html>" for name in modules]
    text = (SITE / "native.rst").read_text()
    assert [page for page in pages if page not in text] == []


def pages_of_the_sidebar() -> set[str]:
    """As conf.py has them, which cannot be imported without Sphinx."""
    told = next(
        one.value
        for one in ast.parse((SITE / "conf.py").read_text()).body
        if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == "SIDEBAR"
    )
    parts = eval(compile(ast.Expression(told), "SIDEBAR", "eval"))
    return {page for pages in parts.values() for page in pages}


def linked(page: Path) -> set[Path]:
    return {(page.parent / target).resolve() for target in re.findall(r"\]\(([^)#:]+\.md)", page.read_text())}


def test_every_page_is_in_the_sidebar_or_linked_by_one_that_is() -> None:
    sidebar = {path for page in pages_of_the_sidebar() for path in (ROOT / f"{page}.md",) if path.is_file()}
    index = (ROOT / "docs/README.md").read_text()
    tables = {ROOT / "docs" / target for target in re.findall(r"^\| \[[^]]+\]\(([^)]+)\) \|", index, re.M)}
    assert len(tables) > 20
    assert {str(path.resolve().relative_to(ROOT)) for path in tables if path.resolve() not in sidebar} == set()
    reached = sidebar.union(*map(linked, sidebar))
    assert {str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md") if path not in reached} == set()


def marked(source: Path) -> str:
    run = subprocess.run([sys.executable, SITE / "comments.py", source], capture_output=True, text=True, check=True)
    return run.stdout


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("a.hpp", "// A head.\n\nint x = 1;  // metres\n", "/// @file\n/// A head.\n\nint x = 1;  ///< metres\n"),
        ("a.hpp", '    call("http://x");\n', '/// @file\n    call("http://x");\n'),
        (
            "a.h",
            "/* Head.\n *  9. a\n * 10. b\n */\nint x; /* m */\n",
            "/** @file\n *\n * Head.\n *  9. a\n *  10. b\n */\n",
        ),
        ("a.h", "/* Head. */\n/* ---- Files ---- */\n", "/** @file\n *\n * Head. */\n/* ---- Files ---- */\n"),
        ("a.f90", "! Head.\ninteger :: x ! metres\n", "!> Head.\ninteger :: x !< metres\n"),
    ],
)
def test_plain_comments_are_marked_for_doxygen(tmp_path: Path, name: str, text: str, wanted: str) -> None:
    (tmp_path / name).write_text(text)
    assert marked(tmp_path / name).startswith(wanted)


@pytest.mark.parametrize("header", sorted((ROOT / "include").rglob("*.h*")), ids=lambda path: path.name)
def test_only_comments_change_in_the_headers(header: Path) -> None:
    comments = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
    before, after = (comments.sub("", text).split() for text in (header.read_text(), marked(header)))
    assert before == after
