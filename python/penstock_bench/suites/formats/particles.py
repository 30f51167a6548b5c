"""Snapshots of particles, laid out as the presets lay them out: many fields of one file, written and read at once.

Each field is a part of one stamped buffer; what comes back is checked on the device, after the file was published.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import penstock
from penstock import Array
from penstock.calibration.poison import poison
from penstock.calibration.workspace import FILE_SEED
from penstock.formats.particles import PRESETS, Preset, create_particles
from penstock_bench.engine.rounds import Probe, Sample
from penstock_bench.suites.formats.bench import hot, timed
from penstock_bench.suites.formats.peers import verify

if TYPE_CHECKING:
    from penstock_bench.suites.formats.bench import FormatsBench

_SHARE = 4  # of the files' size that a snapshot has
_ALIGNMENT = 4096


def probes(bench: FormatsBench) -> list[Probe]:
    """Writing a snapshot of each preset, and reading it again from the page cache."""
    return [
        Probe(f"{preset.name} particles {way}", partial(work, bench, preset))
        for preset in PRESETS.values()
        for way, work in (("write", _write), ("read", _read))
    ]


def _fields(bench: FormatsBench, preset: Preset) -> dict[str, Array]:
    """A particle's members, of as many particles as fit; by the name of the dataset in the file."""
    count = bench.bytes // _SHARE // preset.particle_bytes
    fields, end = {}, 0
    for member in preset.members:
        shape = (count,) if member.width == 1 else (count, member.width)
        fields[member.name] = Array(bench.device, member.dtype, shape, end)
        end += -(-count * member.bytes // _ALIGNMENT) * _ALIGNMENT
    return fields


def make(bench: FormatsBench) -> None:
    """The files to read, one a preset."""
    bench.context.stamp(bench.device, 0, FILE_SEED)
    for preset in PRESETS.values():
        _save(bench, preset, _path(bench, preset))


def _path(bench: FormatsBench, preset: Preset) -> Path:
    return bench.workspace.directory / f"{preset.name}.h5"


def _save(bench: FormatsBench, preset: Preset, path: Path) -> None:
    fields = _fields(bench, preset)
    with penstock.create(path, context=bench.context) as file:
        made = create_particles(file, preset.name, len(next(iter(fields.values()))))
        for pending in [made[name].start_write(field) for name, field in fields.items()]:
            pending.result()


def _load(bench: FormatsBench, preset: Preset, path: Path) -> None:
    names = preset.paths()
    with penstock.open(path, context=bench.context) as file:
        for pending in [file[names[name]].start_read(out=field) for name, field in _fields(bench, preset).items()]:
            pending.result()


def _check(bench: FormatsBench, preset: Preset, path: Path, seed: int) -> None:
    """Of what was read into the places that it was written from."""
    for name, field in _fields(bench, preset).items():
        verify(bench.context, path, name, (field.as_bytes(), field.offset_bytes, seed))


def _write(bench: FormatsBench, preset: Preset, turn: int) -> Sample:
    path = bench.workspace.directory / f"written-{preset.name}.h5"
    bench.context.stamp(bench.device, 0, 100 + turn)
    sample = timed(_bytes(bench, preset), lambda: _save(bench, preset, path))
    poison(bench.context, bench.device)
    _load(bench, preset, path)
    _check(bench, preset, path, 100 + turn)
    path.unlink()
    return sample | _size_of(preset)


def _read(bench: FormatsBench, preset: Preset, _: int) -> Sample:
    path = _path(bench, preset)
    hot(bench, path)
    poison(bench.context, bench.device)
    sample = timed(_bytes(bench, preset), lambda: _load(bench, preset, path))
    _check(bench, preset, path, FILE_SEED)
    return sample | _size_of(preset)


def _bytes(bench: FormatsBench, preset: Preset) -> int:
    return sum(field.nbytes for field in _fields(bench, preset).values())


def _size_of(preset: Preset) -> Sample:
    return {"particle_bytes": preset.particle_bytes, "fields": len(preset.members)}
