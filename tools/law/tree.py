"""Rules about the tree: how many files a folder has, what their names share, which nouns and decisions there are."""

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import PurePosixPath

from law import files, names
from law.modules import module_in
from law.source import CODE, TESTS, Finding, Source, line_of

FOLDER_FILES = 20
PREFIX_FILES = 3  # files of a folder with one first word; more of them are a folder
DECISION_LINES = 40
OF_ONE_IDEA = r"^test_|^_+|_(?:test|rig|kernels|absent|cuda)$"
LISTS = {"docs/decisions"}  # folders that only grow, in the order of their numbers
TOP = {"", ".md", ".txt", ".toml", ".json", ".yaml", ".cff"}  # what files at the top of the tree end in
GLOSSARY = "docs/GLOSSARY.md"
STYLE = "docs/STYLE.md"


def by_folder(sources: dict[str, Source]) -> dict[str, list[PurePosixPath]]:
    folders: dict[str, list[PurePosixPath]] = defaultdict(list)
    for path in map(PurePosixPath, sources):
        folders[str(path.parent)].append(path)
    return folders


def tree_folders(sources: dict[str, Source]) -> Iterator[Finding]:
    for folder, paths in by_folder(sources).items():
        if len(paths) > FOLDER_FILES and folder not in LISTS:
            yield Finding("folder-files", folder, 1, f"{len(paths)} files; the limit is {FOLDER_FILES}: make folders")


def tree_top(sources: dict[str, Source]) -> Iterator[Finding]:
    """The top holds pages, settings and the build. Anything else is a leftover of a program that ran there."""
    for path in map(PurePosixPath, sources):
        if len(path.parts) == 1 and path.suffix not in TOP:
            yield Finding("top", str(path), 1, "no page, setting or part of the build: put it into a folder")


def tree_prefixes(sources: dict[str, Source]) -> Iterator[Finding]:
    """x_a, x_b, x_c and x_d in one folder are the folder x."""
    for folder, paths in by_folder(sources).items():
        stems = {re.sub(OF_ONE_IDEA, "", path.stem) for path in paths if path.suffix in CODE}
        words: dict[str, set[str]] = defaultdict(set)
        for stem in stems:
            words[stem.split("_")[0]].add(stem)
        for word, same in sorted(words.items()):
            if len(same) > PREFIX_FILES:
                text = f"{len(same)} ideas begin with {word}_: make it a folder"
                yield Finding("prefix", f"{folder}/{word}", 1, text)


DECISIONS = "docs/decisions/README.md"


def tree_decisions(sources: dict[str, Source]) -> Iterator[Finding]:
    numbers: dict[str, str] = {}
    for path, source in sources.items():
        if not path.startswith("docs/decisions/") or path == DECISIONS:
            continue
        if DECISIONS in sources and f"]({PurePosixPath(path).name})" not in sources[DECISIONS].text:
            yield Finding("decision", path, 1, f"{DECISIONS} does not list it")
        match = re.fullmatch(r"docs/decisions/(\d{4})-[a-z0-9-]+\.md", path)
        if not match or match.group(1) in numbers:
            yield Finding("decision", path, 1, "its name is NNNN-slug.md, with a number of its own")
        elif source.text.count("\n") > DECISION_LINES:
            yield Finding("decision", path, 1, f"{source.text.count(chr(10))} lines; the limit is {DECISION_LINES}")
        numbers.setdefault(match.group(1) if match else path, path)


def tree_types(sources: dict[str, Source]) -> Iterator[Finding]:
    """A type name is defined once a library."""
    for library, types in names.by_library(sources.values()).items():
        for name, places in sorted(names.defined_twice(types).items()):
            others = ", ".join(place.path for place in places[1:])
            text = f"'{name}' is a type of {len(places)} files of {library}, {others} too: give each idea its name"
            yield Finding("type-twice", f"{library}/{name}", places[0].line, text)


