"""The site of the documentation describes every public name, and its reader of comments keeps the code as it is."""

from __future__ import annotations

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
