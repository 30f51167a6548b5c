#!/usr/bin/env python3
"""tools/alone.py passes a source that includes what it uses, and fails one that does not."""

import json
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parent / "alone.py"
COMPILER = shutil.which("c++") or shutil.which("g++")
WHOLE = "#include <vector>\nstd::vector<int> numbers;\n"
LACKS = "std::vector<int> numbers;\n"


@unittest.skipIf(COMPILER is None, "no C++ compiler")
class Alone(unittest.TestCase):
    def run_on(self, sources: dict[str, str], *options: str) -> "subprocess.CompletedProcess[str]":
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            entries = []
            for file, text in sources.items():
                path = folder / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
                command = f"{COMPILER} -o {path.name}.o -c {path}"
                entries.append({"directory": name, "command": command, "file": str(path)})
            commands = folder / "compile_commands.json"
            commands.write_text(json.dumps(entries))
            return subprocess.run([sys.executable, TOOL, commands, *options], capture_output=True, text=True)

    def test_a_source_that_includes_what_it_uses_passes(self) -> None:
        ran = self.run_on({"a.cpp": WHOLE, "b.cpp": WHOLE, "kernel.cu": LACKS})
        self.assertEqual((ran.returncode, ran.stdout.splitlines()[-1]), (0, "2 passed, 0 failed"), ran.stdout)

    def test_a_missing_include_is_told_with_its_source(self) -> None:
        ran = self.run_on({"a.cpp": WHOLE, "b.cpp": LACKS})
        self.assertEqual((ran.returncode, ran.stdout.splitlines()[-1]), (1, "1 passed, 1 failed"), ran.stdout)
        self.assertIn("b.cpp alone: ", ran.stdout)

    def test_groups_no_sources_and_no_time_are_errors(self) -> None:
        self.assertIn("in groups", self.run_on({"Unity/unity_0.cpp": WHOLE}).stderr)
        self.assertEqual(self.run_on({"kernel.cu": LACKS}).returncode, 2)
        self.assertEqual(self.run_on({"a.cpp": WHOLE}, "--seconds=-1").returncode, 1)


if __name__ == "__main__":
    unittest.main()
