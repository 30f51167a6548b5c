"""The variants of a suite `first-touch`: cases of TOML with the axes of particles, and the layout of a particle.

Axes: particles, path, direction (read, write), format (raw, hdf5, netcdf4, netcdf3), buffer (device, managed, system,
pinned), first_touch (cpu, gpu), cache (hot, cold: of reads; what is written is always new), chunk_bytes and workers (0:
the policy's). A single value stands for a list of one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Any

from penstock import Array, Error, parse_bytes, path_names
from penstock._api import Buffer
from penstock_bench.engine.definition import Definition

# A particle of 36 bytes: name of the field, type, values, bytes.
FIELDS = (("pos", "float32", 4, 16), ("vxy", "float32", 2, 8), ("vz", "float32", 1, 4), ("id", "uint64", 1, 8))
PARTICLE_BYTES = sum(field[3] for field in FIELDS)
NEW = "new"  # the state of a file that a write makes


@dataclass(frozen=True)
class Variant:
    """What is measured once a round."""

    particles: int
    path: str = "auto"
    direction: str = "read"
    format: str = "raw"
    buffer: str = "device"
    first_touch: str = "gpu"
    cache: str = "hot"
    chunk_bytes: int = 0
    workers: int = 0

    @property
    def bytes(self) -> int:
        return self.particles * PARTICLE_BYTES

    @property
    def name(self) -> str:
        shape = f", chunks of {self.chunk_bytes} B" * bool(self.chunk_bytes)
        shape += f", {self.workers} workers" * bool(self.workers)
        return (
            f"{self.direction} {self.particles} particles, {self.format} by {self.path}, {self.cache}, "
            f"{self.buffer} memory touched by {self.first_touch}{shape}"
        )

    @property
    def family(self) -> str:
        """What it has in common with the other sizes."""
        return f"{self.direction} by {self.path}, {self.format}, {self.buffer} memory touched by {self.first_touch}"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def arrays(memory: Buffer, particles: int) -> dict[str, Array]:
    """The fields of as many particles, one after the other in the memory."""
    found, at = {}, 0
    for name, dtype, width, bytes in FIELDS:
        shape = (particles,) if width == 1 else (particles, width)
        found[name] = Array(memory, dtype, shape, at)
        at += particles * bytes
    return found


def variants(definition: Definition) -> list[Variant]:
    """All variants whose files are not larger than the suite's. Raises Error of an axis or value that is none."""
    every = dict.fromkeys(one for case in definition.cases for one in _expand(definition, case))
    return [one for one in every if one.bytes <= definition.file_bytes]


def _expand(definition: Definition, case: dict[str, Any]) -> list[Variant]:
    names = [field.name for field in fields(Variant)]
    unknown = sorted(set(case) - set(names))
    if unknown:
        raise _wrong(definition, f"a case has no axis '{unknown[0]}'; axes are " + ", ".join(names))
    if "particles" not in case:
        raise _wrong(definition, "a case needs particles")
    lists = [value if isinstance(value, list) else [value] for value in case.values()]
    points = [dict(zip(case, point, strict=True)) for point in itertools.product(*lists)]
    return [_variant(definition, point) for point in points]


def _variant(definition: Definition, point: dict[str, Any]) -> Variant:
    made = Variant(**{name: _value(definition, name, value) for name, value in point.items()})
    return made if made.direction == "read" else Variant(**made.as_dict() | {"cache": NEW})


def _value(definition: Definition, name: str, value: Any) -> Any:
    choices: dict[str, Callable[[], Any]] = {
        "path": path_names,
        "direction": lambda: ("read", "write"),
        "format": lambda: ("raw", "hdf5", "netcdf4", "netcdf3"),
        "buffer": lambda: ("device", "managed", "system", "pinned"),
        "first_touch": lambda: ("cpu", "gpu"),
        "cache": lambda: ("hot", "cold"),
    }
    if name == "chunk_bytes":
        return parse_bytes(str(value))
    if name in ("particles", "workers"):
        least = 1 if name == "particles" else 0
        if not isinstance(value, int) or value < least:
            raise _wrong(definition, f"{name} must be a whole number from {least} on, not {value!r}")
        return value
    valid = choices[name]()
    if value not in valid:
        raise _wrong(definition, f"{name} '{value}' is not one of " + ", ".join(valid))
    return value


def _wrong(definition: Definition, cause: str) -> Error:
    return Error(operation="read suite", file=definition.name, cause=cause, advice="see docs/bench.md")
