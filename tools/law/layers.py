"""What may know what. Includes of C++ and imports of Python point downward, and nothing stands in a circle.

C and C++: every include in quotes is a file of the tree, found in the including file's folder or in one of ROOTS. It is
judged by where that file lies, so that no include escapes: base <- os <- device <- path <- engine <- context <- data
<- formats, base <- policy <- context; include/ knows include/ only; nothing but examples knows an application; the
Python module of an application knows what all Python modules contain. Tests may include anything.

No files include each other, tests neither. No law is about circles of folders: folders of one layer, such as a folder
and one within it, may include files of each other. The table of layers leaves no circle between layers.

Python: LAYERS_OF_PYTHON, each of which may import those before it. Any import counts, one inside a function, for a
type checker or by a text (import_module) as well: whoever reads a module has to have read what it names.
"""

import ast
import fnmatch
import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from law.modules import module_in
from law.source import CPP, TESTS, Finding, Source, line_of

ROOTS = ("include", "src", "apps", "bindings", "tests", "")
GENERATED = {"penstock_revision.hpp"}

# What each layer of src may include, itself included.
LAYERS = {
    "base": {"base"},
    "os": {"base", "os"},
    "device": {"base", "os", "device"},
    "path": {"base", "os", "device", "path"},
    "engine": {"base", "os", "device", "path", "engine"},
    "policy": {"base", "policy"},
    "ondevice": {"base", "os", "device", "path", "ondevice"},
    "context": {"base", "os", "device", "path", "engine", "policy", "ondevice", "context"},
    "data": {"base", "os", "device", "context", "data"},
    "formats": {"base", "device", "context", "data", "formats"},
    "history": {"base", "os", "device", "context", "data", "formats", "history"},
    "snapshot": {"base", "os", "context", "data", "formats", "snapshot"},
    "restart": {"base", "os", "context", "data", "formats", "snapshot", "restart"},
    "load": {"base", "os", "device", "path", "ondevice", "context", "load"},  # a user of the library: see OUTSIDE
}
# What stands outside the library and uses its public headers, and the layers whose own headers it may include too.
OUTSIDE = {
    "src/load": {"base", "os", "device", "ondevice", "load"},
    "bindings": {"os", "context", "data", "formats", "history", "snapshot", "restart", "load"},
    "apps": {"os", "context"},
    "examples": set(),
}
# The layer a public header belongs to; those not named are base.
PUBLIC = {
    "device": "device",
    "path": "path",
    "context": "context",
    "device_cache": "context",
    "device_calls": "context",
    "survey": "context",
    "history": "history",
    "snapshot": "snapshot",
    "restart": "restart",
}
# Folders outside src, and those outside src and include that their files may include besides their own.
BESIDE = {"include": set(), "src": set(), "bindings": set(), "apps": set(), "examples": {"apps"}}
# An application's Python module contains what all Python modules do; the application itself does not know it.
MODULES_OF_APPS = re.compile(r"apps/\w+/python/")
SHARED_BY_MODULES = "bindings/python/shared/"

# Python's layers, the lowest first: the patterns of the modules of each.
LAYERS_OF_PYTHON = {
    "core": [
        "penstock._core", "penstock._error", "penstock._extras", "penstock._text", "penstock._version",
        "penstock._arrays", "penstock._arrays.selection", "penstock._arrays.dtype",
        "penstock._files", "penstock._files.file_name", "penstock._files.descriptor",
    ],
    "api": [
        "penstock._api", "penstock._arrays.*", "penstock._evidence", "penstock._files.*", "penstock._include",
        "penstock._options", "penstock._profiles", "penstock._shared", "penstock._sizes", "penstock._told",
    ],
    "formats": ["penstock.formats", "penstock.formats.*"],
    "open": [
        "penstock._open", "penstock.data", "penstock.gpu", "penstock.gpu.*", "penstock.history",
        "penstock.history.*", "penstock.restart", "penstock.restart.*", "penstock.snapshot", "penstock.snapshot.*",
        "penstock.torch", "penstock.xarray", "penstock.xarray.*", "penstock.zarr_store",
    ],
    "flow": ["penstock.flow", "penstock.flow.*", "penstock.nbody", "penstock.nbody.*"],
    "hmatrix": ["penstock.hmatrix", "penstock.hmatrix.*"],
    "face": ["penstock"],
    "calibration": ["penstock.calibration", "penstock.calibration.*"],
    "command": ["penstock.cli", "penstock.cli.*", "penstock.__main__"],
    "measuring": ["penstock_bench", "penstock_bench._measure", "penstock_bench.engine*"],
    "suites": ["penstock_bench.suites*", "penstock_bench.gdsio*", "penstock_bench.h5bench*"],
    "runs": ["penstock_bench.runs*"],
    "report": ["penstock_bench.report*", "penstock_bench.measured*"],
    "commands": ["penstock_bench.cli*"],
}  # fmt: skip
PACKAGES = "python/"


