"""The star cluster and its fields, as arrays of whatever device it is on.

What must stay true: a field is a view of the cluster's own memory, so it has other values after advance(), and whoever
holds it keeps the cluster alive.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from penstock._shared import shared_context
from penstock.nbody import _nbody

if TYPE_CHECKING:
    from penstock._api import Context

_TYPES = {"began": "<i8", "step": "<i8", "id": "<u8"}  # the others are float64
_ONE_A_BODY = ("mass", *_TYPES)  # the others have three numbers


class _Bodies:
    """A field as NumPy takes it, or as CuPy and other libraries take it."""

    def __init__(self, cluster: Cluster, name: str, address: int, index: int) -> None:
        self._cluster = cluster
        self.shape = (cluster.bodies,) if name in _ONE_A_BODY else (cluster.bodies, 3)
        told = {
            "shape": self.shape,
            "typestr": _TYPES.get(name, "<f8"),
            "data": (address, False),
            "strides": None,
            "version": 3,
        }
        if cluster.on_host:
            self.__array_interface__ = told
        else:
            self.device = SimpleNamespace(id=index)
            self.__cuda_array_interface__ = told


class Cluster:
    """A star cluster: a sphere of bodies that pull each other, each with a time step of its own. The virial radius, the
    mass and the constant of gravitation are 1.

        cluster = penstock.nbody.Cluster(4096)
        cluster.advance(4)
        penstock.Snapshot("cluster.hdf5", {"PartType1/Coordinates": cluster["position"]}).write()

    Args:
        bodies: how many, 2 at least.
        seed: of their places. The same seed gives the same bits on one device.
        device, context: as of penstock.open().
    """

    def __init__(self, bodies: int, *, seed: int = 1, device: str = "auto", context: Context | None = None) -> None:
        self._context = context or shared_context(device)
        told = self._context.device
        self.on_host = bool(told["emulated"])
        self._index = int(told["index"])
        self._raw = _nbody.ClusterModel(self._context._raw, int(bodies), int(seed))
        self._addresses = self._raw.addresses()
        self.names = tuple(self._addresses)

    @property
    def bodies(self) -> int:
        """How many there are."""
        return self._raw.bodies

    @property
    def time(self) -> float:
        """Since the begin."""
        return self._raw.time

    @property
    def energy(self) -> float:
        """Kinetic and potential."""
        return self._raw.energy

    def advance(self, steps: int = 1) -> None:
        """By so many of the longest time steps, 1/16 each. It returns when the bodies are there."""
        self._raw.advance(steps)

    def __getitem__(self, name: str) -> Any:
        """A field of `names`, where it is: a NumPy array, or one with `__cuda_array_interface__`."""
        view = _Bodies(self, name, self._addresses[name], self._index)
        if not self.on_host:
            return view
        import numpy as np

        return np.asarray(view)
