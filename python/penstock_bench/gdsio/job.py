"""gdsio's flags and configuration files as jobs: what is asked for, checked before anything is touched.

Pure but for reading a configuration file. What must stay true: a flag or value that has no equivalent here is refused
by its name with the reason, and so is a combination that gdsio refuses; nothing is taken and then left out of account.
"""

from __future__ import annotations

import configparser
import math
import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from penstock import Error, parse_bytes

XFER_TYPES = {  # -x: the word of the result line
    "0": "GPUD",
    "1": "CPUONLY",
    "2": "CPU_GPU",
    "3": "CPU_ASYNC_GPU",
    "4": "CPU_CACHED_GPU",
    "5": "GPU_DIRECT_ASYNC",
    "6": "GPU_BATCH",
    "7": "GPU_BATCH_STREAM",
    "auto": "AUTO",  # Penstock's own
}
IO_TYPES = ("READ", "WRITE", "RANDREAD", "RANDWRITE")  # -I
BATCHED, BY_CUFILE = ("6", "7"), ("0", "5", "6", "7")
_MEMORY = {"0": "device", "2": "pinned", "3": "system", "4": "mmap"}  # -m
_MOST_THREADS, _MOST_BATCH = 512, 4096
_MOST_CAUSE = 200  # letters of what is wrong with a configuration
_SIZE = re.compile(r"\d+[kKmMgG]?(i?[bB])?", re.ASCII)


@dataclass(frozen=True)
class Flags:
    """The values as they were typed; None where a flag was not given."""

    file: str | None = None  # -f
    directory: str | None = None  # -D
    device: str | None = None  # -d
    node: str | None = None  # -n
    memory: str | None = None  # -m
    threads: str | None = None  # -w
    size: str | None = None  # -s
    start: str | None = None  # -o
    io: str | None = None  # -i
    nvlinks: bool = False  # -p
    skip_register: bool = False  # -b
    verify: bool = False  # -V
    transfer: str | None = None  # -x
    batch: str | None = None  # -B
    io_type: str | None = None  # -I
    seconds: str | None = None  # -T
    seed: str | None = None  # -k
    unaligned: bool = False  # -U
    random_fill: bool = False  # -R
    refill: bool = False  # -F
    alignment: str | None = None  # -a
    mixed: str | None = None  # -M
    rdma: str | None = None  # -P
    opened: str | None = None  # -O


@dataclass(frozen=True)
class Job:
    """What one job does; sizes in bytes."""

    files: tuple[Path, ...]  # one for all threads, or one for each
    device: str
    node: int | None
    memory: str  # device, pinned, system, mmap
    threads: int
    depth: int  # requests of a batch; 1 without
    size: int  # of each file; 0: what it has
    start: int
    io: tuple[int, int, int]  # smallest request, largest, step
    verify: bool
    transfer: str
    writes: bool
    random: bool
    seconds: float | None
    seed: int
    unaligned: bool
    random_fill: bool
    refill: bool
    alignment: int
    read_percent: int | None  # of a mixture
    direct: bool

    @property
    def io_type(self) -> str:
        return "MIXED" if self.read_percent is not None else IO_TYPES[2 * self.random + self.writes]


def job_of(flags: Flags) -> Job:
    """Raises Error that names the flag."""
    return _JobReader(flags).job()


def refusal(flag: str, cause: str, advice: str, code: str = "invalid_argument") -> Error:
    return Error(code=code, operation="gdsio", cause=f"{flag}: {cause}", advice=advice)


def _given(text: str | None, default: str) -> str:
    """An empty text is no default: it is refused like any other."""
    return default if text is None else text


