"""The name of a file as the user gave it: a path, and never an address of another machine.

What must stay true: all that take a name refuse the same ones, in the same words.
"""

from __future__ import annotations

import os
import re
import sys

from penstock._error import Error

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


def file_name(name: str | bytes | os.PathLike[str], operation: str) -> str:
    """As text, of which os.fsencode makes the bytes again. TypeError for what is no name, ValueError for one that no
    file can have, Error of a URL, which would be taken for folders of the current one."""
    try:
        text = os.fsdecode(name)
    except TypeError:
        other = "; give the name of that file" if hasattr(name, "read") else ""
        raise TypeError(f"the name of a file is a str, bytes or path, not {type(name).__name__}{other}") from None
    if not text:
        raise ValueError("the name of a file is empty")
    if "\0" in text:
        raise ValueError(f"the name {text!r} holds a zero character, which no name of a file can")
    try:
        os.fsencode(text)
    except UnicodeEncodeError as error:
        sign, code = text[error.start], sys.getfilesystemencoding()
        raise ValueError(f"the name {text!r} holds {sign!r}, which the system's {code} cannot encode") from None
    found = _URL.match(text)
    if found is not None:
        raise _url(text, found[1], operation)
    return text


def is_set(name: str) -> bool:
    """Whether it stands for files of several processes: a run of # in its last part is for their numbers."""
    return "#" in name and "#" in os.path.basename(name) and not os.path.lexists(name)  # noqa: PTH110, PTH119 - quick


def _url(text: str, scheme: str, operation: str) -> Error:
    advice = "download it, or mount its store as a file system, and give the path"
    if scheme.lower() == "file":
        advice = "give the path without file://"
    cause = f"it is a URL ({scheme}), Penstock takes names of files"
    return Error(code="unsupported", operation=operation, file=text, cause=cause, advice=advice)