def includes(source: Source) -> Iterator[tuple[int, str, str]]:
    """(line, bracket, name) of each include."""
    for match in re.finditer(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', source.text, re.M):
        yield line_of(source.text, match.start(2)), match.group(1), match.group(2)


def found(source: Source, name: str, sources: dict[str, Source]) -> str | None:
    """The path of an included file; None when the tree has none of that name."""
    for root in (source.folder, *ROOTS):
        path = f"{root}/{name}".lstrip("/") if root else name
        if path in sources:
            return path
    return None


def layer_of(path: str) -> str:
    """The layer of src that a header of src or include belongs to."""
    parts = path.split("/")
    if parts[0] == "src":
        return parts[1]
    if len(parts) > 3 and parts[2] in LAYERS:
        return parts[2]
    return PUBLIC.get(PurePosixPath(path).stem, "base")


def may_include(source: Source, path: str) -> bool:
    """Whether the file may include the one at `path`."""
    of, at = source.path.split("/")[0], path.split("/")[0]
    if path.startswith(SHARED_BY_MODULES) and MODULES_OF_APPS.match(source.path):
        return True
    if at not in ("include", "src"):
        return at == of or at in BESIDE[of]
    if of == "include":
        return at == "include" and layer_of(path) in LAYERS[layer_of(source.path)]
    if of == "src" and layer_of(path) not in LAYERS.get(layer_of(source.path), set()):
        return False
    own = OUTSIDE.get("/".join(source.path.split("/")[:2]), OUTSIDE.get(of))
    return own is None or at == "include" or layer_of(path) in own


def rule_layers(source: Source, sources: dict[str, Source]) -> Iterator[Finding]:
    if source.suffix not in CPP or re.search(TESTS, source.path) or source.path.split("/")[0] not in BESIDE:
        return
    for match in re.finditer(r"^[ \t]*#[ \t]*include\b(?![ \t]*[\"<])", source.text, re.M):
        line = line_of(source.text, match.start())
        yield Finding("layer", source.path, line, "write the header's name after #include")
    for line, bracket, name in includes(source):
        path = found(source, name, sources)
        if ".." in PurePosixPath(name).parts:
            yield Finding("layer", source.path, line, f"name {name} from a root, without ..")
        elif path is None:
            if bracket == '"' and name not in GENERATED:
                yield Finding("layer", source.path, line, f"the tree has no file {name}: include foreign headers in <>")
        elif not may_include(source, path):
            yield Finding("layer", source.path, line, f"{source.folder} may not include {path}")


def rule_public_headers(source: Source, _) -> Iterator[Finding]:
    """A header that users see names nothing that they cannot see."""
    if not source.path.startswith("include/"):
        return
    private = r"(?<!::)\b(?:os|engine|path|policy)::\w+|\bnamespace\s+(?:penstock::)?(?:os|engine|path|policy)\b"
    for match in re.finditer(private, source.code):
        text = f"'{match.group(0)}': a public header names nothing private"
        yield Finding("private-name", source.path, line_of(source.code, match.start()), text)


def rule_shipped(source: Source, _) -> Iterator[Finding]:
    """Nothing under tests/ is compiled into a library that is shipped."""
    if source.suffix == ".cmake" and source.path.split("/")[0] in ("src", "bindings", "apps"):
        for match in re.finditer(r"(?:add_library|target_sources)\s*\(\s*penstock\w*\s[^)]*\btests/", source.text):
            line = line_of(source.text, match.start())
            yield Finding("test-in-library", source.path, line, "a source of tests/ in a library that is shipped")


def module_of(path: str) -> str:
    """penstock.cli for python/penstock/cli/__init__.py."""
    name = PurePosixPath(path.removeprefix(PACKAGES)).with_suffix("")
    parts = name.parts[:-1] if name.name == "__init__" else name.parts
    return ".".join(parts)


def modules(sources: Iterable[Source]) -> dict[str, Source]:
    """The modules of the packages by name: of a compiled one what its stub says."""
    packages = [s for s in sources if re.match(PACKAGES + r"penstock\w*/", s.path) and s.path.endswith((".py", ".pyi"))]
    return {module_of(source.path): source for source in packages}


def imports(name: str, source: Source, known: dict[str, Source]) -> Iterator[tuple[int, str]]:
    """(line, module) of every import of one of `known`."""
    package = name if source.path.endswith("__init__.py") else name.rpartition(".")[0]
    try:
        all_imports = module_in(source.text).imports
    except SyntaxError:
        return  # a rule of files tells of it
    for node in all_imports:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names if alias.name in known)
        else:
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join(above + ([node.module] if node.module else []))
            for alias in node.names:
                target = f"{base}.{alias.name}" if f"{base}.{alias.name}" in known else base
                if target in known and target != name:
                    yield node.lineno, target


