"""The benchmark `write` of h5bench: particles from device memory into a new file, a group a step.

What must stay true: the file appears whole or not at all; space and memory are looked at before anything is made; and
unless it was not wanted, everything that was written is read back and checked on the device.
"""

from __future__ import annotations

import math
import shutil
import time
from dataclasses import replace

import penstock
from penstock import Array, Error
from penstock.formats.pending import Pending
from penstock.formats.reading.request import request
from penstock_bench.h5bench.benchmark import (
    RULE,
    Benchmark,
    Options,
    Result,
    Row,
    abandoned_on_error,
    piece,
    written_by,
)
from penstock_bench.h5bench.data import COMPOUND, FIELDS, PARTICLE_BYTES, RECORD, STEP_PARTICLES, Particles, interleave
from penstock_bench.h5bench.read import Reading

_SPARE_BYTES = 64 << 20
_STEP_BYTES = 4096  # of a group and its datasets, beside their particles; measured: 2684
_FEW_STEPS = 1000  # up to here the root keeps its members so that others can be added in place


class Writing(Benchmark):
    """One run."""

    def perform(self) -> Result:
        self.need_space()
        self.prepare()
        began = time.perf_counter()
        with self.times.of("open"):
            wanted = {"durable": self.options.durable, "many_members": self.run.steps > _FEW_STEPS}
            self.file = penstock.create(self.run.file, context=self.context, format="hdf5", **wanted)
        with abandoned_on_error(self.file):
            self.steps()
            with self.times.of("close"):
                self.file.close()
        observed = time.perf_counter() - began
        told: list[Row] = [("cache after", self.residency(), "of the file")]
        del self.memory, self.gathered  # the check needs memory of its own
        told.append(("verified", self.verified(), ""))
        return self.result(observed, self.file.evidence(), told)

    def need_space(self) -> None:
        place = self.run.file.parent
        try:
            place.mkdir(parents=True, exist_ok=True)
            free = shutil.disk_usage(place).free
        except OSError as error:
            raise Error.of(error, "h5bench write", str(place), "name a directory that you can write to") from None
        stored = (PARTICLE_BYTES * math.prod(self.run.dims) + _STEP_BYTES) * self.run.steps
        if free < stored + stored // 20 + _SPARE_BYTES:
            cause = f"{free} bytes are free; the file needs {stored}, with 5 % and 64 MiB to spare"
            raise self.refusal("no_space", cause, "free some space, or use fewer particles or steps")

    def prepare(self) -> None:
        """The particles, and memory to put structures together where the file wants what the memory does not have."""
        run = self.run
        gathers = run.layout == "INTERLEAVED" and run.memory == "CONTIG"
        slots = self.open_steps if gathers else 0
        room = self.count + STEP_PARTICLES * run.steps
        self.need_memory((2 if run.memory == "INTERLEAVED" else 1) * room + slots * self.count)
        self.memory = Particles(self.context, run.memory, self.count, run.steps)
        self.memory.stamp()
        self.gathered = [Particles(self.context, "INTERLEAVED", self.count) for _ in range(slots)]

    def start(self, step: int) -> Pending:
        group = f"Timestep_{step}"
        kinds = {COMPOUND: RECORD} if self.run.layout == "INTERLEAVED" else FIELDS
        with self.times.of("metadata"):
            self.file.create_datasets({f"{group}/{name}": (self.run.dims, kind) for name, kind in kinds.items()})
            self.file[group].attrs[RULE] = written_by(self.run)
            infos = self.file._file.infos([f"{group}/{name}" for name in kinds])
        with self.times.of("raw"):
            values = self.values(step)
            writes = [
                request(info, part.index, piece(value, part))
                for info, value in zip(infos, values, strict=True)
                for part in self.parts
            ]
            return self.file._file.start_write(writes, None, {})

    def arrived(self, step: int) -> None:
        """Nothing remains."""

    def check(self, step: int) -> None:
        """What was written is checked when the file is whole."""

    def values(self, step: int) -> list[Array]:
        """What the datasets of a step get, in their order."""
        if self.run.layout != "INTERLEAVED":
            return list(self.memory.fields(step, self.count).values())
        if self.run.memory == "INTERLEAVED":
            return [self.memory.records(step, self.count)]
        records = self.gathered[step % self.open_steps].records()
        interleave(self.memory.fields(step, self.count), records)
        return [records]

    def verified(self) -> str:
        if not self.options.verify:
            return "no: it was not asked for"
        memory = "INTERLEAVED" if self.run.layout == "INTERLEAVED" else "CONTIG"
        again = replace(self.run, benchmark="read", memory=memory, compute_s=0.0, background=False)
        with self.times.of("check"):
            return Reading(self.context, again, Options()).perform()["verified"]
