"""Attributes of HDF5 objects: read when asked for, written in the forms that other readers know.

What must stay true: an attribute that h5py cannot read fails when it is asked for, by name, not before; nothing here
is kept after it was given out, so nothing goes stale.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import h5py
import numpy as np
from h5py import h5, h5a, h5p, h5t

from penstock.formats.faults import refused, unsupported
from penstock.formats.hdf5.faults import cause_of
from penstock.formats.hdf5.open import explained, high_level, name_text
from penstock.formats.hdf5.values import in_order, reference_of, told

Opener = Callable[[], Any]


class StoredAttributes(Mapping[str, Any]):
    """`open` gives the low-level object each time, and raises Error when the file is closed or was changed.
    `hidden` are not shown; where there are such, one number or text in an array is a number or text, and references to
    other objects are not listed, as for netCDF."""

    def __init__(self, file: str, open: Opener, hidden: frozenset[str] = frozenset()) -> None:
        self._file = file
        self._open = open
        self._hidden = hidden

    def __getitem__(self, name: str) -> Any:
        attributes = high_level(self._open()).attrs
        with explained(self._file):
            is_there = name not in self._hidden and name in attributes
        if not is_there:
            raise KeyError(name)
        try:
            value = plain(_followed(attributes[name], name, attributes))
            return value[0] if self._hidden and _is_single(value) else value
        except (OSError, TypeError, ValueError, RuntimeError) as error:
            raise unsupported(self._file, f"attribute {name!r} cannot be read: {cause_of(error)}") from error

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    def __repr__(self) -> str:
        return repr(dict(self))

    def _names(self) -> list[str]:
        """In the order of stock tools: as they were made, where the object keeps that order (netCDF-4), or by name."""
        target, found = self._open(), []
        with explained(self._file, names_exist=True):
            is_kept = target.get_create_plist().get_attr_creation_order() & h5p.CRT_ORDER_TRACKED
            order = h5.INDEX_CRT_ORDER if is_kept else h5.INDEX_NAME
            for index in range(h5a.get_num_attrs(target)):
                attribute = h5a.open(target, index=index, index_type=order)
                name = name_text(attribute.name)
                if not self._hidden or (name not in self._hidden and not _refers(attribute.get_type())):
                    found.append(name)
        return found


def _followed(value: Any, name: str, attributes: h5py.AttributeManager) -> Any:
    """References as ours, which can be followed; also in arrays, lists and members. Numbers of lists as they are."""
    if isinstance(value, (h5py.Reference, h5py.RegionReference)):
        return reference_of(value, attributes._id)
    if isinstance(value, np.ndarray) and value.dtype.hasobject and not h5py.check_string_dtype(value.dtype):
        return told(value, value.dtype, attributes._id)
    if isinstance(value, np.ndarray) and value.ndim == 1 and not value.dtype.hasobject:
        inner = h5py.check_vlen_dtype(attributes.get_id(name).dtype)  # the value is one list
        return value if inner is None else in_order(value, np.dtype(inner))
    return value


def _is_single(value: Any) -> bool:
    return value.shape == (1,) if isinstance(value, np.ndarray) else isinstance(value, list) and len(value) == 1


def write_attribute(file: str, target: Any, name: str, value: Any) -> None:
    """As h5py does it: text of variable length, numbers in the types of NumPy. Numbers of the same shape and type are
    written over, in place; all else is made anew, because text that is written over frees the old one's place in the
    file, and a reader may still be led there."""
    attributes = high_level(target).attrs
    try:
        text = _as_text(value)
        if text is not None:
            attributes.create(name, text, dtype=h5py.string_dtype())
        elif name in attributes and _is_alike(attributes.get_id(name), np.asarray(value)):
            attributes.modify(name, value)
        else:
            attributes.create(name, value)
    except (OSError, TypeError, ValueError, RuntimeError) as error:
        cause = f"attribute {name!r} cannot be written: {cause_of(error)} (it is of type {type(value).__name__})"
        raise refused(file, cause, "text, numbers and lists of them can be") from error


def _as_text(value: Any) -> Any:
    """Text and arrays of text as h5py takes them; None for all else. TypeError of lists in which only a part is text:
    NumPy would make text of the rest."""
    if isinstance(value, str):
        return value
    values = np.asarray(value) if isinstance(value, (list, tuple, np.ndarray)) else np.empty(0)
    if not values.size or values.dtype.kind != "U":
        return None
    others = {type(one).__name__ for one in np.array(value, object).flat if not isinstance(one, str)}
    if others:
        raise TypeError(f"text and {', '.join(sorted(others))} cannot be in one list")
    return values.astype(object)


def _is_alike(stored: h5a.AttrID, value: np.ndarray) -> bool:
    return stored.shape == value.shape and stored.dtype == value.dtype and value.dtype.kind in "biufc"


def _refers(stored: h5t.TypeID) -> bool:
    return stored.detect_class(h5t.REFERENCE)


def plain(value: Any) -> Any:
    """Text as str, several texts as a list of str; numbers as h5py gives them."""
    if isinstance(value, h5py.Empty):
        return "" if value.dtype.kind in "SO" else None
    if isinstance(value, bytes):
        return _text(value)
    if isinstance(value, np.ndarray) and value.dtype.kind in "SO":
        return _texts(value.tolist())
    return value


def _texts(values: Any) -> Any:
    """Also in lists of lists."""
    if isinstance(values, list):
        return [_texts(one) for one in values]
    return _text(values) if isinstance(values, bytes) else values


def _text(value: bytes) -> str:
    return value.rstrip(b"\0").decode("utf-8", "surrogateescape")
