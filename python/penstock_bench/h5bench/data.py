"""The particles that h5bench runs move: in device memory, with values by a rule, so that whoever reads them can check.

Eight fields of 4 bytes. The value of field f of particle k at step s is the four bytes at
f * 2^44 + 4 * (k + 1024 * s) of the stamp pattern: other particles, fields and steps have other values, and nothing has
to be stamped between steps, for step s is a window of the same memory. What must stay true: the check is made on the
device, of the memory that the bytes arrived in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from penstock import Array, Context, Error, _core
from penstock._core import Buffer
from penstock_bench.h5bench.config import H5benchRun
from penstock_bench.h5bench.parts import Part, start_of

FIELDS = {name: "int32" if name == "id_1" else "float32" for name in ("x", "y", "z", "px", "py", "pz", "id_1", "id_2")}
COMPOUND = "particles"  # the dataset of a step, where a file is INTERLEAVED
SEED = 5
_ITEM = 4
PARTICLE_BYTES = _ITEM * len(FIELDS)
STEP_PARTICLES = 1024  # from step to step: a page of each field
_REACH = 1 << 44  # bytes of the pattern that a field has for itself
RECORD = np.dtype(list(FIELDS.items()))


def place_of(field: int, particle: int, step: int) -> int:
    """Byte of the pattern where a value begins."""
    return field * _REACH + _ITEM * (particle + STEP_PARTICLES * step)


class Particles:
    """Memory of `count` particles, in the pattern of a run: an array a field, or one array of structures."""

    def __init__(self, context: Context, pattern: str, count: int, steps: int = 0) -> None:
        self.context, self.pattern, self.count = context, pattern, count
        self.room = (-(-count // STEP_PARTICLES) + steps) * STEP_PARTICLES  # so that fields begin on pages
        self.buffer = context.allocate(max(1, self.room * PARTICLE_BYTES), first_touch="gpu")

    def stamp(self) -> None:
        """Gives all particles of all steps their values."""
        if self.pattern == "INTERLEAVED":
            apart = Particles(self.context, "CONTIG", self.room)
            apart.stamp()
            interleave(apart.fields(), self.records())
            return
        for number, field in enumerate(self.fields().values()):
            self.context.stamp(field.as_bytes(), place_of(number, 0, 0), SEED)

    def fill(self, value: int) -> None:
        self.context.fill(self.buffer, value)

    def records(self, step: int = 0, count: int | None = None) -> Array:
        """The structures of a step."""
        size = self.room - STEP_PARTICLES * step if count is None else count
        return Array(self.buffer, RECORD, (size,), PARTICLE_BYTES * STEP_PARTICLES * step)

    def fields(self, step: int = 0, count: int | None = None) -> dict[str, Array]:
        """The fields of a step, whatever the pattern."""
        if self.pattern == "INTERLEAVED":
            records = self.records(step, count)
            return {name: records.field(name) for name in FIELDS}
        size = self.room - STEP_PARTICLES * step if count is None else count
        starts = (_ITEM * (number * self.room + STEP_PARTICLES * step) for number in range(len(FIELDS)))
        return {
            name: Array(self.buffer, kind, (size,), start)
            for (name, kind), start in zip(FIELDS.items(), starts, strict=True)
        }


def interleave(fields: dict[str, Array], records: Array) -> None:
    """Copies fields into structures, on the device."""
    for name, field in fields.items():
        _copy(field, records.field(name))


def separate(records: Array, fields: dict[str, Array]) -> None:
    """Copies structures into fields, on the device."""
    for name, field in fields.items():
        _copy(records.field(name), field)


def _copy(source: Array, target: Array) -> None:
    if not source.size:
        return
    row = [target.offset_bytes, source.offset_bytes, source.size, *target.strides, *source.strides]
    table = np.array([row], np.int64)
    _core.copy_boxes(target.buffer.context, target.buffer, source.buffer, table, _ITEM)


class Checker:
    """Compares what was read with the rule, part by part. `numbering`: "dataset", when the values count particles as
    they lie in the dataset; "run", when they count them as the run wrote them."""

    def __init__(self, context: Context, run: H5benchRun, numbering: str) -> None:
        self.context, self.run, self.numbering = context, run, numbering
        self._memory: Buffer | None = None

    def check(self, parts: Sequence[Part], fields: dict[str, Array], step: int) -> None:
        """Raises Error at the first field that holds wrong bytes."""
        for number, (name, field) in enumerate(fields.items()):
            truth: Array | None = None
            for part in parts:
                got = field[part.first : part.first + part.count].contiguous()
                first = part.first if self.numbering == "run" else start_of(part, self.run.dims)
                if first is not None:
                    bad, _ = self.context.verify_stamp(got.as_bytes(), place_of(number, first, step), SEED)
                else:
                    truth = self._truth(number, step) if truth is None else truth
                    bad = got.nbytes if self._sum(truth[part.index].contiguous()) != self._sum(got) else 0
                if bad:
                    raise self._wrong(f"Timestep_{step}/{name}", bad, first is not None)

    def _truth(self, number: int, step: int) -> Array:
        """All values of a field: of scattered particles the checksums are compared."""
        if self._memory is None:
            self._memory = self.context.allocate(_ITEM * math.prod(self.run.dims))
        self.context.stamp(self._memory, place_of(number, 0, step), SEED)
        return Array(self._memory, "uint32", self.run.dims)

    def _sum(self, array: Array) -> bytes:
        table = np.array([[array.offset_bytes, array.nbytes]], np.int64)
        return _core.checksums(self.context._raw, array.buffer, table, "crc32")

    def _wrong(self, name: str, bad: int, exact: bool) -> Error:
        return Error(
            code="io_error",
            operation="verify",
            file=str(self.run.file),
            cause=f"{bad} bytes of {name} are wrong" if exact else f"some of {bad} bytes of {name} are wrong",
            advice="do not trust these results",
        )
