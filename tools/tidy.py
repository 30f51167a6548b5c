#!/usr/bin/env python3
"""The project's law as a test: layers, sizes, names and leftovers that no compiler minds.

    tools/tidy.py [--root DIR] [--allow FILE]

Prints one line for each violation and exits 1 when there is any. Exceptions are lines of tools/tidy_allow.txt, each
with its reason; an exception that nothing needs any more is a violation too, so the list only shrinks. Standard library
only; the rules are the functions named rule_*, and each has a planted violation in tidy_test.py.
"""

import argparse
import ast
import fnmatch
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath

import tidy_cpp

COLUMNS = 120
FILE_LINES = 420
FUNCTION_LINES = 70
PARAMETERS = 5
SHORT_LIST = 15  # lines of a CMakeLists.txt that needs no head: a list of files says what it is
BLOB_BYTES = 400_000
HEAD_CHARACTERS = 24  # a head shorter than this says nothing

CPP = {".cpp", ".hpp", ".h", ".c", ".cu"}
COMPILED = {".cpp", ".c", ".cu", ".f90"}
CODE = CPP | {".py", ".cmake", ".f90", ".sh"}
TEXT = CODE | {".md", ".txt", ".toml", ".json", ".in", ".map", ".yml", ".yaml"}
SKIPPED = {"build", ".git", ".venv", "__pycache__", ".gpu", ".whl", ".deb"}

# What each layer of src may include, itself included. Tests may include anything.
LAYERS = {
    "base": {"base"},
    "os": {"base", "os"},
    "device": {"base", "os", "device"},
    "path": {"base", "os", "device", "path"},
    "engine": {"base", "os", "device", "path", "engine"},
    "policy": {"base", "policy"},
    "ondevice": {"base", "os", "device", "path", "ondevice"},
    "context": {"base", "os", "device", "path", "engine", "policy", "ondevice", "context"},
    "load": {"base", "os", "device", "path", "ondevice", "context", "load"},  # a user of the library: see OUTSIDE
}
# Who stands outside the library and uses its public headers, and the layers whose own headers it may include too.
OUTSIDE = {
    "src/load": {"base", "os", "device", "ondevice", "load"},
    "bindings": {"os", "context", "load"},
    "apps": {"os", "context"},
}
# The layer a public header belongs to; those not named are base.
PUBLIC = {
    "device": "device",
    "path": "path",
    "context": "context",
    "device_cache": "context",
    "survey": "context",
}

TESTS = r"_test\.cpp$|/test_\w+\.hpp$|_rig\.hpp$"  # sources that only tests use
BANNED = [  # rule, what, instead, where (folder prefix), except for files that match
    ("print", r"(?<![\w.>])(?:printf|fprintf|vprintf|puts|perror)\s*\(|\bstd::(?:cout|cerr|clog)\b",
     "the library prints nothing: return an Error", "src/", TESTS),
    ("exit", r"(?<![\w.>])(?:std::|::)?(?:exit|_exit|abort|quick_exit|terminate)\s*\(",
     "the library never ends the process: throw an Error", "src/", TESTS),
    ("getenv", r"\b(?:secure_)?getenv\s*\(", "settings come as options", "src/", TESTS),
    ("cuda", r"\b(?:cuda[A-Z]\w*|cuFile[A-Z]\w*|cu(?:Init|Ctx|Mem|Device|Stream|Event|Pointer|Driver)[A-Z]?\w*)\s*\(",
     "use the Device contract", "src/", r"^src/device/|^src/path/(?:cufile|gds)|_kernels\.cu$|" + TESTS),
    ("raw-memory", r"\bnew\s+[\w:(]|(?<!=)(?<!= )\bdelete\b(?:\s*\[\])?\s+\w|"
     r"(?<![\w.>])(?:std::|::)?(?:malloc|calloc|realloc|free|strdup)\s*\(",
     "use an owner", "src/", TESTS),
    ("raw-memory", r"\bnew\s+[\w:(]|(?<!=)(?<!= )\bdelete\b(?:\s*\[\])?\s+\w", "use an owner", "bindings/", r"\.c$"),
    ("gil", r"\bgil_scoped_(?:release|acquire)\b|\b(?:PyEval_(?:Save|Restore)Thread|PyGILState_Ensure)\b",
     "use GilReleased or GilHeld: they bear the end of the interpreter", "", r"^bindings/python/gil\.hpp$|\.py$"),
    ("using-namespace", r"\busing\s+namespace\b", "name what you use", "", r"^$"),
    ("mutable-static", r"^\s*(?:static|thread_local)\s+(?!const|_?assert|inline|thread_local\s+const)[^()=;{]*[;={]",
     "state belongs to an object", "src/", TESTS),
]
LEFTOVER = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X)\b")
DEVELOPER_PATH = re.compile(r"(?<![\w.$}*])/(?:home|root|Users|work)/[\w.]")
VAGUE_NAME = re.compile(r"(?:^|_)(?:utils?|helpers?|managers?|common|misc)(?:_|\.|$)")
DEAD_CODE = re.compile(
    r"^//\s{0,3}(?:(?:if|for|while|switch)\s*\(.*[){;]|return\b.*;|(?:auto\b|const\b|std::).*[;{]|"
    r"[\w:.>\[\]-]+\s*(?:=|\+=|-=)\s*[^=].*;|[\w:.>-]+\(.*\);|[{}]);?\s*$"
)


