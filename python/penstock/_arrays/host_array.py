"""HostArray: elements of no fixed size (text, lists, references), as an array of NumPy in host memory.

What must stay true: it is NumPy's array and nothing less; what all arrays that reading gives have in common
(`to_numpy()`, `field()`, `on_host`) it has too, so that code which reads whole files needs no case for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np


class HostArray(np.ndarray[Any, Any]):
    """What reading text of variable length, lists and references gives: an array of NumPy, on every device. `device` is
    NumPy's own, "cpu"."""

    on_host = True

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            """Only what NumPy's arrays do not have. Methods of text are those of its elements."""
            if name == "decode" or (not name.startswith("_") and hasattr(str, name)):
                advice = "array.item() is the str of one without dimensions, array.tolist() has those of others"
                raise AttributeError(f"a penstock.HostArray has no .{name}: {advice}", name=name, obj=self)
            return object.__getattribute__(self, name)

    def to_numpy(self, dtype: Any = None, **_: Any) -> np.ndarray[Any, Any]:
        """A copy. pandas, which takes what has this method for an array of its own, names a type and more."""
        return np.array(self, dtype)

    def field(self, name: str) -> HostArray:
        """A member of compound elements. KeyError lists the members."""
        if name not in (self.dtype.names or ()):
            raise KeyError(f"no field {name!r}; there are {', '.join(self.dtype.names or ()) or 'none'}")
        return self[name]

    def members(self, names: Sequence[str]) -> HostArray:
        """The same elements with these members alone. KeyError lists the members."""
        for name in names:
            self.field(name)
        return cast("HostArray", self[list(names)])
