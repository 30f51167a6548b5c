"""A newcomer who adds something to the tree by a section of CONTRIBUTING.md, one step after the other, in a copy.

What must stay true: a newcomer changes a file only in a step whose text names it, so that whatever the page leaves out
is not done; a section whose steps were not all taken is noticed; nothing is written to the tree itself.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from places import ROOT

import penstock
import penstock_bench

PAGE = (ROOT / "CONTRIBUTING.md").read_text()
NOT_COPIED = shutil.ignore_patterns("__pycache__", ".*", "*.so")
# Where a step's words may lie that name no file from the root on: a folder that the page speaks of as known.
PLACES = ("", "src/path/", "python/penstock/", "python/penstock_bench/", "python/tests/")
LIMIT_S = 900  # of a build


def steps_of(title: str) -> list[str]:
    """The numbered steps of a section."""
    section = PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\d\. (.*(?:\n {3}.*)*)", section, re.M)


def copy_sources(to: Path) -> Path:
    """The tree without what was built."""
    for one in ROOT.iterdir():
        if one.is_dir() and not one.name.startswith(".") and one.name != "build":
            shutil.copytree(one, to / one.name, ignore=NOT_COPIED, symlinks=True)
        elif one.is_file():
            shutil.copy(one, to / one.name)
    return to


def copy_packages(to: Path) -> Path:
    """What tests of Python need: the packages as they are installed, with what is compiled, and the tests beside."""
    for package in (penstock, penstock_bench):
        place = Path(str(package.__file__)).parent
        shutil.copytree(place, to / "python" / place.name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("support", "programs", "durable", "suites"):
        shutil.copytree(ROOT / "python/tests" / name, to / "python/tests" / name, ignore=NOT_COPIED)
    for name in ("pyproject.toml", "CONTRIBUTING.md", "python/tests/conftest.py", "python/tests/slow.txt"):
        shutil.copy(ROOT / name, to / name)
    for name in ("tests/faults", "docs/formats"):
        shutil.copytree(ROOT / name, to / name, ignore=NOT_COPIED)
    shutil.copy(ROOT / "docs/formats.md", to / "docs/formats.md")
    if (ROOT / "build/faults").is_dir():  # the file system of those tests, which takes half a minute to compile
        shutil.copytree(ROOT / "build/faults", to / "build/faults")
    return to


class Newcomer:
    """`name`: what the page calls NAME."""

    def __init__(self, title: str, name: str, tree: Path) -> None:
        self._steps, self._name, self.tree = steps_of(title), name, tree
        assert self._steps, f"CONTRIBUTING.md has no steps {title!r}"
        self._at, self._taken = 0, set[int]()

    def at(self, number: int) -> Newcomer:
        """Itself, at the step of this number, 1 the first."""
        assert number <= len(self._steps), f"the page has {len(self._steps)} steps"
        self._at = number
        self._taken.add(number)
        return self

    def writes(self, file: str, text: str) -> None:
        """A file that is not there yet."""
        self._need_named(file)
        place = self.tree / file
        assert not place.exists(), file
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def inserts(self, file: str, text: str, *, before: str) -> None:
        """Into a file that is there, before the only place where it says so."""
        self.replaces(file, before, text + before)

    def replaces(self, file: str, old: str, new: str) -> None:
        self._need_named(file)
        place = self.tree / file
        there = place.read_text()
        assert there.count(old) == 1, f"{file}: {there.count(old)} times {old!r}"
        place.write_text(there.replace(old, new))

    def counts_one_more(self, file: str, constant: str) -> None:
        self._need_named(file, constant)
        place = self.tree / file
        more = lambda found: f"{found[1]}{int(found[2]) + 1}"  # noqa: E731
        text, number = re.subn(rf"(\b{constant} = )(\d+)", more, place.read_text())
        assert number == 1, f"{file}: {constant}"
        place.write_text(text)

    def _need_named(self, file: str, *words: str) -> None:
        step = self._steps[self._at - 1]
        named = [word.replace("NAME", self._name) for word in re.findall(r"`([^`]+)`", step)]
        assert any(is_of(file, word, named) for word in named), f"step {self._at} does not name {file}: {step}"
        assert set(words) <= set(named), f"step {self._at} does not name {words}: {step}"

    def has_taken_all(self) -> bool:
        return self._taken == set(range(1, len(self._steps) + 1))


def is_of(file: str, word: str, beside: list[str]) -> bool:
    """Whether a word of a step stands for the file: its path, a folder that holds it, or its name in a folder that the
    step names too."""
    if any(file == place + word or (word.endswith("/") and file.startswith(place + word)) for place in PLACES):
        return True
    folder, _, name = file.rpartition("/")
    folders = {one.rpartition("/")[0] for one in beside if "/" in one}
    return word == name and any(folder == place + one for place in PLACES for one in folders)


def run(tree: Path, *command: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
    """A command in the copy, whose packages and tools of the build come first; stderr is among its output."""
    path = [str(tree / "python"), str(tree / "python/tests/support")]
    tools = [str(Path(sys.executable).parent), os.environ["PATH"]]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path), "PATH": os.pathsep.join(tools)} | more
    environment.pop("PYTEST_ADDOPTS", None)
    words = [str(word) for word in command]
    return subprocess.run(
        words, cwd=tree, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S
    )


def pytest_in(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run(tree, sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", *arguments)
