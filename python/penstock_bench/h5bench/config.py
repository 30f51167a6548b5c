"""h5bench's JSON configurations as runs: what is to be written or read, in which pattern, how often.

Keys, their spelling and their defaults are those of h5bench. What must stay true: nothing of a configuration is passed
over in silence. An unknown key, a value that is none, and what one process on one machine cannot do are refused by
name; what changes nothing here becomes a note of the run.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock import Error

PATTERNS = ("CONTIG", "INTERLEAVED", "STRIDED")
OPTIONS = ("FULL", "PARTIAL", "STRIDED", "LDC", "RDC", "PRL", "CS")
DEFAULT_NOTE = "has no effect with one process"
_FACTORS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_NUMBER = re.compile(r"(\d{1,18})\s*([KMGT]?)s?", re.ASCII)
_SECONDS = {"min": 60.0, "sec": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6}
_TIME = re.compile(r"(\d{1,12})\s*(min|sec|s|ms|us)", re.ASCII)
_RANKS = re.compile(r"(?:^|\s)(?:-n|-np|--np|--n|--ntasks)[\s=]*(\d+)(?:\s|$)", re.ASCII)
_MOST_PARTICLES = 1 << 48
_MOST_SECONDS = 86400.0

_NUMBERS = ("TIMESTEPS", "DELAYED_CLOSE_TIMESTEPS", "NUM_PARTICLES", "TO_READ_NUM_PARTICLES", "IO_MEM_LIMIT")
_SIZES = ("NUM_DIMS", "DIM_1", "DIM_2", "DIM_3", "CHUNK_DIM_1", "CHUNK_DIM_2", "CHUNK_DIM_3", "BLOCK_CNT")
_BLOCKS = tuple(f"{name}{axis}" for name in ("STRIDE_SIZE", "BLOCK_SIZE") for axis in ("", "_2", "_3"))
_WORDS = {"MEM_PATTERN": PATTERNS, "FILE_PATTERN": PATTERNS, "READ_OPTION": OPTIONS, "MODE": ("SYNC", "ASYNC", "LOG")}
_SWITCHES = ("COLLECTIVE_DATA", "COLLECTIVE_METADATA", "COMPRESS", "SUBFILING", "FILE_PER_PROC", "ALIGN")
_OTHERS = ("EMULATED_COMPUTE_TIME_PER_TIMESTEP", "CSV_FILE")
# What h5bench knows and Penstock does not do, with the reason.
_REFUSED = {
    "STDEV_DIM_1": "sizes drawn from a distribution belong to the benchmark write_normal_dist, which Penstock lacks",
    "ENV_METADATA_FILE": "Penstock writes no file of the environment; the results name the machine",
    "ALIGN_THRESHOLD": "Penstock begins each dataset on a page of 4096 bytes",
    "ALIGN_LEN": "Penstock begins each dataset on a page of 4096 bytes",
}
_REFUSED_YES = {
    "COMPRESS": "Penstock writes no compressed chunks",
    "SUBFILING": "Penstock writes one file",
    "FILE_PER_PROC": "there is one process, so there is one file",
    "ALIGN": _REFUSED["ALIGN_LEN"],
}
KEYS = (*_NUMBERS, *_SIZES, *_BLOCKS, *_WORDS, *_SWITCHES, *_OTHERS, *_REFUSED)


@dataclass(frozen=True)
class H5benchRun:
    """One benchmark of a configuration. Blocks are per dimension: (stride, block) in elements."""

    benchmark: str  # "write" or "read"
    file: Path
    memory: str  # CONTIG: an array a field; INTERLEAVED: an array of structures
    layout: str  # of the file: CONTIG, INTERLEAVED, or STRIDED
    dims: tuple[int, ...]
    steps: int
    option: str = "FULL"
    blocks: tuple[tuple[int, int], ...] = ()
    block_count: int = 0  # of STRIDED
    particles: int = 0  # of PARTIAL
    compute_s: float = 0.0
    delay: int = 0  # steps that a step stays open after it was written or read
    background: bool = False  # MODE ASYNC
    csv: Path | None = None
    notes: list[str] = field(default_factory=list)


def load(path: Path) -> list[H5benchRun]:
    """The runs of a configuration. Raises Error that names what is wrong in it."""
    try:
        document = json.loads(path.read_text())
    except OSError as error:
        raise Error.of(error, "h5bench", str(path), "name a configuration that you can read") from None
    except (ValueError, RecursionError) as error:
        raise Error(
            operation="h5bench", file=str(path), cause=f"not JSON: {error}", advice="name an h5bench configuration"
        ) from None
    return _ConfigReader(path).runs(document)


class _ConfigReader:
    """Goes through a document; every refusal names the place in it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def refuse(self, place: str, cause: str, advice: str = "see docs/cli.md for what is taken") -> Error:
        return Error(operation="h5bench", file=str(self.path), cause=f"{place}: {cause}", advice=advice)

    def table(self, place: str, value: Any, known: tuple[str, ...]) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.refuse(place, "an object is needed")
        for name in value:
            if name not in known:
                raise self.refuse(place, f"there is no key '{name}'", f"known keys: {', '.join(known)}")
        return value

    def runs(self, document: Any) -> list[H5benchRun]:
        whole = self.table("configuration", document, ("mpi", "vol", "file-system", "directory", "benchmarks"))
        self.one_process(self.table("mpi", whole.get("mpi", {}), ("command", "ranks", "configuration")))
        notes = self.vol(self.table("vol", whole.get("vol", {}), ("library", "path", "preload", "connector")))
        if any(self.table("file-system", whole.get("file-system", {}), ("lustre",)).values()):
            raise self.refuse("file-system.lustre", "Penstock sets no stripes", "use lfs setstripe on the directory")
        directory, entries = whole.get("directory"), whole.get("benchmarks")
        if not isinstance(directory, str) or not directory or "\0" in directory:
            raise self.refuse("directory", "the name of a directory is needed")
        if not isinstance(entries, list) or not entries:
            raise self.refuse("benchmarks", "a list of benchmarks is needed")
        places = [(f"benchmarks[{number}]", entry) for number, entry in enumerate(entries)]
        return [self.run(place, entry, Path(directory), notes) for place, entry in places]

    def one_process(self, mpi: dict[str, Any]) -> None:
        """h5bench takes the number of ranks from `configuration`, where there is one."""
        text = str(mpi.get("configuration") or "")
        found = _RANKS.search(text)
        if text and found is None:
            raise self.refuse("mpi.configuration", f"'{text}' does not say how many ranks", "say -n 1")
        place = "mpi.configuration" if found else "mpi.ranks"
        ranks = found[1] if found else str(mpi.get("ranks", "1"))
        if ranks != "1":
            raise self.refuse(place, f"{ranks} ranks: this runs on one process", "use 1 rank")

    def vol(self, vol: dict[str, Any]) -> list[str]:
        connector = str(vol.get("connector") or "")
        if connector and not connector.startswith("async"):
            raise self.refuse("vol.connector", f"'{connector}': Penstock loads no VOL connector", "leave vol empty")
        return ["vol: no connector is loaded; MODE ASYNC overlaps by itself"] if any(vol.values()) else []

    def run(self, place: str, entry: Any, directory: Path, notes: list[str]) -> H5benchRun:
        given = self.table(place, entry, ("benchmark", "file", "configuration"))
        benchmark, name = given.get("benchmark"), given.get("file")
        if benchmark not in ("write", "read"):
            raise self.refuse(f"{place}.benchmark", f"'{benchmark}' is not run here", "use write or read")
        if not isinstance(name, str) or not name or "\0" in name:
            raise self.refuse(f"{place}.file", "the name of a file is needed")
        table = self.table(f"{place}.configuration", given.get("configuration"), KEYS)
        return _Settings(self, f"{place}.configuration", table).run(benchmark, directory / name, notes)


