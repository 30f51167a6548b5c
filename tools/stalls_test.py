#!/usr/bin/env python3
"""That tools/stalls.py stops what it runs, reports what fails or hangs because of it, and passes what does not."""

import subprocess
import sys
import unittest
from pathlib import Path

STALLS = [sys.executable, str(Path(__file__).resolve().parent / "stalls.py")]
# Sleeps a millisecond a thousand times; how long the longest took decides.
SLEEPS = """
import sys, time
longest = 0
for turn in range(1000):
    began = time.monotonic()
    time.sleep(0.001)
    longest = max(longest, time.monotonic() - began)
sys.exit(longest > float(sys.argv[1]))
"""


def stalls(*arguments: str) -> tuple[int, str]:
    done = subprocess.run([*STALLS, *arguments], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


class Stalls(unittest.TestCase):
    def test_a_program_that_must_not_be_stopped_is_reported_with_its_log(self) -> None:
        command = f"{sys.executable} -c '{SLEEPS}' 0.4"
        status, said = stalls(command, "--runs", "1", "--every", "0.2", "0.3", "--stop", "0.5", "0.6")
        self.assertEqual(status, 1, said)
        self.assertIn("exit status 1, see ", said)
        self.assertTrue(Path(said.split("see ")[1].split("\n")[0]).is_file())

    def test_one_that_may_passes(self) -> None:
        command = f"{sys.executable} -c '{SLEEPS}' 100"
        self.assertEqual(stalls(command, "--runs", "2", "--every", "0.2", "0.3"), (0, "2 passed, 0 failed\n"))

    def test_one_that_hangs_is_ended(self) -> None:
        status, said = stalls("sleep 1000", "--runs", "1", "--limit", "0.3")
        self.assertEqual(status, 1, said)
        self.assertIn("sleep 1000: too long", said)

    def test_one_that_is_not_there_is_told(self) -> None:
        status, said = stalls("/nonexistent/program")
        self.assertEqual(status, 2, said)
        self.assertIn("/nonexistent/program", said)


if __name__ == "__main__":
    unittest.main()
