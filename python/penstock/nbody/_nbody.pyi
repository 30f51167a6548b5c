"""Types of the compiled module of the star cluster. Private: use the names of the package penstock.nbody."""

from penstock._core import Context

class ClusterModel:
    """So many bodies, placed by the seed."""

    def __init__(self, context: Context, bodies: int, seed: int, /) -> None: ...
    @property
    def time(self) -> float: ...
    @property
    def bodies(self) -> int: ...
    @property
    def energy(self) -> float: ...
    def addresses(self) -> dict[str, int]:
        """Of the first element of each field, in memory of the device."""
    def advance(self, longest_steps: int, /) -> None: ...
