"""The benchmark `read` of h5bench: particles from a file into device memory, a group a step.

What must stay true: memory holds poison before each step, and what arrived is checked on the device, where the file
says by which rule its values were made; where it does not, the result says that nothing was checked, and why.
"""

from __future__ import annotations

import time

import penstock
from penstock.calibration.poison import POISON, poison_staging
from penstock.calibration.workspace import NotPossible, make_cold
from penstock.formats.dataset import Dataset
from penstock.formats.model import DatasetInfo
from penstock.formats.pending import Pending
from penstock.formats.reading.request import request
from penstock_bench.h5bench.benchmark import RULE, Benchmark, Result, Row, abandoned_on_error, piece, written_by
from penstock_bench.h5bench.data import COMPOUND, FIELDS, Checker, Particles, interleave, separate


class Reading(Benchmark):
    """One run."""

    def perform(self) -> Result:
        before = self.cache()
        self.prepare()
        began = time.perf_counter()
        with self.times.of("open"):
            self.file = penstock.open(self.run.file, context=self.context, format="hdf5")
        with abandoned_on_error(self.file):
            numbering, verified = self.rule()
            self.checker = Checker(self.context, self.run, numbering) if numbering else None
            self.steps()
            with self.times.of("close"):
                self.file.close()
        observed = time.perf_counter() - began
        told: list[Row] = [("cache before", before, "of the file"), ("cache after", self.residency(), "of the file")]
        return self.result(observed, self.file.evidence(), [*told, ("verified", verified, "")])

    def cache(self) -> float | None:
        """The share of the file that the page cache holds when the run begins; None where nothing tells."""
        if not self.options.cold:
            return self.residency()
        with self.context.open(self.run.file) as file:
            try:
                return make_cold(file, file.size_bytes)
            except NotPossible as error:
                raise self.refusal("unsupported", str(error), "leave out --cold") from None

    def prepare(self) -> None:
        """Memory in the run's pattern, and where the file has the other one, memory for what comes from it."""
        memory, stored = self.run.memory, "INTERLEAVED" if self.run.layout == "INTERLEAVED" else "CONTIG"
        self.need_memory(self.count * (2 * self.open_steps + 1))
        self.memory = [Particles(self.context, memory, self.count) for _ in range(self.open_steps)]
        self.landing = self.memory
        if stored != memory:
            self.landing = [Particles(self.context, stored, self.count) for _ in range(self.open_steps)]

    def rule(self) -> tuple[str, str]:
        """How the file's values count particles, "" when they cannot be checked; and what the result says of it."""
        rule = self.file["Timestep_0"].attrs.get(RULE) if "Timestep_0" in self.file else None
        if not self.options.verify:
            return "", "no: it was not asked for"
        if rule is None:
            return "", "no: the file was not written by penstock h5bench"
        if rule == "FULL":
            return "dataset", "yes"
        return ("run", "yes") if rule == written_by(self.run) else ("", f"no: only {rule} of the file was written")

    def start(self, step: int) -> Pending:
        landing = self.landing[step % self.open_steps]
        if self.checker is not None:
            with self.aside():
                if step == 0:  # later steps may be read while others are under way
                    poison_staging(self.context)
                landing.fill(POISON)
        structures = self.run.layout == "INTERLEAVED"
        with self.times.of("metadata"):
            infos = [self.info(f"Timestep_{step}/{name}") for name in ([COMPOUND] if structures else FIELDS)]
        with self.times.of("raw"):
            arrays = [landing.records()] if structures else list(landing.fields().values())
            reads = [
                request(info, part.index, piece(array, part))
                for info, array in zip(infos, arrays, strict=True)
                for part in self.parts
            ]
            return self.file._file.start_read(reads, None, {})

    def info(self, name: str) -> DatasetInfo:
        found = self.file.get(name)
        if not isinstance(found, Dataset):
            raise self.refusal("not_found", f"there is no dataset {name}", "write it first, in the same FILE_PATTERN")
        if found.shape != self.run.dims:
            cause = f"{name} has the shape {found.shape}, the configuration says {self.run.dims}"
            raise self.refusal("invalid_argument", cause, "use the dimensions that it was written with")
        return found.info

    def arrived(self, step: int) -> None:
        landing, memory = self.landing[step % self.open_steps], self.memory[step % self.open_steps]
        if landing.pattern == memory.pattern:
            return
        if landing.pattern == "INTERLEAVED":
            separate(landing.records(), memory.fields())
        else:
            interleave(landing.fields(), memory.records())

    def check(self, step: int) -> None:
        if self.checker is not None:
            self.checker.check(self.parts, self.memory[step % self.open_steps].fields(), step)
