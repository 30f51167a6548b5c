"""Turns the plain comments of a header, or of the Fortran module, into ones that Doxygen reads, and prints the result.

A comment above a declaration or behind it describes the declaration; the one at the head describes the file. Doxygen
asks for marks (`///`, `///<`, `@file`), which the sources do without.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

# Behind a declaration: text that ends in ; , { or a value, then the comment.
TRAILING = {
    ".hpp": (re.compile(r"^(\s*[^/\s].*?[;,{}\w)]) ?\s*// (.*)$"), r"\1  ///< \2"),
    ".h": (re.compile(r"^(\s*[^/\s*].*?[;,{}\w)])\s+/\* (.*)\*/\s*$"), r"\1 /**< \2*/"),
    ".f90": (re.compile(r"^(\s*[^!\s].*?)\s+! (.*)$"), r"\1 !< \2"),
}
ABOVE = {
    ".hpp": (re.compile(r"^(\s*)//( |$)"), r"\1///\2"),
    ".h": (re.compile(r"^(\s*)/\*( |$)"), r"\1/**\2"),
    ".f90": (re.compile(r"^(\s*)!( |$)"), r"\1!>\2"),
}


HEADING = re.compile(r"^\s*(/\*|//|!) ?-{2,}")  # a heading between declarations describes none of them
LATER_ITEM = re.compile(r"^ \* (\d\d)\. ")  # Doxygen wants numbers of two digits where those of one begin


def marked(text: str, kind: str) -> str:
    lines = []
    for line in text.splitlines():
        if HEADING.match(line):
            lines.append(line)
            continue
        line = LATER_ITEM.sub(r" *  \1. ", line)
        above, trailing = ABOVE[kind], TRAILING[kind]
        lines.append(above[0].sub(above[1], line) if above[0].match(line) else trailing[0].sub(trailing[1], line))
    return "\n".join(lines) + "\n"


def head(text: str, kind: str) -> str:
    """The comment at the head becomes the file's: `@file` stands at its beginning."""
    mark = {".hpp": "/// @file\n", ".h": "/** @file\n *\n * "}.get(kind, "")
    if kind == ".h":
        return text.replace("/** ", mark, 1)
    return mark + text


if __name__ == "__main__":
    source = Path(sys.argv[1])
    sys.stdout.write(head(marked(source.read_text(), source.suffix), source.suffix))