class _JobReader:
    """Reads the values of one job."""

    def __init__(self, flags: Flags) -> None:
        self.flags = flags

    def job(self) -> Job:
        flags = self.flags
        transfer = _given(flags.transfer, "0")
        if transfer not in XFER_TYPES:
            raise refusal("-x", f"there is no transfer type '{transfer}'", f"use one of {', '.join(XFER_TYPES)}")
        self.refuse_what_is_not_here(transfer)
        io_type = self.whole("-I", _given(flags.io_type, "0"), 0, 3)
        writes, random = io_type in (1, 3), io_type >= 2
        threads, depth = self.threads(transfer)
        smallest, largest, step = self.requests()
        size = self.bytes("-s", flags.size, 0)
        self.check_sizes(size, largest, writes)
        for flag, given in (("-a", flags.alignment), ("-U", flags.unaligned)):
            if given and not random:
                raise refusal(flag, "it is about random offsets", "use it with -I 2 or -I 3")
        return Job(
            files=self.files(threads),
            device=self.device(),
            node=None if flags.node is None else self.whole("-n", flags.node, 0, 4095),
            memory=self.memory(transfer),
            threads=threads,
            depth=depth,
            size=size,
            start=self.bytes("-o", flags.start, 0),
            io=(smallest, largest, step),
            verify=flags.verify,
            transfer=transfer,
            writes=writes,
            random=random,
            seconds=self.seconds(),
            seed=self.whole("-k", _given(flags.seed, "1"), 0, (1 << 63) - 1),
            unaligned=flags.unaligned,
            random_fill=flags.random_fill,
            refill=flags.refill,
            alignment=self.bytes("-a", flags.alignment, 4096) or 1,
            read_percent=self.mixture(transfer),
            direct=self.direct(transfer),
        )

    def refuse_what_is_not_here(self, transfer: str) -> None:
        flags = self.flags
        if flags.rdma is not None:
            raise refusal("-P", "Penstock has no RDMA", "name a file with -f", "unsupported")
        if flags.nvlinks:
            raise refusal("-p", "Penstock does not route through other GPUs", "leave it out", "unsupported")
        if flags.refill and (_given(flags.io_type, "0")) in ("0", "2") and flags.mixed is None:
            raise refusal("-F", "reads have nothing to refill", "use it with -I 1 or -I 3")
        if flags.batch is not None and transfer not in BATCHED:
            raise refusal("-B", f"there are no batches with -x {transfer}", "use -x 6 or -x 7")

    def whole(self, flag: str, text: str, least: int, most: int) -> int:
        if not text.isascii() or not text.isdigit() or not least <= int(text[:20]) <= most:
            raise refusal(flag, f"'{text}' is not a number from {least} to {most}", "correct it")
        return int(text)

    def bytes(self, flag: str, text: str | None, default: int) -> int:
        """gdsio's K, M and G are binary."""
        if text is None:
            return default
        if not _SIZE.fullmatch(text):
            raise refusal(flag, f"'{text}' is not a size", "use 4096, 64K, 16M or 1G, for example")
        try:
            return parse_bytes(text)
        except Error as error:
            raise refusal(flag, error.cause, error.advice) from None

    def requests(self) -> tuple[int, int, int]:
        parts = _given(self.flags.io, "1M").split(":")
        if len(parts) not in (1, 3):
            raise refusal("-i", f"'{self.flags.io}' is neither a size nor min:max:step", "use 1M or 64K:1M:64K")
        values = [self.bytes("-i", part, 0) for part in parts]
        smallest, largest, step = values if len(values) == 3 else (values[0], values[0], 0)
        if smallest == 0 or largest < smallest or (largest > smallest and step == 0):
            raise refusal("-i", f"'{self.flags.io}' names no sizes of requests", "use 1M or 64K:1M:64K")
        return smallest, largest, step if largest > smallest else 0

    def check_sizes(self, size: int, largest: int, writes: bool) -> None:
        if writes and size == 0:
            raise refusal("-s", "a write needs the size of the file", "add -s 1G, for example")
        if size and size < largest:
            raise refusal("-i", f"requests of {largest} bytes in files of {size}", "use smaller ones")

    def threads(self, transfer: str) -> tuple[int, int]:
        """Threads and depth. Without -B a batch is made of what the threads would ask for, as in gdsio."""
        threads = self.whole("-w", _given(self.flags.threads, "1"), 1, _MOST_THREADS)
        if transfer not in BATCHED:
            return threads, 1
        if self.flags.batch is not None:
            return threads, self.whole("-B", self.flags.batch, 1, _MOST_BATCH)
        if self.flags.directory is not None and threads > 1:
            cause = f"without -B a batch would be of {threads} files, and one here is of one file"
            raise refusal("-w", cause, "give -B, or one file with -f", "unsupported")
        return 1, threads

    def files(self, threads: int) -> tuple[Path, ...]:
        name, directory = self.flags.file, self.flags.directory
        if (name is None) == (directory is None):
            cause = "both were given" if name is not None else "one of them is needed"
            raise refusal("-f, -D", cause, "give a file with -f or a directory with -D")
        if not (name or directory):
            raise refusal(
                "-f" if name is not None else "-D", "the name is empty", "give the name of a file or directory"
            )
        if name is not None:
            return (Path(name),)
        return tuple(Path(str(directory)) / f"gdsio.{thread}" for thread in range(threads))

    def device(self) -> str:
        text = self.flags.device
        if text is None:
            return "auto"
        return "host" if text == "host" else f"cuda:{self.whole('-d', text, 0, 4095)}"

    def memory(self, transfer: str) -> str:
        text = self.flags.memory
        if text == "1":
            raise refusal("-m", "Penstock allocates no cuMem memory", "use 0, 2, 3 or 4", "unsupported")
        if text is not None and text not in _MEMORY:
            raise refusal("-m", f"there is no memory type '{text}'", "use 0, 2, 3 or 4")
        if text in ("2", "3", "4") and transfer not in BY_CUFILE:
            raise refusal("-m", f"host memory with -x {transfer}", "use it with -x 0, 5, 6 or 7")
        return "system" if transfer == "1" else _MEMORY[_given(text, "0")]

    def seconds(self) -> float | None:
        text = self.flags.seconds
        if text is None:
            return None
        try:
            seconds = float(text)
        except ValueError:
            seconds = math.nan
        if not 0 < seconds <= 1e8:
            raise refusal("-T", f"'{text}' is not a number of seconds", "use 30, for example")
        return seconds

    def mixture(self, transfer: str) -> int | None:
        text = self.flags.mixed
        if text is None:
            return None
        if transfer not in BATCHED:
            raise refusal("-M", f"mixed batches with -x {transfer}", "use -x 6 or -x 7")
        return self.whole("-M", text, 0, 100)

    def direct(self, transfer: str) -> bool:
        opened = self.whole("-O", _given(self.flags.opened, "0"), 0, 1)
        if opened and transfer in BY_CUFILE:
            cause = f"with -x {transfer} cuFile's mode decides how the file is opened"
            raise refusal("-O", cause, "use it with -x 1, 2 or 3", "unsupported")
        return not opened and transfer not in ("4", "auto")


