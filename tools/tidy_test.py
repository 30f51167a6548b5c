#!/usr/bin/env python3
"""Negative controls of tools/tidy.py: each rule finds its planted violation, and lawful code passes all of them.

Each case writes a small project into a temporary folder and runs tidy.py on it with the arguments of a command line:
one in a process of its own, as ctest does, the others in this one.
"""

import contextlib
import io
import json
import re
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

import census
import tidy as law

TOOLS = Path(__file__).resolve().parent
HEAD = "// What this file is for, why it exists, and what must stay true of it.\n"
PYTHON = '"""What this module is for, and what must stay true of it."""\n'
LAWFUL = {
    "src/os/CMakeLists.txt": "target_sources(x PRIVATE fd.cpp)\npenstock_test(os_test fd_test.cpp)\n",
    "src/os/fd.hpp": HEAD
    + '#pragma once\n#include "base/json.hpp"\nstruct Fd {\n    Fd() = delete;\n    int fd_;\n};\n',
    "src/os/fd.cpp": HEAD + '#include "os/fd.hpp"\n\n// free() and printf() are named here only.\n'
    'const char* text() { return "new x; delete y; std::cout"; }\n',
    "src/os/fd_test.cpp": HEAD + '#include "os/fd.hpp"\n#include <cstdio>\nint main() { printf("x"); }\n',
    "src/base/json.hpp": HEAD + "#pragma once\nclass Json {};\n",
    "src/context/state.hpp": HEAD + "#pragma once\nclass State {};\n",
    "src/engine/engine.hpp": HEAD + "#pragma once\nclass Engine {};\n",
    "include/penstock/context.hpp": HEAD + "#pragma once\nclass Context {};\n",
    "apps/solver/solve.hpp": HEAD + "#pragma once\nclass Solver {};\n",
    "python/penstock/__init__.py": PYTHON + "from . import _api\n",
    "python/penstock/_api.py": PYTHON,
    "python/penstock/cli/__init__.py": PYTHON + "import penstock\n",
}


@contextlib.contextmanager
def written(files: dict[str, str]) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        yield folder


def run(tool: ModuleType, *arguments: str) -> tuple[int, str]:
    said = io.StringIO()
    argv = patch.object(sys, "argv", [tool.__name__, *arguments])
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()), argv:
        return tool.main(), said.getvalue()


def tidy(files: dict[str, str], allow: str = "") -> tuple[int, str]:
    with written(files | {"build/allow.txt": allow}) as folder:
        return run(law, "--root", folder, "--allow", f"{folder}/build/allow.txt")


