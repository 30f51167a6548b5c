"""A reader of C and C++ just good enough for tidy: code without comments and text, and its functions.

No compiler is asked, so that tidy runs anywhere in a second. It understands the subset this project writes: braces that
balance, no function bodies made by macros. What it returns are facts; the rules are in tidy.py.
"""

import re
from dataclasses import dataclass


@dataclass
class Function:
    name: str
    line: int  # of its first line, from 1
    lines: int  # from signature to closing brace; 0 for a declaration
    parameters: int


TOKENS = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<d>[^()\s]*)\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])*\'',
    re.S,
)


def squeezed(text: str) -> str:
    """One space for each run of spaces and line ends: long runs, as blanked comments leave, make the patterns slow."""
    return " ".join(text.split())


def blank(text: str) -> str:
    """Spaces for everything but line ends."""
    return re.sub(r"[^\n]", " ", text)


def without_comments(text: str) -> str:
    """The code, line by line where it was, with comments and the inside of strings blanked."""

    def replace(match: re.Match) -> str:
        token = match.group(0)
        if token.startswith(("//", "/*")):
            return blank(token)
        return token[0] + blank(token[1:-1]) + token[-1]

    return TOKENS.sub(replace, text)


def comments(text: str) -> list[tuple[int, str]]:
    """(line, comment) of each // or /* */ comment."""
    found = []
    for match in TOKENS.finditer(text):
        if match.group(0).startswith(("//", "/*")):
            found.append((text.count("\n", 0, match.start()) + 1, match.group(0)))
    return found


def without_preprocessor(code: str) -> str:
    """Directives blanked, continuation lines too."""
    return re.sub(r"^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", lambda m: blank(m.group(0)), code, flags=re.M)


TAIL = re.compile(
    r"(?:\s|\bconst\b|\bnoexcept\b(?:\s*\([^()]*\))?|\boverride\b|\bfinal\b|\btry\b|&&?|=\s*(?:0|default|delete))*$"
)
ARROW = re.compile(r"\)([^()]*)->[^()]*$")
INITIALISERS = re.compile(r"\)\s*(?:noexcept\s*)?:(?!:)")
NOT_FUNCTIONS = re.compile(
    r"^\s*(?:if|for|while|switch|catch|else|do|static_assert|using|typedef|return|enum|friend)\b"
)


def strip_tail(head: str) -> str:
    """A signature without initialisers, qualifiers and trailing return type: it then ends with its parameter list."""
    start = INITIALISERS.search(head)
    if start:
        head = head[: start.start() + 1]
    head = re.sub(r"\brequires\b.*$", "", head, flags=re.S)
    head = ARROW.sub(r")\1", head)
    return head[: TAIL.search(head).start()]


def parameter_list(head: str) -> tuple[str, str] | None:
    """(name, parameters) of a function's signature; None when it is something else."""
    signature = strip_tail(head)
    if not signature.endswith(")") or NOT_FUNCTIONS.match(signature):
        return None
    depth = 0
    for i in range(len(signature) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(signature[i], 0)
        if depth == 0:
            name = re.search(r"(operator\s*[^\w\s]{1,3}|operator\s*\(\)|[~\w:]+)\s*$", signature[:i])
            return (name.group(1), signature[i + 1 : -1]) if name else None
    return None


def count_parameters(text: str) -> int:
    if not text.strip() or text.strip() == "void":
        return 0
    depth = 0
    count = 1
    for c in text:
        depth += {"(": 1, "<": 1, "{": 1, "[": 1, ")": -1, ">": -1, "}": -1, "]": -1}.get(c, 0)
        count += c == "," and depth == 0
    return count


def scope_kind(head: str) -> str:
    """What a brace after `head` opens, outside functions: space (namespace, class), function, list, or value."""
    if re.match(r"^\s*(?:inline\s+)?namespace\b|^\s*extern\s*\"", head):
        return "space"
    if INITIALISERS.search(head) and re.search(r"[\w>]\s*$", head) and not TAIL.search(head).group(0).strip():
        return "list"  # a brace initialiser within a constructor's list
    if parameter_list(head) and (re.search(r"\)\s*$", strip_tail(head)) is not None):
        return "function"
    if re.search(r"\b(?:class|struct|union)\b", re.sub(r"<[^<>]*>|\balignas\s*\([^()]*\)", "", head)):
        return "space"
    return "value"


def functions(code: str) -> list[Function]:
    """Every function defined or declared outside functions. `code` has no comments and no preprocessor lines."""
    found: list[Function] = []
    stack: list[tuple[str, str, int]] = []  # kind, head, offset of the head's first character
    start = 0
    bodies = 0  # how many of the stack are inside a function or a value
    for i, c in enumerate(code):
        inside = bodies > 0
        if c == "{":
            stack.append(("value" if inside else scope_kind(squeezed(code[start:i])), code[start:i], start))
            bodies += stack[-1][0] in ("function", "value")
            if stack[-1][0] != "list":
                start = i + 1
        elif c == "}" and stack:
            kind, head, first = stack.pop()
            bodies -= kind in ("function", "value")
            if kind == "function":
                found.append(described(code, head, first, i))
            if kind != "list":
                start = i + 1
        elif c == ";" and not inside:
            head = squeezed(code[start:i])
            if parameter_list(head) and re.search(r"[\w>&*]\s+[&*]*[~\w:]+\s*\(|operator", head):
                found.append(described(code, code[start:i], start, None))
            start = i + 1
        elif c == ":" and not inside and re.search(r"\b(?:public|private|protected)\s*$", code[start:i]):
            start = i + 1
    return found


def described(code: str, head: str, first: int, end: int | None) -> Function:
    first += len(head) - len(head.lstrip())
    line = code.count("\n", 0, first) + 1
    name, parameters = parameter_list(squeezed(head)) or ("?", "")
    lines = 0 if end is None else code.count("\n", first, end) + 1
    return Function(name, line, lines, count_parameters(parameters))
