"""Text of variable length, as values to write: str, lists of them, and arrays of NumPy that hold text.

The format's library writes it, from host memory. What must stay true: what is no text throughout is refused before
anything is made, and so is what the library would cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock._arrays.dtype import DType
from penstock.formats.faults import refused
from penstock.formats.model import DatasetInfo, Writer
from penstock.formats.reading.request import Request

TEXT = DType.objects("text")


@dataclass(frozen=True)
class Texts:
    """An array of NumPy of str; what all values to write have in common it has too."""

    array: np.ndarray
    device: str = "host"
    dtype: DType = TEXT

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def ndim(self) -> int:
        return self.array.ndim


def texts_of(value: Any) -> Texts | None:
    """None where the value is no text at all. TypeError where a part of it is none."""
    if isinstance(value, Texts):
        return value
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if not (isinstance(value, (str, list, tuple)) or kind in ("O", "T")):
        return None
    found = np.array(value, dtype=object)
    kinds = {type(one) for one in found.flat}
    if not any(issubclass(one, str) for one in kinds):
        return None
    for one in kinds:
        if not issubclass(one, str):
            advice = "make text of them, or write them on their own"
            raise TypeError(f"a list of text has elements of {one.__name__}: {advice}")
    return Texts(found)


def text_for(info: DatasetInfo, value: Any) -> Texts:
    """A value for a dataset of text. TypeError of another."""
    if getattr(getattr(value, "dtype", None), "kind", "") == "U":
        value = np.asarray(value).astype(object)
    if isinstance(value, (list, tuple, np.ndarray)) and not np.size(np.array(value, dtype=object)):
        return Texts(np.array(value, dtype=object))
    found = texts_of(value)
    if found is None:
        raise TypeError(f"dataset {info.name!r} has elements of {info.dtype}; the value is a {type(value).__name__}")
    return found


def is_written(info: DatasetInfo) -> bool:
    """Whether its elements are text, which a library writes; other objects are told by the checks of all values."""
    return info.dtype == TEXT


def write_all(writer: Writer, requests: Sequence[Request]) -> list[str]:
    """Writes the text, and says of each how it went, for the evidence."""
    return [_write(writer, one) for one in requests]


def _write(writer: Writer, one: Request) -> str:
    info, selection = one.info, one.selection
    value = text_for(info, one.out).array
    if selection.picks is not None or any(step != 1 for step in selection.steps):
        raise refused(writer.name, "text is written in boxes, not by steps or lists", "write it box by box", info.name)
    if value.shape != selection.shape:
        raise ValueError(f"the value has shape {value.shape}, the selection of dataset {info.name!r} {selection.shape}")
    for text in value.flat:
        if "\0" in text:
            cause = f"the text {text[:40]!r} has a zero character in it, where stored text ends"
            raise refused(writer.name, cause, "store its bytes", info.name)
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise refused(writer.name, f"the text {text[:40]!r} is no UTF-8", "store its bytes", info.name) from error
    if value.size:
        writer.write_values(info.name, selection.box, value.reshape(selection.counts))
    return f"{info.name}: written by the format's library from host memory: {info.conversion}"