def loads(source: Source, known: dict[str, Source]) -> Iterator[tuple[int, str]]:
    """(line, module) of every import by a text: the module, or the package of `known` that the text begins with."""
    try:
        all_loads = module_in(source.text).loads
    except SyntaxError:
        return  # a rule of files tells of it
    for line, text in all_loads:
        name = text.rstrip(".")
        while name and name not in known:
            name = name.rpartition(".")[0]
        if name:
            yield line, name


def python_layer(name: str) -> str | None:
    fits = [layer for layer, all_of in LAYERS_OF_PYTHON.items() if any(fnmatch.fnmatchcase(name, p) for p in all_of)]
    return fits[0] if fits else None


def tree_python_layers(sources: dict[str, Source]) -> Iterator[Finding]:
    known = modules(sources.values())
    order = list(LAYERS_OF_PYTHON)
    for name, source in known.items():
        layer = python_layer(name)
        if layer is None:
            yield Finding("python-layer", source.path, 1, f"{name} belongs to no layer: add it to LAYERS_OF_PYTHON")
            continue
        for line, target in (*imports(name, source, known), *loads(source, known)):
            below = python_layer(target)
            if below is not None and order.index(below) > order.index(layer):
                yield Finding("python-layer", source.path, line, f"{layer} may not import {target} ({below})")


def tree_circles(sources: dict[str, Source]) -> Iterator[Finding]:
    """Modules that import each other, over any number of others."""
    known = modules(sources.values())
    graph = {name: sorted({target for _, target in imports(name, source, known)}) for name, source in known.items()}
    for circle in circles(graph):
        first = min(circle)
        yield Finding("circle", known[first].path, 1, "imports in a circle: " + ", ".join(sorted(circle)))


def folder_circles(sources: dict[str, Source]) -> int:
    """How many circles folders of C and C++ make by their includes, without those of tests: what no law forbids."""
    graph: dict[str, set[str]] = {}
    for source in sources.values():
        if source.suffix in CPP and not re.search(TESTS, source.path):
            targets = {found(source, name, sources) for _, _, name in includes(source)}
            folders = {sources[target].folder for target in targets if target and sources[target].suffix in CPP}
            graph.setdefault(source.folder, set()).update(folders - {source.folder})
            for folder in folders:
                graph.setdefault(folder, set())
    return sum(1 for _ in circles({folder: sorted(targets) for folder, targets in graph.items()}))


def tree_include_circles(sources: dict[str, Source]) -> Iterator[Finding]:
    """Files of C and C++ that include each other, over any number of others."""
    graph = {}
    for path, source in sources.items():
        if source.suffix in CPP:
            targets = {found(source, name, sources) for _, _, name in includes(source)}
            graph[path] = sorted(target for target in targets if target and sources[target].suffix in CPP)
    for circle in circles(graph):
        yield Finding("circle", min(circle), 1, "includes in a circle: " + ", ".join(sorted(circle)))


def circles(graph: dict[str, list[str]]) -> Iterator[set[str]]:
    """The sets of more than one node that reach each other: Tarjan's strongly connected components."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []

    def visit(node: str) -> Iterator[set[str]]:
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in graph[node]:
            if target not in index:
                yield from visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            component = set(stack[stack.index(node) :])
            del stack[stack.index(node) :]
            if len(component) > 1:
                yield component

    for node in graph:
        if node not in index:
            yield from visit(node)