class Tidy(unittest.TestCase):
    def finds(self, rule: str, path: str, text: str, line: int | None = None) -> None:
        """A violation in one more file is found under its rule, and nothing else is."""
        code, output = tidy(LAWFUL | {path: text})
        self.assertEqual(code, 1, output)
        where = f"{path}:{line}" if line else path
        self.assertTrue(any(o.startswith(where) and f" {rule}: " in o for o in output.splitlines()), output)
        others = [o for o in output.splitlines() if f" {rule}: " not in o and ": untested:" not in o]
        self.assertEqual([o for o in others if ": unlisted:" not in o], [])

    def in_source(self, rule: str, code: str, line: int | None = None) -> None:
        self.finds(rule, "src/os/more.cpp", HEAD + code, line)

    def test_lawful_code_passes(self):
        self.assertEqual(tidy(LAWFUL), (0, ""))

    def test_the_command_tells_of_a_violation_and_fails(self):
        for more, code in ({}, 0), ({"docs/more.md": "see /" + "home/me/notes\n"}, 1):
            with written(LAWFUL | more | {"build/allow.txt": ""}) as folder:
                allow = ["--root", folder, "--allow", f"{folder}/build/allow.txt"]
                done = subprocess.run([sys.executable, str(TOOLS / "tidy.py"), *allow], capture_output=True, text=True)
                self.assertEqual((done.returncode, "developer-path" in done.stdout), (code, bool(code)), done.stderr)

    def test_an_upward_include_is_found(self):
        self.in_source("layer", '#include "engine/engine.hpp"\n', 2)
        self.in_source("layer", '#include "penstock/context.hpp"\n', 2)
        self.finds("layer", "bindings/c/more.cpp", HEAD + '#include "engine/engine.hpp"\n')
        self.finds("layer", "src/load/more.cpp", HEAD + '#include "context/state.hpp"\n')
        self.finds("layer", "src/policy/more.cpp", HEAD + '#include "os/fd.hpp"\n')
        self.finds("layer", "include/penstock/more.hpp", HEAD + '#include "base/json.hpp"\n')
        self.finds("layer", "include/penstock/types.hpp", HEAD + '#include "penstock/context.hpp"\n')

    def test_nothing_includes_an_application_nor_a_file_that_is_not_there(self):
        for path in ("src/context/more.hpp", "bindings/python/more.hpp", "include/penstock/more.hpp"):
            self.finds("layer", path, HEAD + '#include "solver/solve.hpp"\n', 2)
        self.finds("layer", "apps/solver/more.hpp", HEAD + '#include "python/binding.hpp"\n', 2)
        self.in_source("layer", '#include "nowhere/at_all.hpp"\n', 2)

    def test_the_python_module_of_an_application_includes_what_all_modules_contain_and_no_more(self):
        shared = {f"bindings/python/{place}.hpp": HEAD + "#pragma once\n" for place in ("shared/gil", "core/core")}
        for path, header, allowed in (
            ("apps/solver/python/more.cpp", "shared/gil", True),
            ("apps/solver/python/more.cpp", "core/core", False),
            ("apps/solver/more.cpp", "shared/gil", False),
        ):
            more = {path: HEAD + f'#include "python/{header}.hpp"\n'}
            said = f"{path.rpartition('/')[0]} may not include bindings/python/{header}.hpp"
            self.assertEqual(said in tidy(LAWFUL | shared | more)[1], not allowed)

    def test_a_private_name_in_a_public_header_and_a_test_in_the_library_are_found(self):
        self.finds("private-name", "include/penstock/more.hpp", HEAD + "namespace penstock::os {\nclass Fd;\n}\n", 2)
        for line in (
            "os::Fd* more();",
            "struct path::X;",
            "class path::X;",
            "namespace penstock::path { class CuFile; }",
            "std::shared_ptr<path::CuFile> more();",
        ):
            self.finds("private-name", "include/penstock/more.hpp", HEAD + line + "\n", 2)
        public = HEAD + "std::filesystem::path::string_type more(std::filesystem::path path);\n"
        self.assertEqual(tidy(LAWFUL | {"include/penstock/more.hpp": public}), (0, ""))
        listing = "target_sources(penstock_objects PRIVATE\n  ${PROJECT_SOURCE_DIR}/tests/support/fake.cpp)\n"
        self.finds("test-in-library", "src/base/CMakeLists.txt", listing, 1)

    def test_python_that_imports_upward_or_in_a_circle_is_found(self):
        self.finds("python-layer", "python/penstock/_evidence.py", PYTHON + "from .cli import show\n", 2)
        inside = "def f():\n    from . import cli\n    return cli\n"
        self.finds("python-layer", "python/penstock/_evidence.py", PYTHON + inside, 3)
        self.finds("python-layer", "python/penstock/strange/__init__.py", PYTHON)
        circle = LAWFUL | {
            "python/penstock/formats/raw.py": PYTHON + "from . import npy\n",
            "python/penstock/formats/npy.py": PYTHON + "if TYPE_CHECKING:\n    from .raw import Raw\n",
        }
        self.assertIn("circle: imports in a circle: penstock.formats.npy, penstock.formats.raw", tidy(circle)[1])

    def test_files_that_include_each_other_are_found(self):
        circle = {
            "include/penstock/ondevice/more.hpp": HEAD + '#include "penstock/ondevice/part.hpp"\n',
            "include/penstock/ondevice/part.hpp": HEAD + "#include <penstock/ondevice/other.hpp>\n",
            "include/penstock/ondevice/other.hpp": HEAD + '#include "part.hpp"\n',
        }
        both = "include/penstock/ondevice/other.hpp, include/penstock/ondevice/part.hpp"
        said = f"include/penstock/ondevice/other.hpp:1: circle: includes in a circle: {both}\n"
        self.assertEqual(tidy(LAWFUL | circle), (1, said))
        rigs = {f"tests/{one}_rig.hpp": HEAD + f'#include "{two}_rig.hpp"\n' for one, two in ("ab", "bc", "ca")}
        self.assertIn("tests/a_rig.hpp, tests/b_rig.hpp, tests/c_rig.hpp", tidy(LAWFUL | rigs)[1])

    def test_no_way_to_write_an_include_escapes_the_law(self):
        for name in ('"../../apps/solver/solve.hpp"', "<../apps/solver/solve.hpp>", "SOLVER"):
            self.finds("layer", "src/os/more.hpp", HEAD + f"#include {name}\n", 2)
        self.finds("layer", "bindings/c/more.hpp", HEAD + '#include /* a word */ "solver/solve.hpp"\n', 2)

    def test_an_import_by_a_text_points_downward_too(self):
        measuring = {"python/penstock_bench/__init__.py": PYTHON}
        for call in (
            'importlib.import_module("penstock_bench.engine")',
            '__import__("penstock_bench")',
            'import_module(f"penstock_bench.{x}")',
        ):
            output = tidy(LAWFUL | measuring | {"python/penstock/_api.py": PYTHON + f"y = {call}\n"})[1]
            self.assertIn("python/penstock/_api.py:2: python-layer: api may not import penstock_bench", output, call)
        down = {"python/penstock_bench/__init__.py": PYTHON + 'y = import_module(f"penstock.{x}")\n'}
        self.assertEqual(tidy(LAWFUL | down), (0, ""))

    def test_a_full_folder_and_a_prefix_that_is_a_folder_are_found(self):
        many = {f"docs/page{'abcdefghijklmnopqrstu'[i]}.md": "words\n" for i in range(21)}
        self.assertEqual(tidy(LAWFUL | dict(list(many.items())[:20])), (0, ""))
        self.assertIn("docs:1: folder-files: 21 files", tidy(LAWFUL | many)[1])
        same = {f"src/os/ring_{word}.hpp": HEAD for word in ("one", "two", "three", "four")}
        self.assertEqual(tidy(LAWFUL | dict(list(same.items())[:3])), (0, ""))
        self.assertIn("src/os/ring:1: prefix: 4 ideas begin with ring_", tidy(LAWFUL | same)[1])

    def test_a_file_that_a_program_left_at_the_top_is_found(self):
        self.finds("top", "raw.bin", "x\n")
        for name in ("Makefile", ".gitignore", "CHANGELOG.md", "CMakePresets.json", "docs/raw.bin"):
            self.assertEqual(tidy(LAWFUL | {name: "x\n"}), (0, ""), name)

    def test_a_decision_without_a_number_twice_numbered_or_long_is_found(self):
        self.finds("decision", "docs/decisions/workers-share.md", "# Workers share\n")
        self.finds("decision", "docs/decisions/0001-long.md", "line\n" * 41)
        two = {"docs/decisions/0001-a.md": "# a\n", "docs/decisions/0001-b.md": "# b\n"}
        self.assertIn("0001-b.md:1: decision:", tidy(LAWFUL | two)[1])
        index = {"docs/decisions/README.md": "[a](0001-a.md)\n", "docs/decisions/0002-b.md": "# b\n"}
        self.assertIn("0002-b.md:1: decision:", tidy(LAWFUL | index)[1])
        self.assertNotIn("README.md:1: decision", tidy(LAWFUL | index)[1])

    def test_a_link_to_a_page_that_is_not_there_is_found(self):
        linked = {"docs/a.md": "See [b](more/b.md#words), [c](https://c.org/c.md).\n"}
        linked["docs/more/b.md"] = "[a](../a.md)\n"
        self.assertEqual(tidy(LAWFUL | linked), (0, ""))
        self.finds("link", "docs/d.md", "[gone](more/gone.md)\n")

    def test_a_type_and_a_constant_of_two_files_are_found(self):
        again = HEAD + "namespace a {\nstruct Fd final : Base {\n    int x;\n};\n}\n"
        self.assertIn("penstock/Fd:4: type-twice:", tidy(LAWFUL | {"src/os/more.hpp": again})[1])
        twice = LAWFUL | {
            "python/penstock/_evidence.py": PYTHON + "class Part:\n    pass\n",
            "python/penstock/_error.py": PYTHON + "class Part:\n    pass\n",
        }
        self.assertIn("python/Part:2: type-twice:", tidy(twice)[1])
        solver = {f"apps/solver/{i}.hpp": HEAD + "#pragma once\nstruct Sum {\n    int x;\n};\n" for i in "ab"}
        self.assertIn("solver/Sum:3: type-twice:", tidy(LAWFUL | solver)[1])
        constants = {f"src/os/fd{i}.hpp": HEAD + "constexpr int kMost = 3;\n" for i in "ab"}
        self.assertIn("src/os/fda.hpp#kMost:2: constant-twice:", tidy(LAWFUL | constants)[1])

    def test_a_type_of_two_tests_of_a_folder_is_found(self):
        tests = {f"tests/os/{i}/fd_test.cpp": HEAD + "namespace {\nstruct Outcome {\n    int x;\n};\n}\n" for i in "ab"}
        self.assertIn("tests/os/b/fd_test.cpp:3: test-type-twice:", tidy(LAWFUL | tests)[1])
        apart = {path.replace("os/b", "fs/b"): text for path, text in tests.items()}
        self.assertNotIn("test-type-twice", tidy(LAWFUL | apart)[1])

    def test_a_noun_without_its_line_in_the_glossary_is_found(self):
        page = {"docs/GLOSSARY.md": "# Glossary\n\n- **Context**: what a program opens files with.\n"}
        self.assertEqual(tidy(LAWFUL | page), (0, ""))
        plan = {"include/penstock/plan.hpp": HEAD + "struct Plan {\n  struct In {};\n};\n"}
        code, output = tidy(LAWFUL | page | plan)
        self.assertEqual((code, output.count("\n")), (1, 1), output)
        self.assertIn("include/penstock/plan.hpp:2: glossary: 'Plan' has no line", output)
        gone = {"docs/GLOSSARY.md": page["docs/GLOSSARY.md"] + "- **Plan**: no such type.\n"}
        self.assertIn("docs/GLOSSARY.md:4: glossary: 'Plan' is a type that", tidy(LAWFUL | gone)[1])

    def test_a_style_page_that_tells_other_numbers_is_found(self):
        self.finds("style", "docs/STYLE.md", "Files are at most 900 lines.\n")

    def test_a_sentence_without_an_actor_is_found(self):
        self.in_source("words", "// Takes the lock. Who waits, gets it.\n", 2)
        self.in_source("words", "// It is what nobody asked for.\n", 2)
        self.finds("words", "docs/more.md", "The lane is let go\nwhen somebody asks.\n", 2)
        self.finds("words", "python/penstock/_evidence.py", PYTHON + "x = 1  # The same of rows.\n", 2)
        for path in ("Makefile", "cmake/More.cmake", "src/os/more/CMakeLists.txt", "tools/more.sh"):
            self.finds("words", path, "# What this is for, and why.\nset(x)  # Takes part. Who waits, gets it.\n", 2)
        said = PYTHON + 'def f(x: int) -> str:\n    return f"{x}: code that somebody wrote"\n'
        self.finds("words", "python/penstock/_evidence.py", said, 3)
        self.in_source("words", 'const char* why = "a folder in which nobody renames";\n', 2)
        prose = "// Whoever holds the lock says who the caller is.\n"
        self.assertEqual(tidy(LAWFUL | {"src/os/fd.hpp": LAWFUL["src/os/fd.hpp"] + prose}), (0, ""))

    def test_a_long_line_a_long_file_and_a_long_function_are_found(self):
        self.in_source("columns", "int " + "x" * 120 + ";\n", 2)
        self.in_source("file-lines", "\n" * 420)
        self.finds("file-lines", "README.md", "words\n" * 131)
        self.assertEqual(tidy(LAWFUL | {"README.md": "words\n" * 130}), (0, ""))
        account = "// The account.\n// 1. A worker asks.\n// 2. It waits.\n// 3. It goes on.\n" + HEAD
        self.assertEqual(tidy(LAWFUL | {"src/os/fd.hpp": account + "\n" * 500}), (0, ""))
        self.finds("file-lines", "src/os/more.hpp", account + "\n" * 600)
        self.in_source("function-lines", "int f(int a) {\n" + "    a += 1;\n" * 69 + "    return a;\n}\n", 2)
        body = "Thing::Thing(int a)\n    : a_{a}, b_(a) {\n" + "    if (a) {\n    }\n" * 36 + "}\n"
        self.in_source("function-lines", body, 2)
        self.finds("function-lines", "tools/more.py", PYTHON + "def f():\n" + "    print()\n" * 70, 2)
        self.assertEqual(tidy(LAWFUL | {"tools/more.py": PYTHON + "def f():\n" + "    print()\n" * 69}), (0, ""))

    def test_python_that_cannot_be_read_is_found(self):
        self.finds("syntax", "tools/more.py", '"""What this is for, and what must stay true."""\ndef (:\n', 2)

    def test_a_function_of_seventy_lines_passes(self):
        body = HEAD + "int fd(int a) {\n" + "    a += 1;\n" * 67 + "    return a;\n}\n"
        self.assertEqual(tidy(LAWFUL | {"src/os/fd.cpp": body}), (0, ""))

    def test_too_many_parameters_are_found_in_definitions_and_declarations(self):
        five = "int a, std::map<int, int> b, int c, int d, int e = g(1, 2)"
        self.in_source("parameters", f"int more({five}) {{ return a; }}\n", 2)
        self.in_source("parameters", f"struct S {{\n    virtual int more({five}) const noexcept = 0;\n}};\n", 3)
        self.in_source("parameters", f"auto more({five}) -> std::pair<int, int>;\n", 2)

    def test_a_file_without_a_head_is_found(self):
        self.finds("head", "src/os/more.cpp", "#include <cstdio>\n", 1)
        self.finds("head", "src/os/more.cpp", "// See more.hpp.\nint x();\n", 1)
        self.finds("head", "tools/more.py", "import sys\n", 1)

    def test_banned_calls_are_found(self):
        self.in_source("print", 'void f() { printf("x"); }\n', 2)
        self.in_source("print", "void f() { std::cerr << 1; }\n", 2)
        self.in_source("exit", "void f() { std::abort(); }\n", 2)
        self.in_source("getenv", 'const char* f() { return std::getenv("X"); }\n', 2)
        self.in_source("raw-memory", "int* f() { return new int(3); }\n", 2)
        self.in_source("raw-memory", "void f(int* x) { delete x; }\n", 2)
        self.in_source("raw-memory", "void* f() { return malloc(3); }\n", 2)
        self.finds("raw-memory", "bindings/python/core/more.cpp", HEAD + "int* f() { return new int(3); }\n", 2)
        self.finds("raw-memory", "bindings/python/core/more.cpp", HEAD + "void f(int* x) { delete[] x; }\n", 2)
        self.in_source("using-namespace", "using namespace std;\n", 2)

    def test_cuda_is_named_by_the_device_and_by_files_that_say_so_only(self):
        code = HEAD + "#include <cuda_runtime_api.h>\ncudaError_t f(cudaStream_t);\n"
        for path in ("src/os/more.cpp", "src/path/cufile/more.cpp", "include/penstock/more.hpp", "bindings/c/more.cpp"):
            self.finds("cuda", path, code, 2)
            self.finds("cuda", path, HEAD + "int f() { return cuInit(0); }\n", 2)
            self.finds("cuda", path, HEAD + "int f(CUdeviceptr) { return 0; }\n", 2)
        for path in ("src/device/cuda/more.hpp", "src/a/more_cuda.cpp", "src/a/more_kernels.hpp", "src/a/more.cu"):
            self.assertNotIn(": cuda: ", tidy(LAWFUL | {path: code})[1])
        for path in ("src/os/more.cpp", "src/device/cuda/more.cpp", "src/path/more_cuda.cpp"):
            self.finds("cuda", path, HEAD + "int f() { return cuFileDriverOpen(); }\n", 2)
        owner = {"src/path/cufile/more.cpp": HEAD + "#include <cufile.h>\nint f() { return cuFileDriverOpen(); }\n"}
        self.assertNotIn(": cuda: ", tidy(LAWFUL | owner)[1])

    def test_the_interpreters_lock_taken_or_left_by_hand_is_found(self):
        for call in ("nb::gil_scoped_release left", "nb::gil_scoped_acquire held", "PyEval_SaveThread()"):
            for path in ("bindings/python/core/more.cpp", "apps/solver/python/more.cpp"):
                self.finds("gil", path, HEAD + f"void f() {{ {call}; }}\n", 2)
        owner = {"bindings/python/shared/gil.hpp": HEAD + "nb::gil_scoped_release left;\n"}
        self.assertEqual(tidy(LAWFUL | owner), (0, ""))

    def test_mutable_state_outside_objects_is_found(self):
        self.in_source("mutable-static", "static int counter = 0;\n", 2)
        self.in_source("mutable-static", "int f() {\n    static std::mutex guard;\n    return 1;\n}\n", 3)

    def test_leftovers_are_found(self):
        self.in_source("leftover", "// TO" + "DO later: nothing\n", 2)
        self.in_source("dead-code", "int f();\n//    return f();\n".replace("//    ", "// "), 3)
        self.in_source("dead-code", "// if (x == 3) {\n", 2)
        self.in_source("dead-code", "//std::vector<int> values;\n", 2)

    def test_prose_and_examples_in_comments_pass(self):
        prose = "\n// Returns early; the caller waits (see above).\n//     auto file = context.open(name);\n// a = b\n"
        self.assertEqual(tidy(LAWFUL | {"src/os/fd.hpp": LAWFUL["src/os/fd.hpp"] + prose}), (0, ""))

    def test_vague_names_are_found(self):
        for name in ("fd_utils", "common", "file_manager", "helper_functions"):
            self.finds("vague-name", f"src/os/{name}.hpp", HEAD)

    def test_a_path_of_a_developers_machine_is_found(self):
        self.finds("developer-path", "docs/more.md", "see /" + "home/me/notes\n", 1)
        self.finds("developer-path", "tools/more.toml", 'x = "/' + 'root/x"\n', 1)

    def test_a_large_file_is_found(self):
        self.finds("blob", "docs/large.md", "x" * 100_001)

    def test_a_source_that_nothing_builds_or_tests_is_found(self):
        output = tidy(LAWFUL | {"src/os/more.cpp": HEAD})[1]
        self.assertIn("src/os/more.cpp:1: unlisted", output)
        self.assertIn("src/os/more.cpp:1: untested", output)

    def test_a_folder_of_a_layer_is_tested_beside_the_source_or_above_and_not_by_another_folder(self):
        source = {"src/os/file/more.cpp": HEAD, "src/os/file/CMakeLists.txt": "target_sources(x PRIVATE more.cpp)\n"}
        test = HEAD + '#include "os/file/more.hpp"\n'
        listed = "target_sources(x PRIVATE fd.cpp)\npenstock_test(os_test fd_test.cpp more_test.cpp)\n"
        above = {"src/os/more_test.cpp": test, "src/os/CMakeLists.txt": listed}
        self.assertEqual(tidy(LAWFUL | source | above), (0, ""))
        self.finds("untested", "src/os/file/more.cpp", HEAD)
        other = {"src/os/disk/more_test.cpp": test, "src/base/more_test.cpp": test}
        self.assertIn("src/os/file/more.cpp:1: untested", tidy(LAWFUL | source | other)[1])

    def test_an_exception_covers_its_rule_and_file_only_and_must_be_needed(self):
        planted = LAWFUL | {"src/os/fd.cpp": HEAD + "int* fd() { return new int(3); }\n"}
        self.assertEqual(tidy(planted, "raw-memory | src/os/fd.cpp | placed by hand\n"), (0, ""))
        self.assertEqual(tidy(planted, "raw-memory | src/os/*.cpp | placed by hand\n"), (0, ""))
        self.assertEqual(tidy(planted, "print | src/os/fd.cpp | wrong rule\n")[0], 1)
        self.assertEqual(tidy(planted, "raw-memory | src/os/fd.cpp |\n")[0], 1)
        self.assertIn("nothing needs it", tidy(LAWFUL, "print | src/os/fd.cpp | no longer true\n")[1])

    def test_the_page_of_what_was_left_tells_what_the_census_counts(self):
        """Within a tenth: each new type would have to be told there otherwise."""
        (page,) = (TOOLS.parent / "docs" / "decisions").glob("0067-*.md")
        counts = json.loads(run(census, "--root", str(TOOLS.parent), "--json")[1])
        rows = dict(re.findall(r"^\| ([^|]+) \|.*\| ([^|]+) \|$", page.read_text(), re.M))
        told = {row: [int(number) for number in re.findall(r"\d+", now.replace(",", ""))] for row, now in rows.items()}
        folders = "circles of C++'s folders"
        for row, keys in {
            "names of two types": ["names of two types"],
            "circles of Python's imports; of C++'s includes; of C++'s folders": ["circles of Python", "", folders],
            "types on a read, C++": ["types on a read, C++"],
            "types on a read, Python": ["types on a read, Python", "modules on a read, Python"],
            "types": ["types"],
            "places to touch for a path; a format; a suite": [f"places of {one}" for one in census.PLACES],
        }.items():
            for key, number in zip(keys, told[row], strict=True):
                if key:
                    self.assertLessEqual(abs(number - counts[key]), counts[key] / 10, f"{row}: {key} is {counts[key]}")

    def test_the_census_counts_what_is_there(self):
        files = LAWFUL | {"python/penstock/_evidence.py": PYTHON + "from . import cli\nclass Part:\n    pass\n"}
        files["python/penstock/cli/show.py"] = PYTHON + "class Part:\n    pass\n"
        with written(files) as folder:
            counts = json.loads(run(census, "--root", folder, "--json")[1])
        self.assertEqual((counts["types in python"], counts["names of two types"]), (2, 1))
        self.assertEqual((counts["types in penstock"], counts["imports upward in Python"]), (5, 1))


if __name__ == "__main__":
    unittest.main()
