#!/usr/bin/env python3
"""How many nouns a reader of this tree meets: printed before and after a step that moves or merges things.

    tools/census.py [--root DIR] [--json]

Types and names are counted by law/names.py, lines without blank ones. "On a read" are the types that a read's files
name (READ_OF_CPP; READ_OF_PYTHON for `dataset[...]`). "Places of" a path, format or suite are the files that name it
and are not its own: a new one of its kind has to be told there. The counts are crude, and the same for every revision:
compare those of one version of this file only.
"""

import argparse
import ast
import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from law import layers, names, tree
from law.source import CPP, TESTS, Source, load

READ_OF_CPP = re.compile(
    r"src/context/(?:\w+/)?(?:file|extent|submission|check|facts|prepare|launch)\.[ch]pp|"
    r"src/policy/policy\.[ch]pp|src/engine/(?:\w+/)?(?!\w*(?:_test|_rig|_kit))\w+\.[ch]pp|src/path/posix\.[ch]pp|"
    r"(?:src/path/path|include/penstock/(?:path|plan|outcome))\.hpp"
)
READ_OF_PYTHON = re.compile(r"python/penstock/formats/(?:reading/(?!nvcomp|aside)\w+|dataset|state|pending)\.py")
LINES = {
    "src": "src/",
    "include": "include/",
    "apps": "apps/",
    "product in Python": "python/penstock/(?!bench/|report/)",
    "measuring in Python": "python/penstock(?:_bench|/bench|/report)/",
}
PLACES = {  # what: how it is named, its own files
    "path aio": (r"\bPathKind::aio\b|\bkAio\b|\bAio\b|\"aio\"", r"(?:^|/)aio\w*\.|_test\.|^tests/|/tests/"),
    "format zarr": (r"\bzarr\b|\bzarr_\w+", r"zarr|^python/tests/|^tools/|^docs/|_bench/|/bench/|/suites/"),
    "suite io_size": (r"\bio_size\b|\bio-size\b", r"io_size|io-size|^python/tests/|^docs/|_test\."),
}


def code_lines(sources: Iterable[Source], pattern: str) -> int:
    chosen = [s for s in sources if re.match(pattern, s.path) and s.path.endswith((*CPP, ".py"))]
    return sum(1 for s in chosen if not re.search(TESTS, s.path) for line in s.text.splitlines() if line.strip())


def named_types(sources: list[Source], known: set[str]) -> set[str]:
    """The types of `known` that the code of the sources names."""
    words: set[str] = set()
    for source in sources:
        text = source.code or re.sub(r'""".*?"""|#[^\n]*', "", source.text, flags=re.S)
        words |= set(re.findall(r"\b[A-Z]\w+", text)) | set(re.findall(r"\b_[A-Z]\w+", text))
    return words & known


def functions_named(sources: list[Source]) -> int:
    """How many functions and methods the modules define."""
    nodes = [node for source in sources for node in ast.walk(ast.parse(source.text))]
    return sum(isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) for node in nodes)


def count(sources: dict[str, Source]) -> dict[str, float]:
    every = names.by_library(sources.values())
    found: dict[str, float] = {}
    for library, types in sorted(every.items()):
        found[f"types in {library}"] = len(types)
        found[f"names of two types in {library}"] = len(names.defined_twice(types))
    found["types"] = sum(map(len, every.values()))
    found["names of two types"] = sum(len(names.defined_twice(types)) for types in every.values())
    for what, pattern in LINES.items():
        found[f"lines of {what}"] = code_lines(sources.values(), pattern)
    native = [s for path, s in sources.items() if READ_OF_CPP.fullmatch(path)]
    modules = [s for path, s in sources.items() if READ_OF_PYTHON.fullmatch(path)]
    found["types on a read, C++"] = len(named_types(native, {t.name for t in every["penstock"]}))
    found["types on a read, Python"] = len(named_types(modules, {t.name for t in every["python"]}))
    found["modules on a read, Python"] = len(modules)
    found["functions on a read, Python"] = functions_named(modules)
    for what, (name, own) in PLACES.items():
        places = [s for path, s in sources.items() if re.search(name, s.code or s.text) and not re.search(own, path)]
        found[f"places of {what}"] = len([s for s in places if s.suffix in CPP | {".py", ".cmake", ".toml"}])
    found["circles of Python"] = sum(1 for _ in layers.tree_circles(sources))
    found["circles of C++'s folders"] = layers.folder_circles(sources)
    found["imports upward in Python"] = sum(1 for _ in layers.tree_python_layers(sources))
    found["largest folder"] = max(len(paths) for paths in tree.by_folder(sources).values())
    found["folders over the limit"] = sum(1 for _ in tree.tree_folders(sources))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    sources, large = load(options.root)
    found = count(sources)
    found["kB in blobs"] = sum((options.root / one.path).stat().st_size for one in large) // 1000
    if options.json:
        json.dump(found, sys.stdout, indent=1)
        print()
    else:
        for what, number in found.items():
            print(f"{number:8} {what}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