@dataclass
class Finding:
    rule: str
    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.text}"


@dataclass
class Source:
    path: str
    text: str
    code: str = ""  # C and C++ without comments and text
    functions: list = field(default_factory=list)

    @cached_property
    def suffix(self) -> str:
        name = PurePosixPath(self.path).name
        if name == "CMakeLists.txt":
            return ".cmake"
        suffix = PurePosixPath(self.path).suffix
        return ".sh" if not suffix and self.text.startswith("#!") and "sh" in self.text.split("\n", 1)[0] else suffix


def tracked(root: Path) -> list[str]:
    """The project's files: what git tracks or would track, else everything outside build folders."""
    listing = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=False
    )
    if listing.returncode == 0 and listing.stdout:
        return sorted({name for name in listing.stdout.splitlines() if (root / name).is_file()})
    found = []
    for path in root.rglob("*"):
        parts = path.relative_to(root).parts
        if path.is_file() and not SKIPPED.intersection(parts):
            found.append("/".join(parts))
    return sorted(found)


def load(root: Path) -> tuple[dict[str, Source], list[Finding]]:
    sources, findings = {}, []
    for name in tracked(root):
        size = (root / name).stat().st_size
        if size > BLOB_BYTES:
            findings.append(Finding("blob", name, 1, f"{size} bytes; the limit is {BLOB_BYTES}"))
            continue
        try:
            source = Source(name, (root / name).read_text(encoding="utf-8"))
        except UnicodeDecodeError:
            continue
        if source.suffix in CPP:
            source.code = tidy_cpp.without_comments(source.text)
            source.functions = tidy_cpp.functions(tidy_cpp.without_preprocessor(source.code))
        sources[name] = source
    return sources, findings


