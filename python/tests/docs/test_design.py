"""The pages of docs/design name functions and files that there are: an account of code that went astray misleads."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from places import ROOT

PAGES = sorted((ROOT / "docs" / "design").glob("*.md"))
TOPS = ("include", "src", "bindings", "apps", "tests", "tools", "examples", "python")
SOURCES = [path for top in TOPS for path in (ROOT / top).rglob("*.*")]
CODE = {path: path.read_text() for path in SOURCES if path.suffix in (".hpp", ".cpp", ".cu", ".h", ".c")}


def missing(page: str) -> list[str]:
    """Files and members that a page names in code and the tree does not have."""
    words = re.findall(r"`([^`\n]+)`", page)
    files = [word for word in words if re.fullmatch(r"[\w./]+\.(?:hpp|cpp|cu|h|c|py|txt|map)", word)]
    members = [word for word in words if re.fullmatch(r"[A-Z]\w+::\w+", word)]
    paths = [f"/{path.relative_to(ROOT).as_posix()}" for path in SOURCES]
    gone = [file for file in files if not any(path.endswith(f"/{file}") for path in paths)]
    return gone + [member for member in members if not is_member(*member.split("::"))]


def is_member(owner: str, name: str) -> bool:
    """Whether a file that defines the type, or what its members return, has the name too."""
    defines = re.compile(rf"\b(?:struct|class|enum class)\s+(?:alignas\(\d+\)\s+)?{owner}\b|\b{owner}::{name}\b")
    return any(defines.search(text) and re.search(rf"\b{name}\b", text) for text in CODE.values())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_names_is_there(page: Path) -> None:
    assert missing(page.read_text()) == []


def test_control_what_is_not_there_is_told() -> None:
    assert {page.name for page in PAGES} >= {"architecture.md", "protocol.md", "ondevice.md"}
    assert missing("`Slots::claim` of `slots.hpp`, `Slots::seize` of `slits.hpp`") == ["slits.hpp", "Slots::seize"]
