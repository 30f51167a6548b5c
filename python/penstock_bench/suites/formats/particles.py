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
from penstock_bench.suites.formats.files import hot, timed
from penstock_bench.suites.formats.peers import verify

if TYPE_CHECKING:
    from penstock_bench.engine.run import Run

_SHARE = 4  # of the files' size that a snapshot has
_ALIGNMENT = 4096


def probes(run: Run) -> list[Probe]:
    """Writing a snapshot of each preset, and reading it again from the page cache."""
    return [
        Probe(f"{preset.name} particles {way}", partial(work, run, preset))
        for preset in PRESETS.values()
        for way, work in (("write", _write), ("read", _read))
    ]


def _fields(run: Run, preset: Preset) -> dict[str, Array]:
    """A particle's members, of as many particles as fit; by the name of the dataset in the file."""
    count = run.bytes // _SHARE // preset.particle_bytes
    fields, end = {}, 0
    for member in preset.members:
        shape = (count,) if member.width == 1 else (count, member.width)
        fields[member.name] = Array(run.device, member.dtype, shape, end)
        end += -(-count * member.bytes // _ALIGNMENT) * _ALIGNMENT
    return fields


def make(run: Run) -> None:
    """The files to read, one a preset."""
    run.context.stamp(run.device, 0, FILE_SEED)
    for preset in PRESETS.values():
        _save(run, preset, _path(run, preset))


def _path(run: Run, preset: Preset) -> Path:
    return run.workspace.directory / f"{preset.name}.h5"


def _save(run: Run, preset: Preset, path: Path) -> None:
    fields = _fields(run, preset)
    with penstock.create(path, context=run.context) as file:
        made = create_particles(file, preset.name, len(next(iter(fields.values()))))
        for pending in [made[name].start_write(field) for name, field in fields.items()]:
            pending.result()


def _load(run: Run, preset: Preset, path: Path) -> None:
    names = preset.paths()
    with penstock.open(path, context=run.context) as file:
        for pending in [file[names[name]].start_read(out=field) for name, field in _fields(run, preset).items()]:
            pending.result()


def _check(run: Run, preset: Preset, path: Path, seed: int) -> None:
    """Of what was read into the places that it was written from."""
    for name, field in _fields(run, preset).items():
        verify(run.context, path, name, (field.as_bytes(), field.offset_bytes, seed))


def _write(run: Run, preset: Preset, turn: int) -> Sample:
    path = run.workspace.directory / f"written-{preset.name}.h5"
    run.context.stamp(run.device, 0, 100 + turn)
    sample = timed(_bytes(run, preset), lambda: _save(run, preset, path))
    poison(run.context, run.device)
    _load(run, preset, path)
    _check(run, preset, path, 100 + turn)
    path.unlink()
    return sample | _size_of(preset)


def _read(run: Run, preset: Preset, _: int) -> Sample:
    path = _path(run, preset)
    hot(run, path)
    poison(run.context, run.device)
    sample = timed(_bytes(run, preset), lambda: _load(run, preset, path))
    _check(run, preset, path, FILE_SEED)
    return sample | _size_of(preset)


def _bytes(run: Run, preset: Preset) -> int:
    return sum(field.nbytes for field in _fields(run, preset).values())


def _size_of(preset: Preset) -> Sample:
    return {"particle_bytes": preset.particle_bytes, "fields": len(preset.members)}
