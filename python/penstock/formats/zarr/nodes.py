"""The hierarchy of a Zarr store: which folders are groups and arrays, and what their documents say.

Consolidated metadata are not needed: folders are at hand, and what they say is never out of date. What must stay true:
a name has no empty parts, no "." and no "..", and no part of it is a symbolic link, so it never leads out of the store.
"""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock._error import Error
from penstock._files.documents import member, parse, read_document
from penstock.formats.faults import damaged, refused
from penstock.formats.new_file import is_temporary
from penstock.formats.simple.single import identity_of, look_at, need_same
from penstock.formats.zarr.array import ArrayMeta, parse_array
from penstock.formats.zarr.v2 import parse_array_v2

DOCUMENT = "zarr.json"
_MOST_NAME = 255  # NAME_MAX of Linux
_ARRAY_V2, _GROUP_V2, _ATTRIBUTES_V2 = ".zarray", ".zgroup", ".zattrs"
MARKS = (DOCUMENT, _GROUP_V2, _ARRAY_V2)  # a folder with one of these is a store


class Nodes:
    """A store's nodes, read as they are asked for."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._arrays: dict[str, ArrayMeta | None] = {}
        self.elsewhere: dict[str, str] = {}  # folders of arrays that are being written
        if not os.path.isdir(root):  # noqa: PTH112 - raises nothing, whatever the name
            there = os.path.lexists(root)
            raise Error(
                code="not_found",
                operation="open the Zarr store",
                file=root,
                cause="it is not a folder" if there else "there is nothing of that name",
                advice="give the path of the store's folder",
                system_code=errno.ENOTDIR if there else errno.ENOENT,
            )
        self.identity = identity_of(look_at(root))
        if self.kind("") is None:
            cause = f"the folder has neither {DOCUMENT} nor {_GROUP_V2} nor {_ARRAY_V2}"
            advice = "give the folder that has one of them, or copy the store again, whole"
            raise Error(code="unsupported", operation="open the Zarr store", file=root, cause=cause, advice=advice)

    def plain(self, name: str) -> str:
        """The name without slashes around it. Raises KeyError for what can be no name."""
        stripped = name.strip("/")
        if stripped and any(part in ("", ".", "..") or "\0" in part for part in stripped.split("/")):
            raise KeyError(f"{self.root}: {name!r} is not a valid name of a node")
        return stripped

    def folder(self, name: str) -> str:
        return self.elsewhere.get(name) or (f"{self.root}/{name}" if name else self.root)

    def is_free(self, name: str) -> bool:
        """Whether nothing has the name, and no part of it leads elsewhere."""
        return not self._is_link(name) and not os.path.lexists(self.folder(name))

    def arrays(self) -> tuple[str, ...]:
        """Names of all arrays, in order; "" is a store that is one array."""
        found = tuple(sorted(name for name, kind in self._walk("") if kind == "array"))
        need_same(self.root, self.identity)  # one that is replaced is emptied meanwhile
        return found

    def array(self, name: str) -> ArrayMeta | None:
        """None: there is no array of that name."""
        if name not in self._arrays:
            self._arrays[name] = self._read_array(name)
        return self._arrays[name]

    def set_array(self, name: str, meta: ArrayMeta | None) -> None:
        """What is known from now on; None: read it again."""
        self._arrays.pop(name, None)
        if meta is not None:
            self._arrays[name] = meta

    def attributes(self, name: str) -> Mapping[str, Any]:
        """Attributes of a group, or of the array that is the whole store."""
        kind = self.kind(name)
        if kind is None:
            raise KeyError(f"{self.root} has no group {name!r}")
        if kind == "array":
            meta = self.array(name)
            return meta.attributes if meta is not None else {}
        document = self.document(name, DOCUMENT)
        if document is None:
            return self.document(name, _ATTRIBUTES_V2) or {}
        return self._judged(name, lambda: member(document, "attributes", dict) if "attributes" in document else {})

    def document(self, name: str, file: str) -> dict[str, Any] | None:
        """One JSON document of a node; None where there is none. Raises Error."""
        path = f"{self.folder(name)}/{file}"
        try:
            raw = read_document(path)
            return None if raw is None else parse(raw)
        except ValueError as error:
            raise damaged(path, str(error), name) from None
        except OSError as error:
            raise Error.of(error, "read", path, "check its permissions") from error

    def _walk(self, name: str) -> Iterator[tuple[str, str]]:
        """Nodes from a group downwards. Folders of arrays hold chunks, not nodes. A node whose document cannot be read
        is listed as an array, so that asking for it tells why; what lies below it is looked for all the same."""
        waiting = [name]
        while waiting:
            current, is_broken = waiting.pop(), False
            try:
                kind = self.kind(current)
            except Error:
                kind, is_broken = "array", True
            if kind is None:
                continue
            yield current, kind
            if kind == "group" or is_broken:
                waiting += [f"{current}/{part}" if current else part for part in self._folders(current)]

    def _folders(self, name: str) -> list[str]:
        try:
            with os.scandir(self.folder(name)) as entries:
                found = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
                return [name for name in found if not is_temporary(name)]
        except OSError as error:
            raise Error.of(error, "list", self.folder(name), "check its permissions") from error

    def kind(self, name: str) -> str | None:
        """ "group", "array", or None: no node. Raises Error of a document that is damaged."""
        if self._is_link(name):
            return None
        document = self.document(name, DOCUMENT)
        if document is not None:
            return self._judged(name, lambda: _node_type(document))
        if _has(self.folder(name), _ARRAY_V2):
            return "array"
        return "group" if _has(self.folder(name), _GROUP_V2) else None

    def is_group(self, name: str) -> bool:
        """Whether a group has the name, also one without arrays."""
        try:
            return self.kind(self.plain(name)) == "group"
        except KeyError:
            return False

    def _is_link(self, name: str) -> bool:
        path = self.root
        for part in name.split("/") if name else ():
            path = f"{path}/{part}"
            if os.path.islink(path):  # noqa: PTH114 - raises nothing, whatever the name
                return True
        return False

    def _read_array(self, name: str) -> ArrayMeta | None:
        if self.kind(name) != "array":
            return None
        document = self.document(name, DOCUMENT)
        if document is not None:
            return self._judged(name, lambda: parse_array(document))
        older = self.document(name, _ARRAY_V2) or {}
        attributes = self.document(name, _ATTRIBUTES_V2) or {}
        return self._judged(name, lambda: parse_array_v2(older, attributes))

    def _judged(self, name: str, action: Any) -> Any:
        try:
            return action()
        except ValueError as error:
            raise damaged(self.folder(name), str(error), name) from None


def _node_type(document: dict[str, Any]) -> str:
    version = member(document, "zarr_format", int)
    if version != 3:
        raise ValueError(f"zarr_format {version} in {DOCUMENT} is not 3")
    kind = member(document, "node_type", str)
    if kind not in ("array", "group"):
        raise ValueError(f"node_type {kind[:40]!r} is not one of 'array' and 'group'")
    return kind


def _has(folder: str | Path, document: str) -> bool:
    """False also where the system does not let this process look."""
    return os.path.isfile(f"{folder}/{document}")  # noqa: PTH113 - raises nothing


def parents(name: str) -> list[str]:
    """Groups that a node is in, from the root ("") on."""
    parts = name.split("/") if name else []
    return ["/".join(parts[:count]) for count in range(len(parts))]


def store_of(name: str) -> str:
    """The outermost group that a node is of: two writers of one store are refused, whatever nodes they open."""
    folder = Path(name).absolute()
    while any(_has(folder.parent, mark) for mark in MARKS):
        folder = folder.parent
    return str(folder)


def checked_name(nodes: Nodes, file: str, given: str) -> str:
    """The name of a new array, plain. Error of one that Zarr does not have."""
    try:
        name = nodes.plain(given)
    except KeyError:
        name = ""
    if not name or any(part.startswith("__") or part == DOCUMENT for part in name.split("/")):
        raise refused(file, f"{given!r} is not a valid name for an array in Zarr", dataset=given)
    if any(len(os.fsencode(part)) > _MOST_NAME for part in name.split("/")):
        cause = f"a part of the name is too long for a folder: {_MOST_NAME} bytes are the most"
        raise refused(file, cause, dataset=name)
    return name


def need_distinct(file: str, names: Sequence[str]) -> None:
    """Error where two arrays of one call have one name, or one lies in the other."""
    above = {group for name in names for group in parents(name)}
    twice = next((name for name, times in Counter(names).items() if times > 1 or name in above), None)
    if twice is not None:
        cause = "another array of this call " + ("lies in it" if twice in above else "has this name")
        raise refused(file, cause, "give another name", twice)
