"""Rules about one file: its size, its functions, its head, its words, calls that the library never makes, leftovers."""

import ast
import contextlib
import io
import posixpath
import re
import tokenize
from collections.abc import Iterator
from pathlib import PurePosixPath

from law import cpp, modules
from law.source import CODE, COMPILED, CPP, TESTS, TEXT, Finding, Source, line_of

COLUMNS = 120
FILE_LINES = 420
README_LINES = 130
ACCOUNT_LINES = 600  # of a file that holds one whole argument: its head is a numbered account
FUNCTION_LINES = 70
PARAMETERS = 4
SHORT_LIST = 15  # lines of a CMakeLists.txt that needs no head: a list of files says what it is
HEAD_CHARACTERS = 24  # a head shorter than this says nothing

LIBRARY = ("include/", "src/", "bindings/")
BANNED = [  # rule, what, instead, where (folders), except for files that match
    ("print", r"(?<![\w.>])(?:printf|fprintf|vprintf|puts|perror)\s*\(|\bstd::(?:cout|cerr|clog)\b",
     "the library prints nothing: return an Error", "src/", TESTS),
    ("exit", r"(?<![\w.>])(?:std::|::)?(?:exit|_exit|abort|quick_exit|terminate)\s*\(",
     "the library never ends the process: throw an Error", "src/", TESTS),
    ("getenv", r"\b(?:secure_)?getenv\s*\(", "settings come as options", "src/", TESTS),
    ("cuda", r"\b(?:cuda[A-Z]|cu(?!File)[A-Z]|CU(?!file)[a-z])\w*|#\s*include\s*<cuda\w*\.h>",
     "use the Device contract", LIBRARY, r"^src/device/|\.cu$|_cuda\.cpp$|_kernels\.hpp$|" + TESTS),
    ("cuda", r"\b(?:cuFile[A-Z]|CUfile)\w*|#\s*include\s*<cufile\.h>", "only src/path/cufile/ names cuFile", LIBRARY,
     r"^src/path/cufile/|" + TESTS),
    ("raw-memory", r"\bnew\s+[\w:(]|(?<!=)(?<!= )\bdelete\b(?:\s*\[\])?\s+\w|"
     r"(?<![\w.>])(?:std::|::)?(?:malloc|calloc|realloc|free|strdup)\s*\(",
     "use an owner", "src/", TESTS),
    ("raw-memory", r"\bnew\s+[\w:(]|(?<!=)(?<!= )\bdelete\b(?:\s*\[\])?\s+\w", "use an owner", "bindings/", r"\.c$"),
    ("gil", r"\bgil_scoped_(?:release|acquire)\b|\b(?:PyEval_(?:Save|Restore)Thread|PyGILState_Ensure)\b",
     "use GilReleased or GilHeld: they bear the end of the interpreter", "",
     r"^bindings/python/shared/gil\.hpp$|\.py$"),
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
HASH_COMMENT = re.compile(r"(?:^|\s)#+\s+(.*)")  # of a Makefile, of CMake and of the shell
# Sentences without an actor: whom "who" means, and which of them, a reader has to guess.
NO_ACTOR = re.compile(r"(?:^|[.:;?!]\s+)(?:Who|The same of|Of (?:the|an?))\s|\b(?:[Nn]o|[Ss]ome)body\b")
NO_ACTOR_SAID = re.compile(r"\b(?:[Nn]o|[Ss]ome)body\b")  # in a message
MESSAGES = ("src/", "python/penstock/", "python/penstock_bench/")
MAYBE_NO_ACTOR = re.compile(r"(?:Who|The same of|Of (?:the|an?))\s|(?:[Nn]o|[Ss]ome)body")  # of NO_ACTOR


def rule_columns(source: Source, _) -> Iterator[Finding]:
    if source.suffix not in CODE:
        return
    for number, line in enumerate(source.text.splitlines(), 1):
        if len(line) > COLUMNS:
            yield Finding("columns", source.path, number, f"{len(line)} columns; the limit is {COLUMNS}")


def rule_file_lines(source: Source, _) -> Iterator[Finding]:
    lines = source.text.count("\n")
    limit = ACCOUNT_LINES if has_account(source) else FILE_LINES
    if source.suffix in CODE and lines > limit:
        yield Finding("file-lines", source.path, 1, f"{lines} lines; the limit is {limit}: split the file by idea")
    if source.path == "README.md" and lines > README_LINES:
        text = f"{lines} lines; the limit is {README_LINES}: move details to a page of docs"
        yield Finding("file-lines", source.path, 1, text)


def has_account(source: Source) -> bool:
    """Whether the file opens with a numbered account: at least three steps or laws, in order."""
    head = re.match(r'\A(?:(?:(?://|#|!)[^\n]*\n)+|/\*.*?\*/|""".*?""")', source.text, re.S)
    numbers = re.findall(r"^(?://|#|!|\*)?\s*(\d)\. \S", head.group(0) if head else "", re.M)
    return len(numbers) >= 3 and numbers == [str(i + 1) for i in range(len(numbers))]


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
        functions = modules.module_in(source.text).functions
    except SyntaxError as error:
        yield Finding("syntax", source.path, error.lineno or 1, f"{error.msg}: this Python cannot read it")
        return
    for one in functions:
        if one.lines > FUNCTION_LINES:
            yield Finding("function-lines", source.path, one.line, f"{one.name} has {one.lines} lines")


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
    for line, text in cpp.comments(source.text) if source.suffix in CPP else []:
        if DEAD_CODE.match(text):
            yield Finding("dead-code", source.path, line, f"'{text.strip()}': commented-out code")


def comments(source: Source) -> Iterator[tuple[int, str]]:
    """(line, text) of the words people read: comments, docstrings, pages."""
    if source.suffix in CPP:
        yield from ((line, text.strip("/* \n")) for line, text in cpp.comments(source.text))
    elif source.suffix == ".md":
        yield from enumerate(source.text.splitlines(), 1)
    elif source.suffix in (".cmake", ".sh") or PurePosixPath(source.path).name == "Makefile":
        for line, text in enumerate(source.text.splitlines(), 1):
            if comment := HASH_COMMENT.search(text):
                yield line, comment.group(1)
    elif source.suffix == ".py":
        with contextlib.suppress(tokenize.TokenError, SyntaxError):
            for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
                if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and '"""' in token.string):
                    yield token.start[0], token.string.strip('#" \n')


