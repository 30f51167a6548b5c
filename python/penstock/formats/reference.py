"""Reference: an element or attribute that leads to another object of the same file.

HDF5 keeps addresses, which mean nothing outside of the library. A name does: `file[reference]` is the dataset or group.
What must stay true: it is plain data, which outlives the file and can be pickled.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


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
