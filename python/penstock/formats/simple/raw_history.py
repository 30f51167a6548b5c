"""The folder that a history leaves as raw files: a file for each variable, and penstock.json that tells of them.

What must stay true: a variable has the steps that the index counted when it was opened, and not one more; its file is
in the folder, under a name without a path; whatever the index says, elements lie in their file, or an Error tells why.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from penstock._arrays.dtype import DType
from penstock._error import Error
from penstock._files.documents import integers, member, parse, read_document, short, texts
from penstock.formats.faults import cut_short, damaged, told, unknown, unsupported
from penstock.formats.model import Box, ChunkTable, Container, DatasetInfo, Watch
from penstock.formats.simple.single import Identity, bytes_of, extent_table, identity_of, look_at, need_same

INDEX = "penstock.json"
_KIND = "penstock raw history"
_NO_NUMBERS = {"NaN", "Infinity", "-Infinity"}  # as text, because JSON has none of them
_ADVICE = "give a folder that History(format='raw') wrote, or copy it again, whole"


class RawHistory(Container):
    """The variables of a folder. Their descriptions are made at once: an index has them all."""

    format = "raw-history"

    def __init__(self, name: str | os.PathLike[str]) -> None:
        self.name = os.fspath(name)
        self._folder = identity_of(look_at(self.name))
        self._seen: dict[str, Identity] = {}
        self._datasets: dict[str, tuple[DatasetInfo, str]] = {}
        index = self._index()
        try:
            if index.get("format") != _KIND:
                raise ValueError(f"its format is {short(index.get('format'))}, not {_KIND!r}")
            steps, version = member(index, "steps", int), member(index, "version", int)
            if steps < 0:
                raise ValueError(f"it counts {steps} steps")
            self._attributes: Mapping[str, Any] = member(index, "attributes", dict)
            variables = member(index, "variables", dict)
        except ValueError as error:
            raise damaged(self._path(INDEX), str(error), advice=_ADVICE) from None
        if version != 1:
            raise unsupported(self._path(INDEX), f"raw histories of version {version}", "version 1 is known")
        for variable, entry in variables.items():
            try:
                self._datasets[variable] = _described(variable, entry, steps)
            except (TypeError, ValueError) as error:
                raise damaged(self._path(INDEX), str(error), variable) from None

    def _path(self, file: str) -> str:
        return os.path.join(self.name, file)  # noqa: PTH118 - names are text here

    def _index(self) -> dict[str, Any]:
        path = self._path(INDEX)
        try:
            with told("open", path, "check the name and its permissions"):
                raw = read_document(path)
            if raw is None:
                cause = f"the folder has no {INDEX}"
                raise Error(code="unsupported", operation="open", file=self.name, cause=cause, advice=_ADVICE)
            return parse(raw)
        except ValueError as error:
            raise damaged(path, str(error), advice=_ADVICE) from None

    def names(self) -> Sequence[str]:
        return tuple(self._datasets)

    def info(self, name: str) -> DatasetInfo:
        return self._find(name)[0]

    def _find(self, name: str) -> tuple[DatasetInfo, str]:
        if name not in self._datasets:
            raise unknown(self.name, name, self._datasets)
        return self._datasets[name]

    def _file_of(self, name: str) -> str:
        """Its file, which was of this folder when it was first asked for, and is the same one still."""
        info, file = self._find(name)
        path = self._path(file)
        if file in self._seen:
            status = need_same(path, self._seen[file])
        else:
            status = look_at(path)
            need_same(self.name, self._folder)
            self._seen[file] = identity_of(status)
        if bytes_of(info) > status.st_size:
            cause = f"{info.shape} of {info.dtype} are {bytes_of(info)} bytes, the file has {status.st_size}"
            raise cut_short(path, cause, name)
        return path

    def table(self, name: str, box: Box) -> ChunkTable:
        info = self.info(name)
        return extent_table(self._file_of(name), info.ndim, 0, bytes_of(info))

    def watch(self, name: str) -> Watch | None:
        file = self._file_of(name)
        return Watch(file, *self._seen[self._find(name)[1]])

    def place(self, name: str) -> int | None:
        self._file_of(name)
        return 0

    def attributes(self, group: str = "") -> Mapping[str, Any]:
        if group.strip("/"):
            raise KeyError(f"{self.name} has no group {group!r}")
        return self._attributes

    def close(self) -> None:
        """Nothing is held open."""


def _described(name: str, entry: Any, steps: int) -> tuple[DatasetInfo, str]:
    """A variable and its file. Raises ValueError and TypeError."""
    if not isinstance(entry, dict):
        raise ValueError(f"its entry is {short(entry)}")
    file = member(entry, "file", str)
    if not file or file in (".", "..") or "/" in file or "\0" in file:
        raise ValueError(f"its file is {short(file)}, which is no name of a file in the folder")
    dtype, grows = DType.of(member(entry, "dtype", str)), member(entry, "grows", bool)
    shape = integers(member(entry, "shape", list), "its shape", 1)
    if grows:
        shape = (steps, *shape)
    dimensions = texts(member(entry, "dimensions", list), "its list of dimensions", len(shape))
    if None in dimensions:
        raise ValueError("a dimension has no name")
    info = DatasetInfo(
        name,
        shape,
        dtype,
        shape,
        resizable=(None, *shape[1:]) if grows else None,
        dimensions=tuple(str(one) for one in dimensions),
        attributes={key: _number(value, dtype) for key, value in member(entry, "attributes", dict).items()},
    )
    if bytes_of(info) >= 1 << 63:
        raise ValueError(f"its shape {shape} has more bytes than a file can hold")
    return info, file


def _number(value: Any, dtype: DType) -> Any:
    """NaN and infinity as the elements have them, where they stand as text."""
    if isinstance(value, str) and value in _NO_NUMBERS and np.dtype(dtype).kind in "fc":
        return np.dtype(dtype).type(value.replace("Infinity", "inf"))
    return value


def refuse_writing(name: str | os.PathLike[str], *, append: bool = False) -> NoReturn:
    """In place of a writer."""
    raise Error(
        code="unsupported",
        operation="write",
        file=os.fspath(name),
        cause="a folder of raw files is written step by step, by a running model",
        advice="write it with penstock.History(format='raw'), and one file of elements with save(format='raw')",
    )
