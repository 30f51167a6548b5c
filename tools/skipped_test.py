#!/usr/bin/env python3
"""That tools/skipped.py counts skips of googletest and pytest by reason, and takes no lost result for no skip."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SKIPPED = [sys.executable, str(Path(__file__).resolve().parent / "skipped.py")]
GOOGLETEST = """<testsuites><testsuite name="A"><testcase name="passes"/>
<testcase name="b"><skipped message="../../src/a_test.cpp:20&#x0A;no GPU here&#x0A;"/></testcase>
<testcase name="c"><skipped message="/x/a_test.cpp:9&#x0A;no GPU here"/></testcase>
</testsuite></testsuites>"""
PYTEST = """<testsuites><testsuite name="pytest"><testcase name="a"><skipped type="pytest.skip" message="no GPU here">x
</skipped></testcase>
<testcase name="b"><skipped message="cannot mount /tmp/pytest-of-me/x1: no"/></testcase>
<testcase name="c"><skipped message="cannot mount /tmp/pytest-of-me/x2: no"/></testcase>
<testcase name="d"><skipped message="collection skipped">
('/x/test_y.py', 7, "Skipped: no torch here")</skipped></testcase>
</testsuite></testsuites>"""


class Skipped(unittest.TestCase):
    """Each on results of its own."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_it(self, *arguments: str) -> tuple[int, list[str], str]:
        done = subprocess.run([*SKIPPED, *arguments], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout.splitlines(), done.stderr

    def test_skips_of_all_results_are_counted_by_reason(self) -> None:
        (self.folder / "gtest").mkdir()
        (self.folder / "gtest" / "a_test.xml").write_text(GOOGLETEST)
        (self.folder / "pytest.xml").write_text(PYTEST)
        code, lines, _ = self.run_it(str(self.folder))
        self.assertEqual(code, 0)
        counted = ["    3 skipped: no GPU here", "    2 skipped: cannot mount ...: no", "    1 skipped: no torch here"]
        self.assertEqual(lines, [*counted, "6 tests skipped"])

    def test_a_missing_compiler_and_a_missing_module_are_told(self) -> None:
        (self.folder / "a.xml").write_text("<testsuites/>")
        (self.folder / "CMakeCache.txt").write_text(
            "CMAKE_Fortran_COMPILER:FILEPATH=CMAKE_Fortran_COMPILER-NOTFOUND\nPENSTOCK_STATIC_CXX_RUNTIME:INTERNAL=\n"
        )
        stub = self.folder / "python"
        stub.write_text("#!/bin/sh\necho torch\n")
        stub.chmod(0o755)
        cache = str(self.folder / "CMakeCache.txt")
        _, lines, _ = self.run_it(str(self.folder / "a.xml"), "--cmake", cache, "--python", str(stub))
        self.assertIn("not tested: the Fortran module: there is no Fortran compiler here", lines)
        self.assertIn("not tested: a C++ runtime for each module: there is no static one here", lines)
        self.assertIn("not tested: what is of PyTorch: there is no torch here", lines)
        self.assertEqual(lines[-1], "0 tests skipped")

    def test_lost_results_are_an_error(self) -> None:
        self.assertEqual(self.run_it(str(self.folder))[0], 1)
        (self.folder / "a.xml").write_text("<testsuites><testcase>")
        code, _, said = self.run_it(str(self.folder))
        self.assertEqual(code, 1)
        self.assertIn("it is not known what was skipped", said)


if __name__ == "__main__":
    unittest.main()
