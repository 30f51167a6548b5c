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
    loads: list[tuple[int, str]] = field(default_factory=list)  # (line, text) of imports by a text, up to its first {}


@cache
def module_in(text: str) -> Module:
    """Its functions, classes and imports, wherever they are. Raises SyntaxError."""
    tree, read = ast.parse(text), Module()
    outermost = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            read.imports.append(node)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            all_of = read.classes if isinstance(node, ast.ClassDef) else read.functions
            lines = node.end_lineno - node.lineno + 1
            all_of.append(Named(node.name, node.lineno, lines, id(node) in outermost))
        elif isinstance(node, ast.Call) and (name := loaded_name(node)):
            read.loads.append((node.lineno, name))
    return read


def loaded_name(call: ast.Call) -> str | None:
    """The text, or its beginning, that import_module() or __import__() is called with."""
    function = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", None)
    if function not in ("import_module", "__import__") or not call.args:
        return None
    first = call.args[0].values[0] if isinstance(call.args[0], ast.JoinedStr) else call.args[0]
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None
