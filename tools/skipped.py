#!/usr/bin/env python3
"""Tells how many tests were skipped and why, a line a reason, and what could not be tested at all for want of a tool.

ctest counts programs and pytest's last line gives no reasons, so a skipped test is easily taken for a passed one. Reads
the XML that googletest (GTEST_OUTPUT=xml:FOLDER/) and pytest (--junitxml) write. A file that cannot be read is an
error: silence must not look like a run without skips.

    tools/skipped.py build/results --cmake build/fuzz/CMakeCache.txt --python .venv/bin/python
"""

import argparse
import ast
import collections
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

# Modules whose tests are skipped without them, and what they are the tests of.
MODULES = {"torch": "PyTorch", "cupy": "CuPy", "zarr": "the zarr library", "yt": "yt"}


def reason_of(skipped: ElementTree.Element) -> str:
    """googletest's text begins with the place in the source, pytest tells of a whole file as a tuple (file, line,
    reason); what names a temporary folder would be a line each."""
    text = skipped.get("message") or skipped.text or "no reason given"
    if text == "collection skipped" and skipped.text:
        text = str(ast.literal_eval(skipped.text.strip())[-1])
    said = text.strip().splitlines()
    if len(said) > 1 and re.fullmatch(r"\S+:\d+:?", said[0].strip()):
        said = said[1:]
    first = re.sub(r"^Skipped: ", "", said[0].strip()) if said else ""
    return re.sub(r"(?<!\w)/(?:[\w.+-]+/)+[\w.+-]*", "...", first) or "no reason given"


def skips_of(file: Path) -> collections.Counter[str]:
    return collections.Counter(reason_of(one) for one in ElementTree.parse(file).iter("skipped"))


def without_tool(cache: Path | None, python: str | None) -> list[str]:
    """What no test could be made for."""
    found = []
    cached = None if cache is None else cache.read_text()
    if cached is not None and not re.search(r"^CMAKE_Fortran_COMPILER:\w+=/", cached, re.MULTILINE):
        found.append("the Fortran module: there is no Fortran compiler here")
    if cached is not None and re.search(r"^PENSTOCK_STATIC_CXX_RUNTIME:\w+=$", cached, re.MULTILINE):
        found.append("a C++ runtime for each module: there is no static one here")
    if python is not None:
        code = f"import importlib.util as u; print(*[n for n in {sorted(MODULES)} if u.find_spec(n) is None])"
        said = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout
        found += [f"what is of {MODULES[name]}: there is no {name} here" for name in said.split()]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", type=Path, help="XML files, or folders of them")
    parser.add_argument("--cmake", type=Path, help="CMakeCache.txt of what was tested")
    parser.add_argument("--python", help="interpreter that ran the tests")
    options = parser.parse_args()
    files = [file for one in options.results for file in (sorted(one.rglob("*.xml")) if one.is_dir() else [one])]
    if not files:
        print(f"{options.results[0]}: there are no results, so it is not known what was skipped", file=sys.stderr)
        return 1
    skips: collections.Counter[str] = collections.Counter()
    for file in files:
        try:
            skips += skips_of(file)
        except (OSError, ElementTree.ParseError) as error:
            print(f"{file}: {error}: it is not known what was skipped", file=sys.stderr)
            return 1
    for reason, count in skips.most_common():
        print(f"{count:5d} skipped: {reason}")
    for what in without_tool(options.cmake, options.python):
        print(f"not tested: {what}")
    print(f"{skips.total()} tests skipped")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