# Keys of gdsio's configuration files, by the field of Flags.
_KEYS = {
    "filename": "file",
    "directory": "directory",
    "gpu_dev_id": "device",
    "numa_node": "node",
    "mem_type": "memory",
    "num_threads": "threads",
    "size": "size",
    "start_offset": "start",
    "bs": "io",
    "enable_nvlinks": "nvlinks",
    "skip_bufregister": "skip_register",
    "do_verify": "verify",
    "xfer_type": "transfer",
    "rw": "io_type",
    "runtime": "seconds",
    "random_seed": "seed",
    "unaligned_random": "unaligned",
    "fill_random": "random_fill",
    "refill_buffer": "refill",
    "alignment_size": "alignment",
    "rdma_url": "rdma",
    "batch_size": "batch",
}
_WORDS = {"read": "0", "write": "1", "randread": "2", "randwrite": "3"}
_SWITCHES = {one.name for one in fields(Flags) if one.type == "bool"}


def load(path: Path) -> list[tuple[str, Job]]:
    """The jobs of a configuration file, by name: a [global] section, and one for each job."""
    parser = configparser.ConfigParser(interpolation=None, strict=True, default_section="global", delimiters=("=",))
    try:
        parser.read_string(path.read_text())
    except OSError as error:
        raise Error.of(error, "gdsio", str(path), "name a configuration that you can read") from None
    except (configparser.Error, UnicodeDecodeError) as error:
        cause = " ".join(str(error).replace("'<string>'", "it").split())[:_MOST_CAUSE]  # it quotes the line
        raise Error(operation="gdsio", file=str(path), cause=cause, advice="correct it") from None
    if not parser.sections():
        raise Error(operation="gdsio", file=str(path), cause="there is no job in it", advice="add a section [job1]")
    return [(name, _job_in(path, name, dict(parser[name]))) for name in parser.sections()]


def _job_in(path: Path, section: str, given: dict[str, str]) -> Job:
    given.pop("name", None)  # of the test, for people
    values: dict[str, Any] = {}
    for key, text in given.items():
        if key not in _KEYS:
            cause, advice = f"[{section}] there is no key '{key}'", f"known keys: name, {', '.join(_KEYS)}"
            raise Error(operation="gdsio", file=str(path), cause=cause, advice=advice)
        name, text = _KEYS[key], text.strip()
        if name in _SWITCHES:
            if text not in ("0", "1", ""):
                cause = f"[{section}] {key}: '{text}' is neither 0 nor 1"
                raise Error(operation="gdsio", file=str(path), cause=cause, advice="correct it")
            values[name] = text == "1"
        elif text:
            values[name] = _WORDS.get(text, text) if name == "io_type" else text
    try:
        return job_of(Flags(**values))
    except Error as error:
        raise Error(
            code=error.code, operation="gdsio", file=str(path), cause=f"[{section}] {error.cause}", advice=error.advice
        ) from None
