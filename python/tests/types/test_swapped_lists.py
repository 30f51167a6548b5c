"""Lists of numbers in the other byte order. h5py gives their bytes another order, so the values are those of h5dump."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps

h5py = pytest.importorskip("h5py")

KINDS = [">i2", ">i4", ">u8", ">f4", ">f8", "<i4", "<f8"]


def list_attribute(target: Any, name: str, dtype: Any, values: Any) -> None:
    """One list, without dimensions, which h5py's high level does not write."""
    kind, one = h5py.h5t.py_create(dtype, logical=True), np.empty((), dtype)
    one[()] = values
    h5py.h5a.create(target.id, name.encode(), kind, h5py.h5s.create(h5py.h5s.SCALAR)).write(one)


@pytest.mark.parametrize("kind", KINDS)
def test_lists_have_their_values(kind: str, tmp_path: Path) -> None:
    lists, numbers = h5py.vlen_dtype(kind), np.array([1, 2], kind)
    deep, inside = np.empty(1, object), np.dtype([("n", "<i4"), ("l", lists)])
    deep[0] = numbers
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("plain", (2,), lists)[0] = numbers
        file.create_dataset("member", (1,), inside)[0] = (7, numbers)
        file.create_dataset("deep", (1,), h5py.vlen_dtype(lists))[0] = deep
        file.attrs.create("some", np.array([numbers, numbers[:1]], object), dtype=lists)
        list_attribute(file, "one", lists, numbers)
    with ps.open(tmp_path / "a.h5", device="host") as file:
        plain = file["plain"][...]
        assert plain[0].tolist() == [1, 2] and plain[1].tolist() == []
        assert file["member"][...]["l"][0].tolist() == [1, 2]
        assert file["deep"][...][0][0].tolist() == [1, 2]
        assert [one.tolist() for one in file.attrs["some"]] == [[1, 2], [1]]
        assert file.attrs["one"].tolist() == [1, 2]