class _Settings:
    """The values of one benchmark's configuration."""

    def __init__(self, reader: _ConfigReader, place: str, table: dict[str, Any]) -> None:
        self.reader, self.place, self.table = reader, place, table
        self.notes: list[str] = []

    def refuse(self, key: str, cause: str, advice: str = "change it") -> Error:
        return self.reader.refuse(f"{self.place}.{key}", cause, advice)

    def text(self, key: str) -> str | None:
        value = self.table.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            raise self.refuse(key, f"{json.dumps(value)} is neither text nor a number")
        return str(value).strip()

    def number(self, key: str, default: int | None, least: int = 1) -> int:
        """ "16", "16 M", "1024 Ks": binary words."""
        text = self.text(key)
        if text is None:
            if default is None:
                raise self.refuse(key, "it is missing", "add it")
            return default
        found = _NUMBER.fullmatch(text)
        value = int(found[1]) * _FACTORS[found[2]] if found else -1
        if value < least or value > _MOST_PARTICLES:
            raise self.refuse(key, f"'{text}' is not a number from {least} on", "use one such as 16 or '16 M'")
        return value

    def word(self, key: str, default: str | None) -> str:
        text = self.text(key) or default
        if text is None:
            raise self.refuse(key, "it is missing", f"use one of {', '.join(_WORDS[key])}")
        if text not in _WORDS[key]:
            raise self.refuse(key, f"there is no '{text}'", f"use one of {', '.join(_WORDS[key])}")
        return text

    def seconds(self, key: str) -> float:
        text = self.text(key)
        found = _TIME.fullmatch(text or "0 s")
        if found is None:
            raise self.refuse(
                key, f"'{text}' is not a time with a unit", "use '1 s', '100 ms' or '5000 us', for example"
            )
        value = int(found[1]) * _SECONDS[found[2]]
        if value > _MOST_SECONDS:
            raise self.refuse(key, f"'{text}' is more than a day a step", "use less")
        return value

    def switches(self) -> None:
        for key, why in _REFUSED.items():
            if key in self.table:
                raise self.refuse(key, why, "leave it out")
        for key in _SWITCHES:
            text = (self.text(key) or "NO").upper()
            if text not in ("YES", "NO", "Y", "N"):
                raise self.refuse(key, f"'{text}' is neither YES nor NO")
            if text[0] == "Y" and key in _REFUSED_YES:
                raise self.refuse(key, _REFUSED_YES[key], "use NO")
            if text[0] == "Y":
                self.notes.append(f"{key} {DEFAULT_NOTE}")
        if any(key.startswith("CHUNK_DIM") for key in self.table):
            self.notes.append("CHUNK_DIM_*: used with COMPRESS only, as in h5bench")
        if self.number("IO_MEM_LIMIT", 0, 0):
            raise self.refuse("IO_MEM_LIMIT", "Penstock starts transfers at once and holds none back", "leave it out")

    def dims(self) -> tuple[int, ...]:
        """h5bench takes the number of particles from the dimensions."""
        count = self.number("NUM_DIMS", 1)
        if count > 3:
            raise self.refuse("NUM_DIMS", f"{count} dimensions", "use 1, 2 or 3")
        particles = self.number("NUM_PARTICLES", 0)
        if not any(f"DIM_{axis}" in self.table for axis in (1, 2, 3)) and particles and count == 1:
            return (particles,)
        dims = tuple(self.number(f"DIM_{axis + 1}", None) for axis in range(count))
        total = math.prod(dims)
        for axis in range(count, 3):
            if self.number(f"DIM_{axis + 1}", 1) != 1:
                raise self.refuse(f"DIM_{axis + 1}", f"it is not 1, and NUM_DIMS is {count}", "use 1")
        if total > _MOST_PARTICLES:
            raise self.refuse("DIM_1", f"{total} particles are too many", "use fewer")
        if particles and particles != total:
            self.notes.append(f"NUM_PARTICLES {particles} is not used: the dimensions give {total}, as in h5bench")
        return dims

    def run(self, benchmark: str, file: Path, notes: list[str]) -> H5benchRun:
        self.switches()
        memory, layout = self.word("MEM_PATTERN", None), self.word("FILE_PATTERN", None)
        mode, dims = self.word("MODE", "SYNC"), self.dims()
        if mode == "LOG":
            raise self.refuse("MODE", "LOG needs a VOL connector", "use SYNC or ASYNC")
        option, blocks, count, particles = self.selection(benchmark, memory, layout, dims)
        csv = self.text("CSV_FILE")
        if csv and ("\0" in csv or file.parent / csv == file):
            raise self.refuse("CSV_FILE", "it has to be a name of its own", "name another file")
        return H5benchRun(
            benchmark=benchmark,
            file=file,
            memory=memory,
            layout=layout,
            dims=dims,
            steps=self.number("TIMESTEPS", None),
            option=option,
            blocks=blocks,
            block_count=count,
            particles=particles,
            compute_s=self.seconds("EMULATED_COMPUTE_TIME_PER_TIMESTEP"),
            delay=self.number("DELAYED_CLOSE_TIMESTEPS", 0, 0),
            background=mode == "ASYNC",
            csv=file.parent / csv if csv else None,
            notes=notes + self.notes,
        )

    def selection(
        self, benchmark: str, memory: str, layout: str, dims: tuple[int, ...]
    ) -> tuple[str, tuple[tuple[int, int], ...], int, int]:
        """READ_OPTION and what it needs; a write is FULL, or STRIDED by its FILE_PATTERN."""
        self.patterns(memory, layout, len(dims))
        option = "STRIDED" if layout == "STRIDED" else self.word("READ_OPTION", "FULL")
        if benchmark == "write":
            option = "STRIDED" if layout == "STRIDED" else "FULL"
        elif (self.text("READ_OPTION") == "STRIDED") != (layout == "STRIDED"):
            raise self.refuse("READ_OPTION", f"STRIDED and FILE_PATTERN {layout}", "use STRIDED for both, or neither")
        if option in ("LDC", "RDC", "PRL", "CS") and len(dims) != 2:
            raise self.refuse("READ_OPTION", f"{option} with NUM_DIMS {len(dims)}", "use NUM_DIMS 2")
        if option == "PARTIAL" and len(dims) != 1:
            raise self.refuse("READ_OPTION", f"PARTIAL with NUM_DIMS {len(dims)}", "use NUM_DIMS 1")
        particles = self.number("TO_READ_NUM_PARTICLES", None if option == "PARTIAL" else 0)
        if particles > math.prod(dims):
            raise self.refuse("TO_READ_NUM_PARTICLES", f"{particles} of {math.prod(dims)} particles", "use fewer")
        if option in ("FULL", "PARTIAL"):
            return option, (), 0, particles
        count = self.number("BLOCK_CNT", None) if option == "STRIDED" else 0
        return option, self.blocks(option, dims, count), count, 0

    def patterns(self, memory: str, layout: str, rank: int) -> None:
        if memory == "STRIDED":
            raise self.refuse("MEM_PATTERN", "no benchmark of h5bench has STRIDED memory", "use CONTIG or INTERLEAVED")
        if layout == "STRIDED" and (rank != 1 or memory != "CONTIG"):
            cause = f"STRIDED with MEM_PATTERN {memory} and NUM_DIMS {rank}"
            raise self.refuse("FILE_PATTERN", cause, "use MEM_PATTERN CONTIG and NUM_DIMS 1")
        if "INTERLEAVED" in (memory, layout) and rank == 3:
            raise self.refuse("NUM_DIMS", "3 with an INTERLEAVED pattern", "use 1 or 2, as h5bench does")

    def blocks(self, option: str, dims: tuple[int, ...], count: int) -> tuple[tuple[int, int], ...]:
        """(stride, block) a dimension; corners and frames have no stride."""
        names = ("", "_2", "_3")[: len(dims)]
        strided = option in ("STRIDED", "CS")
        found = []
        for name, extent in zip(names, dims, strict=True):
            block = self.number(f"BLOCK_SIZE{name}", None)
            stride = self.number(f"STRIDE_SIZE{name}", None) if strided else block
            if block > extent or (not strided and 2 * block > extent):
                raise self.refuse(f"BLOCK_SIZE{name}", f"{block} is too large for a dimension of {extent}", "use less")
            if stride < block:
                raise self.refuse(f"STRIDE_SIZE{name}", f"{stride} is less than the block of {block}", "use more")
            if count and (stride + block) * count > extent:  # h5bench's own rule
                cause = f"(STRIDE_SIZE + BLOCK_SIZE) * BLOCK_CNT is {(stride + block) * count}, DIM_1 {extent}"
                raise self.refuse("BLOCK_CNT", cause, "use fewer blocks")
            found.append((stride, block))
        return tuple(found)
