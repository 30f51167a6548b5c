"""Snapshots of particles in HDF5, laid out as known codes and benchmarks lay them out.

A preset says which members a particle has, and what they are called where. Where positions are rows of three, the file
is also a GADGET snapshot (PartType1 and Header), which yt and others open; the code's own names are then hard links to
the same datasets. What must stay true: a preset's bytes a particle are those of the code that it is named after, so
that rates can be compared.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock._arrays.dtype import DType
from penstock._error import Error
from penstock.formats.model import NewDataset

if TYPE_CHECKING:
    from penstock.formats.datafile import DataFile
    from penstock.formats.dataset import Dataset

_TYPES = 6  # of particles in GADGET; ours are of type 1, dark matter and all that only gravity moves
_GADGET = "PartType1"


@dataclass(frozen=True)
class Member:
    """One property of a particle: a number, or a few (`width`) in a row."""

    name: str
    dtype: DType
    width: int = 1
    gadget: str = ""  # its name in a GADGET snapshot

    @property
    def bytes(self) -> int:
        return self.width * self.dtype.itemsize


@dataclass(frozen=True)
class Preset:
    """What a code stores of a particle."""

    name: str
    group: str  # in which the code keeps its datasets; "" for the root
    members: tuple[Member, ...]

    @property
    def particle_bytes(self) -> int:
        return sum(member.bytes for member in self.members)

    @property
    def is_gadget(self) -> bool:
        """A GADGET snapshot too."""
        return any(member.gadget == "Coordinates" for member in self.members)

    def paths(self, group: str | None = None) -> dict[str, str]:
        """Full names of the datasets, by name of the member; those of the code itself."""
        place = self.group if group is None else group.strip("/")
        return {member.name: f"{place}/{member.name}".lstrip("/") for member in self.members}


def _members(kind: str, names: str) -> tuple[Member, ...]:
    return tuple(Member(name, DType.of(kind)) for name in names.split())


_F4, _U8 = DType.of("float32"), DType.of("uint64")
_VECTORS = (Member("position", _F4, 3, "Coordinates"), Member("velocity", _F4, 3, "Velocities"))
_PRESETS = (
    Preset(
        "h5bench",
        "Timestep_0",
        (*_members("f4", "x y z px py pz"), Member("id_1", DType.of("int32")), Member("id_2", _F4)),
    ),
    Preset("h5-gds", "", (*_VECTORS, Member("mass", _F4, 1, "Masses"), Member("id", _U8, 1, "ParticleIDs"))),
    Preset(
        "hacc",
        "",
        (
            *_members("f4", "xx yy zz vx vy vz phi"),
            Member("pid", DType.of("int64")),
            Member("mask", DType.of("int16")),
        ),
    ),
    Preset(
        "gothic",
        "snp",
        (
            *_VECTORS,
            Member("acceleration", _F4, 3, "Acceleration"),
            Member("mass", _F4, 1, "Masses"),
            Member("potential", _F4, 1, "Potential"),
            Member("index", _U8, 1, "ParticleIDs"),
        ),
    ),
)
PRESETS: Mapping[str, Preset] = {preset.name: preset for preset in _PRESETS}


def preset(name: str) -> Preset:
    if name not in PRESETS:
        raise ValueError(f"there is no particle preset {name!r}; there are {', '.join(PRESETS)}")
    return PRESETS[name]


def create_particles(
    file: DataFile, name: str, count: int, *, group: str | None = None, header: Mapping[str, Any] | None = None
) -> dict[str, Dataset]:
    """Makes the datasets of a preset in an HDF5 file that is being written; by name of the member, to be filled.

    Args:
        file: from penstock.create or penstock.open(write=True).
        name: h5bench (32 bytes a particle), h5-gds (36), hacc (38) or gothic (52).
        count: of particles.
        group: in place of the preset's own, for its own names.
        header: attributes of the GADGET header (Time, BoxSize, MassTable, ...), or of the group where there is none.
    """
    chosen, count = preset(name), _checked(count)
    if file.format != "hdf5":
        cause = f"particle presets are laid out in HDF5; this file is {file.format}"
        raise Error(code="unsupported", operation="write particles to", file=file.name, cause=cause)
    own = chosen.paths(group)
    paths = {one.name: f"{_GADGET}/{one.gadget}" for one in chosen.members} if chosen.is_gadget else own
    place = "Header" if chosen.is_gadget else own[chosen.members[0].name].rpartition("/")[0]
    attributes = _gadget_header(count, header or {}) if chosen.is_gadget else dict(header or {})
    with file._file.writer() as writer:
        writer.create(_datasets(chosen.members, paths, count))
        if chosen.is_gadget:
            writer.create_group(place)  # type: ignore[attr-defined]  - of the writer of HDF5
            for member in chosen.members:
                writer.link(own[member.name], paths[member.name])  # type: ignore[attr-defined]
        writer.set_attributes(place, attributes)
    return {member: file[path] for member, path in paths.items()}


def _checked(count: Any) -> int:
    try:
        whole = operator.index(count)
    except TypeError:
        raise TypeError(f"count is {count!r}; it must be a whole number of particles") from None
    if not 0 <= whole < 1 << 63:
        raise ValueError(f"count is {count}; it must be from 0 to 2^63-1 particles")
    return whole


def _datasets(members: Sequence[Member], paths: Mapping[str, str], count: int) -> list[NewDataset]:
    shapes = [(count,) if member.width == 1 else (count, member.width) for member in members]
    return [NewDataset(paths[one.name], shape, one.dtype) for one, shape in zip(members, shapes, strict=True)]


def _gadget_header(count: int, given: Mapping[str, Any]) -> dict[str, Any]:
    """What readers of GADGET snapshots ask for. Without cosmology unless the caller says otherwise."""
    import numpy as np

    counts = np.zeros(_TYPES, np.int64)
    counts[1] = count
    zeros = ("Redshift", "Omega0", "OmegaLambda", "Time")
    flags = ("Flag_Sfr", "Flag_Cooling", "Flag_StellarAge", "Flag_Metals", "Flag_Feedback", "Flag_Entropy_ICs")
    return {
        "NumPart_ThisFile": counts.astype(np.uint32) if count < 1 << 32 else counts.astype(np.uint64),
        "NumPart_Total": (counts & 0xFFFFFFFF).astype(np.uint32),
        "NumPart_Total_HighWord": (counts >> 32).astype(np.uint32),
        "MassTable": np.zeros(_TYPES),
        "NumFilesPerSnapshot": np.int32(1),
        "BoxSize": 0.0,
        "HubbleParam": 1.0,
        **dict.fromkeys(zeros, 0.0),
        **dict.fromkeys(flags, np.int32(0)),
        "Flag_DoublePrecision": np.int32(0),
        **given,
    }