def line_of(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def rule_columns(source: Source, _) -> Iterator[Finding]:
    if source.suffix not in CODE:
        return
    for number, line in enumerate(source.text.splitlines(), 1):
        if len(line) > COLUMNS:
            yield Finding("columns", source.path, number, f"{len(line)} columns; the limit is {COLUMNS}")


def rule_file_lines(source: Source, _) -> Iterator[Finding]:
    lines = source.text.count("\n")
    if source.suffix in CODE and lines > FILE_LINES:
        yield Finding("file-lines", source.path, 1, f"{lines} lines; the limit is {FILE_LINES}: split the file")


def rule_functions(source: Source, _) -> Iterator[Finding]:
    for function in source.functions:
        if function.lines > FUNCTION_LINES:
            yield Finding("function-lines", source.path, function.line, f"{function.name} has {function.lines} lines")
        if function.parameters > PARAMETERS:
            text = f"{function.name} has {function.parameters} parameters: make an options struct"
            yield Finding("parameters", source.path, function.line, text)


def rule_python_functions(source: Source, _) -> Iterator[Finding]:
    if source.suffix != ".py":
        return
    try:
        tree = ast.parse(source.text)
    except SyntaxError as error:
        yield Finding("syntax", source.path, error.lineno or 1, f"{error.msg}: this Python cannot read it")
        return
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            lines = node.end_lineno - node.lineno + 1
            if lines > FUNCTION_LINES:
                yield Finding("function-lines", source.path, node.lineno, f"{node.name} has {lines} lines")


def head_of(source: Source) -> str:
    """The words of the comment or docstring a file opens with."""
    text = re.sub(r"\A#![^\n]*\n", "", source.text).lstrip("\n")
    match = {
        ".py": re.compile(r'\A(?:"""(.*?)"""|((?:#[^\n]*\n)+))', re.S),
        ".cmake": re.compile(r"\A((?:#[^\n]*\n)+)"),
        ".sh": re.compile(r"\A((?:#[^\n]*\n)+)"),
        ".f90": re.compile(r"\A((?:![^\n]*\n)+)"),
    }.get(source.suffix, re.compile(r"\A((?://[^\n]*\n)+|/\*.*?\*/)", re.S)).match(text)
    return re.sub(r"[#/*!\s]+", " ", match.group(0)).strip() if match else ""


def rule_head(source: Source, sources: dict[str, Source]) -> Iterator[Finding]:
    if source.suffix not in CODE or not source.text.strip():
        return
    if source.path.endswith("CMakeLists.txt") and source.text.count("\n") < SHORT_LIST:
        return
    head = head_of(source)
    header = PurePosixPath(source.path).with_suffix(".hpp")
    if head.startswith(f"See {header.name}") and str(header) in sources:
        return  # the contract is told once, there
    if len(head) < HEAD_CHARACTERS:
        yield Finding("head", source.path, 1, "begin with a paragraph: what it is, why it exists, what must stay true")


def rule_banned(source: Source, _) -> Iterator[Finding]:
    for rule, pattern, instead, folder, spared in BANNED:
        if not source.code or not source.path.startswith(folder) or re.search(spared, source.path):
            continue
        for match in re.finditer(pattern, source.code, re.M):
            text = f"'{' '.join(match.group(0).split())}': {instead}"
            yield Finding(rule, source.path, line_of(source.code, match.end() - 1), text)


def rule_leftovers(source: Source, _) -> Iterator[Finding]:
    for match in LEFTOVER.finditer(source.text) if source.suffix in TEXT else []:
        yield Finding("leftover", source.path, line_of(source.text, match.start()), f"'{match.group(0)}': finish it")


def rule_dead_code(source: Source, _) -> Iterator[Finding]:
    for line, text in tidy_cpp.comments(source.text) if source.suffix in CPP else []:
        if DEAD_CODE.match(text):
            yield Finding("dead-code", source.path, line, f"'{text.strip()}': commented-out code")


def rule_layers(source: Source, _) -> Iterator[Finding]:
    parts = source.path.split("/")
    if source.suffix not in CPP or re.search(r"_test\.\w+$", source.path):
        return
    if parts[0] not in ("src", "bindings", "apps"):
        return
    allowed = LAYERS.get(parts[1], set()) if parts[0] == "src" else {"context", "device", "path", "os", "base", "load"}
    own = OUTSIDE.get("/".join(parts[:2]), OUTSIDE.get(parts[0]))
    for match in re.finditer(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">]', source.text, re.M):
        name = match.group(1)
        folder, _, leaf = name.partition("/")
        layer = PUBLIC.get(leaf.removesuffix(".hpp"), "base") if folder == "penstock" and leaf else folder
        known = layer in LAYERS or layer == "python"
        private = own is not None and folder in LAYERS and folder not in own
        if leaf and known and (layer not in allowed or private):
            text = f"{'/'.join(parts[:2])} may not include {name} (layer {layer})"
            yield Finding("layer", source.path, line_of(source.text, match.start()), text)


def rule_names(source: Source, _) -> Iterator[Finding]:
    if VAGUE_NAME.search(PurePosixPath(source.path).name):
        yield Finding("vague-name", source.path, 1, "name the file after the one thing it holds")


def rule_developer_paths(source: Source, _) -> Iterator[Finding]:
    for match in DEVELOPER_PATH.finditer(source.text):
        text = f"'{match.group(0)}': an absolute path of a developer's machine"
        yield Finding("developer-path", source.path, line_of(source.text, match.start()), text)


def rule_listed(source: Source, sources: dict[str, Source]) -> Iterator[Finding]:
    """Every compiled source is named in a CMake file of its folder or above, or by its whole path in any."""
    path = PurePosixPath(source.path)
    if path.suffix not in COMPILED:
        return
    if any(other.suffix == ".cmake" and f"/{source.path}" in other.text for other in sources.values()):
        return
    for folder in path.parents:
        for name, other in sources.items():
            if PurePosixPath(name).parent == folder and other.suffix == ".cmake":
                relative = str(path.relative_to(folder))
                if re.search(rf"(?<![\w/-]){re.escape(relative)}(?![\w])", other.text):
                    return
                if re.search(rf"(?<![\w/-]){re.escape(path.stem)}(?![\w])", other.text) and folder == path.parent:
                    return
    yield Finding("unlisted", source.path, 1, "no CMakeLists.txt names it, so nothing builds it")


def rule_tested(source: Source, sources: dict[str, Source]) -> Iterator[Finding]:
    """x.cpp in src is tested by a test of its folder, or a kit under tests, that includes its header or names it."""
    path = PurePosixPath(source.path)
    if not source.path.startswith("src/") or path.suffix not in (".cpp", ".cu") or path.stem.endswith("_test"):
        return
    header = "/".join(path.with_suffix(".hpp").parts[1:])
    mention = re.compile(rf'"{re.escape(header)}"|(?<![A-Za-z0-9]){re.escape(path.stem)}(?![A-Za-z0-9])')
    for name, other in sources.items():
        test = PurePosixPath(name)
        if not (test.parent == path.parent and test.stem.endswith("_test")) and not name.startswith("tests/"):
            continue
        if path.stem.startswith(test.stem.removesuffix("_test") + "_") or mention.search(other.text):
            return
    yield Finding("untested", source.path, 1, f"no test in {path.parent} or tests is for it")


def apply_allowed(findings: list[Finding], text: str, name: str) -> list[Finding]:
    """Removes excepted findings; adds one for each exception that is malformed or that nothing needed."""
    left = findings
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        rule, path, reason = ([part.strip() for part in line.split("|", 2)] + ["", ""])[:3]
        kept = [f for f in left if f.rule != rule or not fnmatch.fnmatchcase(f.path, path)]
        if not reason:
            kept.append(Finding("allow", name, number, "write: rule | path or pattern | reason"))
        elif len(kept) == len(left):
            kept.append(Finding("allow", name, number, f"nothing needs it any more: {line}"))
        left = kept
    return left


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    here = Path(__file__).resolve().parent
    parser.add_argument("--root", type=Path, default=here.parent)
    parser.add_argument("--allow", type=Path, default=here / "tidy_allow.txt")
    options = parser.parse_args()
    sources, findings = load(options.root)
    rules = [rule for name, rule in sorted(globals().items()) if name.startswith("rule_")]
    for source in sources.values():
        for rule in rules:
            findings.extend(rule(source, sources))
    allowed = options.allow.read_text(encoding="utf-8") if options.allow.exists() else ""
    findings = apply_allowed(findings, allowed, options.allow.name)
    for finding in sorted(findings, key=lambda f: (f.path, f.line, f.rule)):
        print(finding)
    print(f"tidy: {len(sources)} files, {len(findings)} violations", file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
