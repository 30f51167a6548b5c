#!/usr/bin/env python3
"""Negative controls of tools/tidy.py: each rule finds its planted violation, and lawful code passes all of them.

Each case writes a small project into a temporary folder and runs tidy.py on it as ctest does, by its command line.
"""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TIDY = Path(__file__).resolve().parent / "tidy.py"
HEAD = "// What this file is for, why it exists, and what must stay true of it.\n"
LAWFUL = {
    "src/os/CMakeLists.txt": "target_sources(x PRIVATE fd.cpp)\npenstock_test(os_test fd_test.cpp)\n",
    "src/os/fd.hpp": HEAD
    + '#pragma once\n#include "base/json.hpp"\nstruct Fd {\n    Fd() = delete;\n    int fd_;\n};\n',
    "src/os/fd.cpp": HEAD + '#include "os/fd.hpp"\n\n// free() and printf() are named here only.\n'
    'const char* text() { return "new x; delete y; std::cout"; }\n',
    "src/os/fd_test.cpp": HEAD + '#include "os/fd.hpp"\n#include <cstdio>\nint main() { printf("x"); }\n',
}


def tidy(files: dict[str, str], allow: str = "") -> tuple[int, str]:
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        exceptions = Path(folder) / "build" / "allow.txt"
        exceptions.parent.mkdir()
        exceptions.write_text(allow, encoding="utf-8")
        command = [sys.executable, str(TIDY), "--root", folder, "--allow", str(exceptions)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout


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

    def test_an_upward_include_is_found(self):
        self.in_source("layer", '#include "engine/engine.hpp"\n', 2)
        self.in_source("layer", '#include "penstock/context.hpp"\n', 2)
        self.finds("layer", "bindings/c/more.cpp", HEAD + '#include "engine/engine.hpp"\n')
        self.finds("layer", "src/load/more.cpp", HEAD + '#include "context/state.hpp"\n')
        self.finds("layer", "src/policy/more.cpp", HEAD + '#include "os/fd.hpp"\n')

    def test_a_long_line_a_long_file_and_a_long_function_are_found(self):
        self.in_source("columns", "int " + "x" * 120 + ";\n", 2)
        self.in_source("file-lines", "\n" * 420)
        self.in_source("function-lines", "int f(int a) {\n" + "    a += 1;\n" * 69 + "    return a;\n}\n", 2)
        body = "Thing::Thing(int a)\n    : a_{a}, b_(a) {\n" + "    if (a) {\n    }\n" * 36 + "}\n"
        self.in_source("function-lines", body, 2)

    def test_python_that_cannot_be_read_is_found(self):
        self.finds("syntax", "tools/more.py", '"""What this is for, and what must stay true."""\ndef (:\n', 2)

    def test_a_function_of_seventy_lines_passes(self):
        body = HEAD + "int fd(int a) {\n" + "    a += 1;\n" * 67 + "    return a;\n}\n"
        self.assertEqual(tidy(LAWFUL | {"src/os/fd.cpp": body}), (0, ""))

    def test_too_many_parameters_are_found_in_definitions_and_declarations(self):
        six = "int a, std::map<int, int> b, int c, int d, int e, int f = g(1, 2)"
        self.in_source("parameters", f"int more({six}) {{ return a; }}\n", 2)
        self.in_source("parameters", f"struct S {{\n    virtual int more({six}) const noexcept = 0;\n}};\n", 3)
        self.in_source("parameters", f"auto more({six}) -> std::pair<int, int>;\n", 2)

    def test_a_file_without_a_head_is_found(self):
        self.finds("head", "src/os/more.cpp", "#include <cstdio>\n", 1)
        self.finds("head", "src/os/more.cpp", "// See more.hpp.\nint x();\n", 1)
        self.finds("head", "tools/more.py", "import sys\n", 1)

    def test_banned_calls_are_found(self):
        self.in_source("print", 'void f() { printf("x"); }\n', 2)
        self.in_source("print", "void f() { std::cerr << 1; }\n", 2)
        self.in_source("exit", "void f() { std::abort(); }\n", 2)
        self.in_source("getenv", 'const char* f() { return std::getenv("X"); }\n', 2)
        self.in_source("cuda", "int f() { return cudaMalloc(nullptr, 1); }\n", 2)
        self.in_source("cuda", "int f() { return cuFileDriverOpen(); }\n", 2)
        self.in_source("raw-memory", "int* f() { return new int(3); }\n", 2)
        self.in_source("raw-memory", "void f(int* x) { delete x; }\n", 2)
        self.in_source("raw-memory", "void* f() { return malloc(3); }\n", 2)
        self.in_source("using-namespace", "using namespace std;\n", 2)

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
        self.finds("blob", "docs/large.md", "x" * 400_001)

    def test_a_source_that_nothing_builds_or_tests_is_found(self):
        output = tidy(LAWFUL | {"src/os/more.cpp": HEAD})[1]
        self.assertIn("src/os/more.cpp:1: unlisted", output)
        self.assertIn("src/os/more.cpp:1: untested", output)

    def test_an_exception_covers_its_rule_and_file_only_and_must_be_needed(self):
        planted = LAWFUL | {"src/os/fd.cpp": HEAD + "int* fd() { return new int(3); }\n"}
        self.assertEqual(tidy(planted, "raw-memory | src/os/fd.cpp | placed by hand\n"), (0, ""))
        self.assertEqual(tidy(planted, "raw-memory | src/os/*.cpp | placed by hand\n"), (0, ""))
        self.assertEqual(tidy(planted, "print | src/os/fd.cpp | wrong rule\n")[0], 1)
        self.assertEqual(tidy(planted, "raw-memory | src/os/fd.cpp |\n")[0], 1)
        self.assertIn("nothing needs it", tidy(LAWFUL, "print | src/os/fd.cpp | no longer true\n")[1])


if __name__ == "__main__":
    unittest.main()
