"""The value that marks what is missing in an array, where Zarr keeps it for xarray."""

from __future__ import annotations

import base64
import binascii
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

from penstock.formats.model import DatasetInfo


def fill_mark(stored: Any, info: DatasetInfo, folder: Path) -> dict[str, Any]:
    """As an attribute, or nothing. Version 3 has one, as xarray wrote it; in version 2 the fill value is the mark."""
    dtype = np.dtype(info.dtype.native)
    older = folder / ".zarray"
    if older.is_file():
        said = json.loads(older.read_bytes()).get("fill_value")
        fill = info.fill
        if said is None or fill is None:
            return {}
        if info.dtype.host_only:
            return {"_FillValue": fill.decode("utf-8", "surrogateescape") if info.dtype.name == "text" else fill}
        return {"_FillValue": np.frombuffer(fill, np.dtype(info.dtype)).astype(dtype)[0]}
    if not isinstance(stored, str) or dtype.kind != "f":
        return {}
    try:
        return {"_FillValue": dtype.type(struct.unpack("<d", base64.b64decode(stored, validate=True))[0])}
    except (binascii.Error, struct.error):
        return {"_FillValue": dtype.type(float(stored))}
