"""What the rules ask of a Python file, read from its text once: several rules ask the same."""

import ast
from dataclasses import dataclass, field
from functools import cache


@dataclass(frozen=True)
class Named:
    name: str
    line: int
    lines: int
    outermost: bool


@dataclass(frozen=True)
class Module:
    functions: list[Named] = field(default_factory=list)
    classes: list[Named] = field(default_factory=list)
    imports: list[ast.Import | ast.ImportFrom] = field(default_factory=list)


@cache
def module_in(text: str) -> Module:
    """Its functions, classes and imports, wherever they stand. Raises SyntaxError."""
    tree, read = ast.parse(text), Module()
    outermost = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            read.imports.append(node)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            all_of = read.classes if isinstance(node, ast.ClassDef) else read.functions
            lines = node.end_lineno - node.lineno + 1
            all_of.append(Named(node.name, node.lineno, lines, id(node) in outermost))
    return read
