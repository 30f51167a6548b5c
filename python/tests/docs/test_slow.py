"""What `make test` leaves out by name, in python/tests/slow.txt and tests/slow.txt, is there, and something quick of
each folder is left."""

from __future__ import annotations

import ast
import os
import re
import subprocess
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from places import ROOT

TESTS = Path(__file__).parents[1]
LINES = [line for line in (TESTS / "slow.txt").read_text().splitlines() if not line.startswith("#")]


@cache
def functions(module: str) -> set[str]:
    tree = ast.parse((TESTS / f"{module}.py").read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def long(config: pytest.Config) -> set[str]:
    conftest: Any = config.pluginmanager.get_plugin(str(TESTS / "conftest.py"))
    return conftest.LONG


def test_each_line_names_what_is_there_and_is_not_long(pytestconfig: pytest.Config) -> None:
    assert sorted(set(LINES)) == LINES
    for line in LINES:
        module, _, function = line.partition("::")
        assert function in {"", *functions(module)}, line
        assert module not in long(pytestconfig), f"{line}: its module is long"
        assert not function or module not in LINES, f"{line}: all of its module is slow"
    assert all(functions(module) for module in long(pytestconfig))


def test_what_workers_begin_with_is_there(pytestconfig: pytest.Config) -> None:
    conftest: Any = pytestconfig.pluginmanager.get_plugin(str(TESTS / "conftest.py"))
    assert len({*conftest.FIRST}) == len(conftest.FIRST) and all(map(functions, conftest.FIRST))
    items = [
        SimpleNamespace(path=TESTS / f"{module}.py", name="test_any", add_marker=lambda _mark: None)
        for module in ("a/test_a", *conftest.FIRST)
    ]
    chosen = items[::-1]
    conftest.pytest_collection_modifyitems(chosen)
    assert chosen == [*items[1:], items[0]]


def test_another_module_comes_first_in_another_turn(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    conftest: Any = pytestconfig.pluginmanager.get_plugin(str(TESTS / "conftest.py"))
    first = set()
    for turn in range(200):
        monkeypatch.setattr(conftest, "TURN", f"turn {turn}")
        first.add(min(conftest.LONG, key=conftest.place_of))
    assert first == conftest.LONG


def test_each_folder_keeps_a_quick_test(pytestconfig: pytest.Config) -> None:
    modules = {f"{path.parent.name}/{path.stem}" for path in TESTS.glob("*/test_*.py")}
    quick = modules - long(pytestconfig) - {*LINES}
    kept = {module.split("/")[0] for module in quick if {f"{module}::{name}" for name in functions(module)} - {*LINES}}
    assert kept == {module.split("/")[0] for module in modules}


def test_what_is_listed_is_marked_and_nothing_else(pytestconfig: pytest.Config) -> None:
    conftest: Any = pytestconfig.pluginmanager.get_plugin(str(TESTS / "conftest.py"))
    whole, named = "evidence/test_evidence_fs", "api/test_include::test_a_kernel_compiles"
    assert {whole, named} <= {*LINES}
    marked = {}
    for place in (f"{whole}::test_any", named, f"{named}[of a case]", f"{named}_not", "evidence/test_medium::test_any"):
        module, _, name = place.partition("::")
        marks = marked[place] = list[str]()
        item = SimpleNamespace(
            path=TESTS / f"{module}.py", name=name, add_marker=lambda mark, to=marks: to.append(mark.name)
        )
        conftest.pytest_collection_modifyitems([item])
    assert [*marked.values()] == [["slow"], ["slow"], ["slow"], [], []]


def test_each_line_names_a_test_of_cpp() -> None:
    lines = [line for line in (ROOT / "tests" / "slow.txt").read_text().splitlines() if not line.startswith("#")]
    assert sorted(set(lines)) == lines
    sources = [path for top in ("apps", "bindings", "src", "tests") for path in (ROOT / top).rglob("*_test.cpp")]
    text = "\n".join(path.read_text() for path in [*sources, *(ROOT / "tests" / "conformance").glob("*.hpp")])
    there = {f"{suite}.{name}" for suite, name in re.findall(r"\bTEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\)", text)}
    for line in lines:
        found = re.fullmatch(r"(\w+/)?(?P<suite>\w+)\.(?P<name>\w+)(/\w+)?", line)
        assert found and f"{found['suite']}.{found['name']}" in there, line
        assert not found[1] or f"INSTANTIATE_TEST_SUITE_P({found[1][:-1]}," in text, line


def test_make_leaves_them_out_unless_told() -> None:
    """The filter that tests of C++ get: all lines of the list, none with SLOW=yes, and what the user chose instead."""
    recipe = (ROOT / "Makefile").read_text()
    filtered = re.search(r"\$\(if \$\(SLOW\),,(GTEST_FILTER=.*?) \\\n", recipe)
    assert filtered and recipe.count("GTEST_FILTER=") == 1
    said = {}
    for chosen in (None, "Box.*"):
        environment = os.environ | ({} if chosen is None else {"GTEST_FILTER": chosen})
        line = filtered[1].replace("$$", "$") + " printenv GTEST_FILTER"
        done = subprocess.run(["sh", "-c", line], cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
        said[chosen] = done.stdout.strip()
    lines = [line for line in (ROOT / "tests" / "slow.txt").read_text().splitlines() if not line.startswith("#")]
    assert said == {None: f"-{':'.join(lines)}", "Box.*": "Box.*"}


def test_only_make_test_builds_no_slow_programs() -> None:
    assert re.search(r"^option\(PENSTOCK_SLOW_TESTS .* ON\)$", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)
    assert (ROOT / "Makefile").read_text().count("-DPENSTOCK_SLOW_TESTS=$(if $(SLOW),ON,OFF)\n") == 1
    ci = ROOT / ".ci" / "run"
    assert not ci.exists() or "-DPENSTOCK_SLOW_TESTS=ON && some_tests" in ci.read_text()
