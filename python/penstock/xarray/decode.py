"""Missing values and scale factors of CF, applied where the values are: xarray's own code works on NumPy alone.

What must stay true: types, attributes and encoding of the result are what xarray gives, because xarray is asked, with
one zero of the same type and attributes; values are those that it computes, element by element.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from xarray import Variable, conventions


@dataclass(frozen=True)
class Decoding:
    """From stored numbers to values. `reread_as`: the type with the other sign, where `_Unsigned` says so."""

    dtype: np.dtype[Any]
    reread_as: np.dtype[Any] | None
    missing: tuple[Any, ...]
    scale: Any
    offset: Any

    def __call__(self, stored: Any) -> Any:
        """An array of any library, changed in place where it has the type already."""
        if self.reread_as is not None:
            stored = stored.astype(self.reread_as)
        values = stored.astype(self.dtype)
        for number in self.missing:
            values[stored == number] = np.nan
        if self.scale is not None:
            values *= self.scale
        if self.offset is not None:
            values += self.offset
        return values


def decoding_of(dims: tuple[str, ...], dtype: np.dtype[Any], attributes: Mapping[str, Any]) -> tuple[Any, Variable]:
    """(what makes values of stored numbers, or None where nothing does; an example of the decoded variable)."""
    zero = Variable(dims, np.zeros((1,) * len(dims), dtype), dict(attributes))
    example = conventions.decode_cf_variable(
        "values", zero, concat_characters=False, decode_times=False, decode_timedelta=False
    )
    scale, offset = _number(attributes.get("scale_factor")), _number(attributes.get("add_offset"))
    reread_as = _other_sign(dtype, attributes.get("_Unsigned"))
    missing = _missing(attributes, dtype, reread_as)
    if example.dtype == dtype and not missing and scale is None and offset is None:
        return None, example
    return Decoding(example.dtype, reread_as, missing, scale, offset), example


def _number(value: Any) -> Any:
    return None if value is None else np.asarray(value).item()


def _other_sign(dtype: np.dtype[Any], said: Any) -> np.dtype[Any] | None:
    if dtype.kind == "i" and said == "true":
        return np.dtype(f"u{dtype.itemsize}")
    return np.dtype(f"i{dtype.itemsize}") if dtype.kind == "u" and said == "false" else None


def _missing(attributes: Mapping[str, Any], dtype: np.dtype[Any], reread_as: np.dtype[Any] | None) -> tuple[Any, ...]:
    """Numbers that stand for what is missing, as the stored numbers are compared with them."""
    found: dict[Any, None] = {}
    for key in ("missing_value", "_FillValue"):
        for number in np.ravel(attributes[key]) if key in attributes else ():
            if number != number:
                continue  # NaN is missing as it is
            plain = np.asarray(number).astype(dtype).view(reread_as) if reread_as is not None else np.asarray(number)
            found[plain.item()] = None
    return tuple(found)