def strings(source: Source) -> Iterator[tuple[int, str]]:
    """(line, text) of the literals that may become messages, in Python those of one line: others are docstrings."""
    if source.suffix in CPP:
        for match in cpp.TOKENS.finditer(source.text):
            if match.group(0).startswith(('"', 'R"')):
                yield line_of(source.text, match.start()), match.group(0)
    elif source.suffix == ".py":
        with contextlib.suppress(SyntaxError):
            tree = ast.parse(source.text)
            for node in ast.walk(tree):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" not in node.value:
                    yield node.lineno, node.value


def rule_words(source: Source, _) -> Iterator[Finding]:
    if source.suffix == ".py" and not MAYBE_NO_ACTOR.search(source.text):
        return  # to find the comments of a module takes longest
    said = [(line, text, NO_ACTOR) for line, text in comments(source)]
    if source.path.startswith(MESSAGES) and not re.search(TESTS, source.path):
        said += [(line, text, NO_ACTOR_SAID) for line, text in strings(source)]
    for line, text, pattern in said:
        for match in pattern.finditer(text):
            words = match.group(0).strip(" .:;?!\n")
            yield Finding("words", source.path, line + text.count("\n", 0, match.start()), f"'{words}': name the actor")


def rule_links(source: Source, sources: dict[str, Source]) -> Iterator[Finding]:
    """A page that another page links to is there."""
    if source.suffix != ".md":
        return
    for match in re.finditer(r"\]\(([^)\s:#]+\.md)(?:#[^)\s]*)?\)", source.text):
        page = posixpath.normpath(posixpath.join(posixpath.dirname(source.path), match.group(1)))
        if page not in sources:
            yield Finding("link", source.path, line_of(source.text, match.start()), f"there is no {page}")


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
    parents = set(map(str, path.parents))
    for other in sources.values():
        if other.suffix == ".cmake" and other.folder in parents:
            relative = str(path.relative_to(other.folder))
            if re.search(rf"(?<![\w/-]){re.escape(relative)}(?![\w])", other.text):
                return
            beside = other.folder == source.folder
            if beside and re.search(rf"(?<![\w/-]){re.escape(path.stem)}(?![\w])", other.text):
                return
    yield Finding("unlisted", source.path, 1, "no CMakeLists.txt names it, so nothing builds it")


def rule_tested(source: Source, sources: dict[str, Source]) -> Iterator[Finding]:
    """x.cpp in src is tested by a test beside it, above it in its layer or under tests that names it or its header."""
    path = PurePosixPath(source.path)
    if not source.path.startswith("src/") or path.suffix not in (".cpp", ".cu") or path.stem.endswith("_test"):
        return
    header = "/".join(path.with_suffix(".hpp").parts[1:])
    mention = re.compile(rf'"{re.escape(header)}"|(?<![A-Za-z0-9]){re.escape(path.stem)}(?![A-Za-z0-9])')
    parents = set(map(str, path.parents[:-2]))  # those within src
    for name, other in sources.items():
        beside = other.folder in parents and other.stem.endswith("_test")
        if not beside and not name.startswith("tests/"):
            continue
        if path.stem.startswith(other.stem.removesuffix("_test") + "_") or mention.search(other.text):
            return
    yield Finding("untested", source.path, 1, f"no test in {path.parent}, above it or in tests is for it")
