#!/usr/bin/env python3
"""Compiles sources by themselves, without code: each must include what it uses. Builds whose sources are in groups do
not notice what is missing.

    tools/alone.py build/ci-cuda/compile_commands.json --seconds 60

Sources are taken at random, those of one run other than those of the next, until the time is up; one a core at a time.
The last line is "N passed, N failed".
"""

import argparse
import json
import os
import random
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("commands", type=Path, help="compile_commands.json of a build without groups")
    options.add_argument("--seconds", type=float, default=60)
    options.add_argument("--seed", type=int, help="another order; without it one of the time")
    given = options.parse_args()
    entries = [one for one in json.loads(given.commands.read_text()) if one["file"].endswith(".cpp")]
    if not entries:
        print(f"{given.commands}: no source of C++ is named", file=sys.stderr)
        return 2
    if any("/Unity/" in one["file"] for one in entries):
        print(f"{given.commands}: its sources are in groups", file=sys.stderr)
        return 2
    random.Random(time.time_ns() if given.seed is None else given.seed).shuffle(entries)
    ends = time.monotonic() + given.seconds
    with ThreadPoolExecutor(os.cpu_count()) as cores:
        found = [one for one in cores.map(lambda entry: failure(entry, ends), entries) if one is not None]
    for text in filter(None, found):
        print(text)
    bad = sum(map(bool, found))
    print(f"{len(found) - bad} passed, {bad} failed")
    return 1 if bad or not found else 0


def failure(entry: dict[str, str], ends: float) -> str | None:
    """What the compiler says of the source, '' if it is well; None: the time was up before."""
    if time.monotonic() > ends:
        return None
    words = shlex.split(entry["command"])
    words[words.index("-o") : words.index("-o") + 2] = ["-fsyntax-only"]
    done = subprocess.run(words, cwd=entry["directory"], capture_output=True, text=True)
    return "" if done.returncode == 0 else f"{entry['file']} alone: {done.stderr}"


if __name__ == "__main__":
    sys.exit(main())
