#!/usr/bin/env python3
"""That tools/mutate.py counts what a test notices, tells what none does, and takes no broken entry for either."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

MUTATE = [sys.executable, str(Path(__file__).resolve().parent / "mutate.py")]
SUM = "def add(a, b):\n    return a + b\n"
TEST = "import sum, sys; sys.exit(sum.add(2, 2) != 4)"
ENTRY = {"name": "sum-of-nothing", "file": "python/sum.py", "find": "a + b", "put": "a - b"}


class Tree:
    """A tree of one module, with the entries of a list."""

    def __init__(self, folder: str, *entries: dict[str, str]) -> None:
        self.root = Path(folder)
        (self.root / "python").mkdir()
        (self.root / "tools/mutations").mkdir(parents=True)
        self.module = self.root / "python/sum.py"
        self.module.write_text(SUM)
        lines = []
        for entry in entries:
            whole = {**ENTRY, "test": f'python -c "{TEST}"', **entry}
            lines += ["[[mutation]]", *(f"{key} = {json.dumps(value)}" for key, value in whole.items())]
        (self.root / "tools/mutations/area.toml").write_text("\n".join(lines))
        subprocess.run(["git", "-C", folder, "init", "-q"], check=True)

    def run(self, *arguments: str) -> tuple[int, str]:
        done = subprocess.run(
            [*MUTATE, "--tree", str(self.root), *arguments], capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout + done.stderr


class Mutate(unittest.TestCase):
    """Each on a tree of its own."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_one(self, *entries: dict[str, str]) -> tuple[int, list[str]]:
        tree = Tree(self.folder, *entries)
        status, said = tree.run()
        self.assertEqual(tree.module.read_text(), SUM, "the tree itself was changed")
        return status, said.splitlines()

    def test_what_a_test_notices_is_killed(self) -> None:
        status, said = self.run_one({})
        self.assertEqual((status, said[-1]), (0, "1 passed, 0 failed"), said)

    def test_what_no_test_notices_is_told(self) -> None:
        status, said = self.run_one({}, {"name": "order", "put": "b + a"})
        self.assertEqual((status, said[-1]), (1, "1 passed, 1 failed"), said)
        self.assertTrue(any(line.startswith("SURVIVED order") for line in said), said)

    def test_a_mutation_does_not_outlive_its_turn(self) -> None:
        entries = [{"name": f"turn-{number}", "put": f"a - b - {number}"} for number in range(6)]
        status, said = self.run_one(*entries, {"name": "none", "put": "b + a"})
        self.assertEqual((status, said[-1]), (1, "6 passed, 1 failed"), said)

    def test_a_text_that_is_not_there_once_is_a_failure(self) -> None:
        status, said = self.run_one({"find": "a * b"}, {"name": "twice", "find": "b"})
        self.assertEqual((status, said[-1]), (1, "0 passed, 2 failed"), said)
        status, listed = subprocess.getstatusoutput(f"{' '.join(MUTATE)} --list --tree {self.folder}")
        self.assertEqual((status, listed.count("WRONG")), (1, 2), listed)

    def test_a_test_that_fails_anyway_kills_nothing(self) -> None:
        status, said = self.run_one({"test": "false"})
        self.assertEqual((status, said[-1]), (1, "0 passed, 1 failed"), said)

    def test_what_is_no_python_kills_nothing(self) -> None:
        status, said = self.run_one({"put": "a +"})
        self.assertEqual((status, said[-1]), (1, "0 passed, 1 failed"), said)

    def test_a_test_that_hangs_under_the_mutation_has_failed(self) -> None:
        loop = "import sum; exec('while sum.add(2, 2) != 4: pass')"
        limit = "import resource; resource.setrlimit(resource.RLIMIT_CPU, (1, 1)); "
        status, said = self.run_one({"test": f'python -c "{limit}{loop}"'})
        self.assertEqual((status, said[-1]), (0, "1 passed, 0 failed"), said)

    def test_tests_that_are_skipped_prove_nothing(self) -> None:
        status, said = self.run_one({"test": "echo '1 skipped in 0.01s'"})
        self.assertEqual((status, said[-1]), (0, "0 passed, 0 failed, 1 skipped"), said)

    def test_time_that_is_over_is_told(self) -> None:
        tree = Tree(self.folder, {})
        status, said = tree.run("--seconds", "0")
        self.assertEqual((status, said.splitlines()[-2]), (1, "0 passed, 0 failed, 1 skipped"), said)
        self.assertIn("no mutation was tried", said)

    def test_time_that_is_short_is_spent_on_mutations_not_on_all_their_tests_first(self) -> None:
        slow = "import time; time.sleep(0.5); import sum; assert sum.add(2, 2) == 4"
        entries = [{"name": f"slow-{number}", "test": f'python -c "{slow}  # {number}"'} for number in range(12)]
        status, said = Tree(self.folder, *entries).run("--seconds", "3", "--jobs", "1")
        self.assertEqual(status, 0, said)
        self.assertRegex(said.splitlines()[-1], r"^[1-9] passed, 0 failed, \d+ skipped$")


if __name__ == "__main__":
    unittest.main()
