"""Reference: an element or attribute that leads to another object of the same file.

HDF5 keeps addresses, which mean nothing outside of the library. A name does: `file[reference]` is the dataset or group.
What must stay true: it is plain data, which outlives the file and can be pickled.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from penstock._arrays.host_array import HostArray


@dataclass(frozen=True)
class Reference:
    """Leads to a dataset or group: `file[reference]`. False where it leads nowhere.

    Args:
        name: the whole path of the object, as "/group/x"; "/" is the file, "" nothing.
        selection: of a region: an index that NumPy takes for an array of that dataset. Of scattered elements it is a
            tuple of arrays of positions.
    """

    name: str
    selection: Any = field(default=None, compare=False)

    def __bool__(self) -> bool:
        return bool(self.name)


def as_reference(value: Any) -> Reference | None:
    """A Reference, or the one that an array without dimensions holds, as reading one gives it; None of all else."""
    if isinstance(value, HostArray) and not value.ndim:
        value = value.item()
    return value if isinstance(value, Reference) else None


def split(selection: Any, shape: tuple[int, ...]) -> tuple[list[str], Any]:
    """(names of members, what else of an index) of what a dataset is indexed with: names, a region, or neither.
    IndexError of a region that names single elements, and of one that is of another dataset's shape."""
    if isinstance(selection, str):
        return [selection], ...
    if isinstance(selection, tuple) and any(isinstance(part, str) for part in selection):
        rest = tuple(part for part in selection if not isinstance(part, str))
        return [part for part in selection if isinstance(part, str)], rest[0] if len(rest) == 1 else rest or ...
    region = as_reference(selection)
    if region is None:
        return [], selection
    parts = region.selection
    if not isinstance(parts, tuple) or len(parts) != len(shape) or not all(isinstance(one, slice) for one in parts):
        raise IndexError(
            f"the reference to {region.name!r} names no box of a dataset of shape {shape}; of a region of scattered "
            "elements file[reference][...].to_numpy()[reference.selection] has them"
        )
    return [], parts
