"""The nouns of the tree for tidy and census: which types are defined where, and which of their names mean two things.

A type is a class, struct, union or enum of C and C++ that has a body, or a class of Python. A library is what a program
links or imports as one thing: a name stands for one type there, nested types included, so that a reader knows which.
Two types of one name in one file are taken for one idea. Tests and their rigs have names of their own.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from law.modules import module_in

TYPE = re.compile(
    r"(?<![\w<,])(?:enum\s+(?:class|struct)|enum|class|struct|union)\s+"
    r"(?:alignas\s*\([^()]*(?:\([^()]*\)[^()]*)*\)\s*)?(?:\[\[[^\]]*\]\]\s*)?(?P<name>[A-Za-z_]\w*)"
    r"(?:\s*<[^;{}()]*>)?(?:\s+final)?\s*(?::[^;{}()]*(?:\([^()]*\)[^;{}()]*)*)?\{"
)
OF_TESTS = re.compile(r"_test\.\w+$|_rig\.hpp$|^tests/|/tests/|^tools/|^examples/|(?:^|/)(?:test_|conftest)")
LIBRARIES = {  # folder: the library its types belong to; each folder of apps/ is one of its own
    "include/": "penstock",
    "src/": "penstock",
    "bindings/": "bindings",
    "python/penstock/": "python",
    "python/penstock_bench/": "python_bench",
}


@dataclass(frozen=True)
class Type:
    name: str
    path: str
    line: int


def library_of(path: str) -> str | None:
    """The library whose types `path` defines; None for tests, tools and examples."""
    if OF_TESTS.search(path):
        return None
    application = re.match(r"apps/(\w+)/", path)
    if application:
        return application[1]
    return next((library for folder, library in LIBRARIES.items() if path.startswith(folder)), None)


def types_of(path: str, text: str, code: str) -> Iterator[Type]:
    """The types that one file defines. `code` is its C or C++ without comments, and empty for Python."""
    if path.endswith(".py"):
        for one in module_in(text).classes:
            yield Type(one.name, path, one.line)
    for match in TYPE.finditer(code):
        yield Type(match["name"], path, code.count("\n", 0, match.start("name")) + 1)


def by_library(sources: Iterable) -> dict[str, list[Type]]:
    """All types of each library, in the order of the paths. `sources` are tidy's."""
    found: dict[str, list[Type]] = defaultdict(list)
    for source in sources:
        library = library_of(source.path)
        if library:
            try:
                found[library].extend(types_of(source.path, source.text, source.code))
            except SyntaxError:
                continue  # tidy's rule of functions tells of it
    return found


def defined_twice(types: Iterable[Type]) -> dict[str, list[Type]]:
    """name: its types, for each name that more than one file of a library defines."""
    places: dict[str, dict[str, Type]] = defaultdict(dict)
    for one in types:
        places[one.name].setdefault(one.path, one)
    return {name: list(files.values()) for name, files in places.items() if len(files) > 1}


def outermost(code: str) -> str:
    """The code with the bodies of types and functions blanked: what stands in namespaces stays."""
    kept, stack = list(code), []
    start = 0
    for i, c in enumerate(code):
        if c == "{":
            space = re.search(r"\bnamespace\b[\w:\s]*$|extern\s*\"[^\"]*\"\s*$", code[start:i]) is not None
            stack.append(space and all(stack))
        elif c == "}" and stack:
            stack.pop()
        elif stack and not all(stack) and c != "\n":
            kept[i] = " "
        if c in "{};":
            start = i + 1
    return "".join(kept)
