"""The name of a file as the user gave it: a path, and never an address of another machine."""

from __future__ import annotations

import os
import re

from penstock._error import Error

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


def refuse_url(name: str | bytes | os.PathLike[str], operation: str) -> None:
    """Raises Error of a URL, which would be taken for folders of the current one."""
    text = os.fsdecode(name)
    found = _URL.match(text)
    if found is None:
        return
    advice = "download it, or mount its store as a file system, and give the path"
    if found[1].lower() == "file":
        advice = "give the path without file://"
    cause = f"it is a URL ({found[1]}), Penstock takes names of files"
    raise Error(code="unsupported", operation=operation, file=text, cause=cause, advice=advice)
