"""What the suite `data` compares by the clock: large reads, and reads of a plain file.

On a GPU the elements are to be in its memory, and the other way is what people do there today: h5py and a copy by CuPy,
or KvikIO. Without one they are to be in the host's.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import penstock
from penstock import Error
from penstock._text import bytes_text
from penstock_bench.engine.rounds import Absent, need
from penstock_bench.suites.data import many
from penstock_bench.suites.data.files import GZIP_LEVEL, NAME, ROW_BYTES, place, plain_place
from penstock_bench.suites.data.pair import Call, Pair, beside_here, put_here, row_of

if TYPE_CHECKING:
    from penstock_bench.engine.run import Run

CHUNK_ITEMS = 1 << 18  # of float32: 1 MiB
_INTO = " into memory that is there"


def pairs(run: Run) -> Iterator[Pair]:
    """Those of this machine."""
    beside, needs = beside_here(run)
    whole = _mib(run) << 20
    yield Pair("gzip and shuffle: all", beside, partial(_of_all, run, "auto"), needs, 0.02, whole, by_clock=True)
    for decode, word in () if run.emulated else (("gpu", "nvCOMP"), ("host", "all cores")):
        make = partial(_of_two, run, decode)
        yield Pair(f"gzip and shuffle: all, auto beside {word}", word, make, needs, 0.02, whole, by_clock=True)
    if not run.emulated:
        yield Pair("HDF5: a row to the GPU", beside, partial(_of_row, run), needs, 4, by_clock=True)
    array = many.file_rows(run) * many.MANY_BYTES
    yield Pair("HDF5: a large array", beside, partial(_of_array, run, False), needs, 0.05, array, by_clock=True)
    yield Pair(f"HDF5: a large array{_INTO}", beside, partial(_of_array, run, True), needs, 0.05, array, by_clock=True)
    peer, module = ("os.preadv", "numpy") if run.emulated else ("KvikIO", "kvikio")
    for bytes, calls in ((ROW_BYTES, 20), (256 << 10, 5), (1 << 20, 1)):
        if bytes <= run.bytes:
            make = partial(_of_plain, run, bytes)
            yield Pair(f"file.read: {bytes_text(bytes)}", peer, make, (module,), calls, bytes, by_clock=True)


def make(run: Run) -> None:
    """Chunks as stock HDF5 stores them."""
    need("h5py")
    import h5py

    options = {"chunks": (CHUNK_ITEMS,), "compression": "gzip", "compression_opts": GZIP_LEVEL, "shuffle": True}
    with h5py.File(_packed(run), "w") as file, ThreadPoolExecutor(os.cpu_count()) as threads:
        x = file.create_dataset(NAME, (_mib(run) * CHUNK_ITEMS,), "<f4", **options)
        for number, raw in enumerate(threads.map(_stored, range(_mib(run)))):
            x.id.write_direct_chunk((number * CHUNK_ITEMS,), raw)


def _mib(run: Run) -> int:
    return int(run.settings.get("large_mib", 1))


def _packed(run: Run) -> Path:
    return run.workspace.directory / "packed.h5"


def _stored(number: int) -> bytes:
    """A chunk of smooth numbers, as fields of a simulation are."""
    values = (np.sin(np.arange(CHUNK_ITEMS) / 500 + number) * 1000).astype("<f4")
    return zlib.compress(np.ascontiguousarray(values.view(np.uint8).reshape(-1, 4).T), GZIP_LEVEL)


def _opened(run: Run, stack: ExitStack, path: Path, name: str = NAME, decode: str = "auto") -> tuple[Any, Any]:
    import h5py

    ours = stack.enter_context(penstock.open(path, context=run.context, decode=decode))
    return ours[name], stack.enter_context(h5py.File(path, "r"))[name]


def _of_all(run: Run, decode: str, stack: ExitStack) -> tuple[Call, Call]:
    ours, theirs = _opened(run, stack, _packed(run), decode=decode)
    return lambda _: ours.read(), put_here(run, lambda _: theirs[...])


def _of_two(run: Run, decode: str, stack: ExitStack) -> tuple[Call, Call]:
    """Our choice beside one that the caller makes."""
    ours, _ = _opened(run, stack, _packed(run))
    other, _ = _opened(run, stack, _packed(run), decode=decode)

    def fixed(_: int) -> Any:
        try:
            return other.read()
        except Error as error:
            if error.code != "unsupported":
                raise
            raise Absent(error.cause) from None

    return lambda _: ours.read(), fixed


def _of_array(run: Run, into: bool, stack: ExitStack) -> tuple[Call, Call]:
    ours, theirs = _opened(run, stack, many.place(run))
    if not into:
        return lambda _: ours.read(), put_here(run, lambda _: theirs[...])
    other = np.empty(theirs.shape, "f4")

    def read_direct(_: int) -> np.ndarray:
        theirs.read_direct(other)
        return other

    if run.emulated:
        out: Any = np.empty(theirs.shape, "f4")
        return lambda _: ours.read(out=out), read_direct
    import cupy

    out, beside = cupy.empty(theirs.shape, "f4"), cupy.empty(theirs.shape, "f4")

    def copied(turn: int) -> Any:
        beside.set(read_direct(turn))
        cupy.cuda.get_current_stream().synchronize()
        return beside

    return lambda _: ours.read(out=out), copied


def _of_row(run: Run, stack: ExitStack) -> tuple[Call, Call]:
    """Into memory that is there."""
    import cupy

    ours, theirs = _opened(run, stack, place(run, "HDF5"))
    out, other = (cupy.empty(ROW_BYTES // 4, "f4") for _ in range(2))

    def copied(turn: int) -> Any:
        other.set(theirs[row_of(run, turn)])
        cupy.cuda.get_current_stream().synchronize()
        return other

    return lambda turn: ours.read(row_of(run, turn), out=out), copied


def _of_plain(run: Run, bytes: int, stack: ExitStack) -> tuple[Call, Call]:
    file = stack.enter_context(run.context.open(plain_place(run)))
    if run.emulated:
        memory, other = np.empty(bytes, np.uint8), np.empty(bytes, np.uint8)
        descriptor = os.open(plain_place(run), os.O_RDONLY)
        stack.callback(os.close, descriptor)
        theirs = partial(_read_by, lambda offset: os.preadv(descriptor, [other], offset), other)
    else:
        import cupy
        import kvikio

        memory, other = (cupy.empty(bytes, cupy.uint8) for _ in range(2))
        kvik = stack.enter_context(kvikio.CuFile(str(plain_place(run)), "r"))
        theirs = partial(_read_by, lambda offset: kvik.read(other, bytes, offset), other)
    ours = partial(_read_by, lambda offset: file.read(memory, offset), memory)
    last = (run.bytes - bytes) // ROW_BYTES + 1
    return (lambda turn: ours(row_of(run, turn) % last)), (lambda turn: theirs(row_of(run, turn) % last))


def _read_by(read: Callable[[int], object], memory: Any, row: int) -> Any:
    read(row * ROW_BYTES)
    return memory
