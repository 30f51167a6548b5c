"""The flow model and its fields, as arrays of whatever device it is on.

What must stay true: a field is a view of the model's own memory, so it has other values after advance(); whoever holds
it keeps the model alive.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from penstock._shared import shared_context
from penstock.flow import _flow

if TYPE_CHECKING:
    import numpy as np

    from penstock._api import Context

HALO = _flow.HALO


@dataclass(frozen=True)
class FlowField:
    """What a field is, in the words of the CF conventions: `long_name`, `units`, and a `standard_name` where it has
    one. `name` is that in a file."""

    name: str
    long_name: str
    standard_name: str
    units: str

    @property
    def attrs(self) -> dict[str, str]:
        """For a file."""
        told = {"long_name": self.long_name, "standard_name": self.standard_name, "units": self.units}
        return {name: text for name, text in told.items() if text}


FIELDS = tuple(FlowField(*one) for one in _flow.fields())
_NUMBERS = {field.name: number for number, field in enumerate(FIELDS)}


class _OnGpu:
    """A field on a GPU, as CuPy and other libraries take it. It is complete whenever Python sees it."""

    def __init__(self, model: Model, address: int, index: int) -> None:
        self._model = model
        self.device = SimpleNamespace(id=index)
        self.shape = model.shape
        self.__cuda_array_interface__ = {
            "shape": model.shape,
            "typestr": "<f8",
            "data": (address, False),
            "strides": None,
            "version": 3,
        }


class _OnHost:
    """A field of the host, as NumPy takes it."""

    def __init__(self, model: Model, address: int) -> None:
        self._model = model
        self.__array_interface__ = {
            "shape": model.shape,
            "typestr": "<f8",
            "data": (address, False),
            "strides": None,
            "version": 3,
        }


class Model:
    """A warm bubble that rises in a box of air, with a tracer in it: compressible air without water, periodic in x and
    y, between a floor and a lid. `FIELDS` are 18 fields of float64, with dimensions (y, x, z) and HALO cells more on
    each side, which are not written.

        model = penstock.flow.Model((64, 64, 32))
        model.advance(100)
        history.put("PT", model["PT"])

    Args:
        cells: in x, y and z, at least 4 each. They are cubes.
        height: of the box, in metres.
        wind: in x, in m/s.
        bubble: how much warmer it is, in K.
        device, context: as of penstock.open().
    """

    def __init__(  # noqa: PLR0913 - one keyword a choice
        self,
        cells: Sequence[int],
        *,
        height: float = 10_000.0,
        wind: float = 10.0,
        bubble: float = 3.0,
        device: str = "auto",
        context: Context | None = None,
    ) -> None:
        nx, ny, nz = (operator.index(one) for one in cells)
        self.cells = nx, ny, nz
        self.shape = ny + 2 * HALO, nx + 2 * HALO, nz + 2 * HALO
        self._context = context or shared_context(device)
        told = self._context.device
        self.on_host = bool(told["emulated"])
        self._index = int(told["index"])
        self._raw = _flow.FlowModel(self._context._raw, self.cells, (float(height), float(wind), float(bubble)))

    @property
    def time(self) -> float:
        """Seconds since the begin."""
        return self._raw.time

    @property
    def time_step(self) -> float:
        """Seconds of one step of advance()."""
        return self._raw.time_step

    @property
    def spacing(self) -> float:
        """Metres from one cell to the next."""
        return self._raw.spacing

    @property
    def stream(self) -> int:
        """The CUDA stream on which it computes, as a number; 0 on the host, and of the default stream."""
        return self._raw.stream

    def use_default_stream(self, use: bool = True) -> None:
        """Computes on the default stream of the GPU, as models do that name none, or again on one of its own. On the
        host nothing changes."""
        self._raw.use_default_stream(bool(use))

    def advance(self, steps: int = 1) -> None:
        """Computes so many time steps, and the fields. It returns when they are there."""
        self._raw.advance(steps)

    def restart(self) -> None:
        """Back to time 0."""
        self._raw.restart()

    def __getitem__(self, name: str) -> Any:
        """The field, halo included, where it is: a NumPy array, or one with `__cuda_array_interface__`."""
        address = self._raw.address(_NUMBERS[name])
        if not self.on_host:
            return _OnGpu(self, address, self._index)
        import numpy as np

        return np.asarray(_OnHost(self, address))

    def on_the_host(self, name: str, room: np.ndarray | None = None) -> np.ndarray:
        """The field without halo, in memory of the host: of the model where it is there, else copied into `room`, an
        array of `shape`, or into a new one."""
        import numpy as np

        if self.on_host:
            whole = self[name]
        else:
            whole = np.empty(self.shape) if room is None else room
            self._raw.copy_field(_NUMBERS[name], whole)
        inner = slice(HALO, -HALO)
        return whole[inner, inner, inner]  # type: ignore[no-any-return]