def tree_test_types(sources: dict[str, Source]) -> Iterator[Finding]:
    """Tests of one folder of tests/ name each type once: builds compile several of their sources as one."""
    places: dict[tuple[str, str], list[names.Type]] = defaultdict(list)
    for path, source in sources.items():
        match = re.fullmatch(r"tests/(\w+)/.*\.cpp", path)
        for one in names.types_of(path, source.text, names.outermost(source.code)) if match else ():
            places[match.group(1), one.name].append(one)
    for (_, name), types in sorted(places.items()):
        for one in types[1:]:
            text = f"'{name}' is a type of {types[0].path} too, and both may be compiled as one source"
            yield Finding("test-type-twice", one.path, one.line, text)


def tree_constants(sources: dict[str, Source]) -> Iterator[Finding]:
    """A constant of the library is defined once: two of one name drift apart."""
    places: dict[str, dict[str, int]] = defaultdict(dict)
    for path, source in sources.items():
        if path.startswith(("src/", "include/")) and not re.search(TESTS, path):
            for match in re.finditer(r"\bconst(?:expr)?\b[^;={}()]*\b(k[A-Z]\w*)\s*[={]", source.code):
                places[match.group(1)].setdefault(path, line_of(source.code, match.start(1)))
    for name, lines in sorted(places.items()):
        if len(lines) > 1:
            text = f"'{name}' is defined in {len(lines)} files, also in {', '.join(list(lines)[1:])}: name it once"
            yield Finding("constant-twice", f"{next(iter(lines))}#{name}", next(iter(lines.values())), text)


def public_types(sources: dict[str, Source]) -> Iterator[tuple[str, str, int]]:
    """(name, path, line) of what users meet: types of include/penstock/ and the classes that penstock.__all__ names."""
    for path, source in sources.items():
        if re.fullmatch(r"include/penstock/\w+\.hpp", path):
            for one in names.types_of(path, source.text, names.outermost(source.code)):
                yield one.name, path, one.line
    face = sources.get("python/penstock/__init__.py")
    shown = set(re.findall(r'"([A-Z]\w*)"', face.text)) if face else set()
    for path, source in sources.items():
        if re.fullmatch(r"python/penstock/[\w/]+\.py", path):
            for one in module_in(source.text).classes:
                if one.outermost and one.name in shown:
                    yield one.name, path, one.line


def tree_glossary(sources: dict[str, Source]) -> Iterator[Finding]:
    """Every noun that users meet has its line in the glossary, and every line there is of a noun that exists."""
    page = sources.get(GLOSSARY)
    if page is None:
        return
    entries = re.finditer(r"^- \*\*(\w+)\*\*", page.text, re.M)
    told = {entry.group(1): line_of(page.text, entry.start()) for entry in entries}
    public = {name: (path, line) for name, path, line in public_types(sources)}
    for name, (path, line) in sorted(public.items()):
        if name not in told:
            yield Finding("glossary", path, line, f"'{name}' has no line in {GLOSSARY}")
    every = {one.name for types in names.by_library(sources.values()).values() for one in types}
    for name, line in told.items():
        if name[0].isupper() and name not in every | set(public):
            yield Finding("glossary", GLOSSARY, line, f"'{name}' is a type that the tree does not have")


def tree_style(sources: dict[str, Source]) -> Iterator[Finding]:
    """STYLE tells the numbers that are the law."""
    page = sources.get(STYLE)
    if page is None:
        return
    text = " ".join(page.text.split())
    for words in (
        f"at most {files.FILE_LINES} lines",
        f"{files.ACCOUNT_LINES} where",
        f"at most {files.FUNCTION_LINES},",
        f"{files.COLUMNS} columns",
        f"at most {FOLDER_FILES} files",
        f"README has at most {files.README_LINES} lines",
        {4: "At most four parameters", 5: "At most five parameters"}[files.PARAMETERS],
    ):
        if words not in text:
            yield Finding("style", STYLE, 1, f"does not say '{words}', which is the law")
