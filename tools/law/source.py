"""What the rules look at: the project's files with their text, and the findings they make of them."""

import subprocess
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath

from law import cpp

BLOB_BYTES = 100_000
CPP = {".cpp", ".hpp", ".h", ".c", ".cu"}
COMPILED = {".cpp", ".c", ".cu", ".f90"}
CODE = CPP | {".py", ".cmake", ".f90", ".sh"}
TEXT = CODE | {".md", ".txt", ".toml", ".json", ".in", ".map", ".yml", ".yaml"}
SKIPPED = {"build", ".git", ".venv", "__pycache__", ".gpu", ".whl", ".deb"}
TESTS = r"_test\.(?:cpp|cu|c)$|/test_\w+\.hpp$|_rig\.hpp$"  # sources in src and apps that only tests use


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

    @cached_property
    def stem(self) -> str:
        return PurePosixPath(self.path).stem

    @cached_property
    def folder(self) -> str:
        return str(PurePosixPath(self.path).parent)


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
    """The tree's sources by path. Files that are no text have none; those that are too large are findings as well."""
    sources, findings = {}, []
    for name in tracked(root):
        size = (root / name).stat().st_size
        if size > BLOB_BYTES:
            findings.append(Finding("blob", name, 1, f"{size} bytes; the limit is {BLOB_BYTES}"))
        try:
            source = Source(name, (root / name).read_text(encoding="utf-8") if size <= BLOB_BYTES else "")
        except UnicodeDecodeError:
            source = Source(name, "")
        if source.suffix in CPP:
            source.code = cpp.without_comments(source.text)
            source.functions = cpp.functions(cpp.without_preprocessor(source.code))
        sources[name] = source
    return sources, findings


def line_of(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1
