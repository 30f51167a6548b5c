"""What the suite `data` compares of many small rows that one call names: by a list in any order, or by a mask.

What is named is read from a contiguous dataset and from chunks, and written to both and into compressed chunks. h5py
takes ascending numbers, each once: its users sort others, and put the rows in their order again.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import penstock
from penstock_bench.engine.rounds import need
from penstock_bench.suites.data.files import GZIP_LEVEL, NAME
from penstock_bench.suites.data.pair import Call, Pair, beside_here, on_device, put_here, wait_for

if TYPE_CHECKING:
    from penstock_bench.engine.run import Run

MANY, MANY_BYTES = 20_000, 2048  # rows of one call, and bytes of each
MANY_CHUNK = 64  # rows of a chunk of the chunked dataset
_ONE_OF = 3  # rows of the datasets, for each that is named
_TURNS = 4  # lists that take turns
_CHUNKED, _PACKED = "chunked", "packed"  # names of the datasets beside the contiguous one
_CALLS = {NAME: 0.05, _CHUNKED: 0.02, _PACKED: 0.02}  # h5py takes a second for chunks
_PACKED_SHARE = 8  # of the rows; a compressed chunk takes longer than reading many others
_IN_CHUNKS = f", chunks of {MANY_CHUNK} rows"

Named = np.ndarray  # numbers of rows, or a mask
Kind = Callable[[np.random.Generator, int], Named]  # of so many rows, a third is named


def _at_random(random: np.random.Generator, rows: int) -> Named:
    return random.permutation(rows)[: rows // _ONE_OF]


def _ascending(random: np.random.Generator, rows: int) -> Named:
    return np.sort(_at_random(random, rows))


def _repeated(random: np.random.Generator, rows: int) -> Named:
    """Drawn one by one, as for a bootstrap: some come twice or more often."""
    return random.integers(0, rows, rows // _ONE_OF)


def _mask(random: np.random.Generator, rows: int) -> Named:
    found = np.zeros(rows, bool)
    found[_at_random(random, rows)] = True
    return found


_KINDS: dict[str, Kind] = {
    " at random": _at_random,
    " at random, ascending": _ascending,
    " at random, some repeated": _repeated,
    " by a mask": _mask,
}


class _Into(NamedTuple):
    """A dataset that rows are written to."""

    name: str
    dataset: str
    share: int = 1  # one of so many rows of the others


_WRITTEN = (
    _Into("", NAME),
    _Into(_IN_CHUNKS, _CHUNKED),
    _Into(f"{_IN_CHUNKS}, gzip", _PACKED, _PACKED_SHARE),
)


def pairs(run: Run) -> Iterator[Pair]:
    beside, needs = beside_here(run)
    many = many_of(run)
    for name, kind in _KINDS.items():
        for layout, dataset in (("", NAME), (_IN_CHUNKS, _CHUNKED)):
            make = partial(_of_read, run, dataset, kind)
            said = f"{many} rows of 2 KiB{name}{layout}"
            yield Pair(said, beside, make, needs, _CALLS[dataset], many * MANY_BYTES, by_clock=True)
    make = partial(_of_gather, run)
    said = f"{many} rows of 2 KiB gathered into memory that is there"
    yield Pair(said, beside, make, needs, _CALLS[NAME], many * MANY_BYTES, by_clock=True)
    for one in _WRITTEN:
        count = many // one.share
        said = f"{count} rows of 2 KiB written at random{one.name}"
        make = partial(_of_write, run, one)
        yield Pair(said, beside, make, needs, _CALLS[one.dataset], count * MANY_BYTES, by_clock=True)


def many_of(run: Run) -> int:
    """Rows of one call."""
    return min(MANY, int(run.settings.get("large_mib", 1)) * 64)


def file_rows(run: Run) -> int:
    """Rows of the datasets."""
    return _ONE_OF * many_of(run)


def place(run: Run) -> Path:
    return run.workspace.directory / "many.h5"


def make(run: Run) -> None:
    """Random numbers, of which no two rows are the same."""
    need("h5py")
    import h5py

    rows = file_rows(run)
    values = np.random.default_rng(3).random((rows, MANY_BYTES // 4), dtype="f4")
    chunk = (MANY_CHUNK, values.shape[1])
    smooth = np.floor(values[: _ONE_OF * (many_of(run) // _PACKED_SHARE)] * 256)  # that gzip shortens
    with h5py.File(place(run), "w") as file:
        file[NAME] = values
        file.create_dataset(_CHUNKED, data=values, chunks=chunk)
        options = {"compression": "gzip", "compression_opts": GZIP_LEVEL, "shuffle": True}
        file.create_dataset(_PACKED, data=smooth, chunks=(min(MANY_CHUNK, len(smooth)), chunk[1]), **options)


def _opened(run: Run, stack: ExitStack, dataset: str) -> tuple[Any, Any]:
    import h5py

    ours = stack.enter_context(penstock.open(place(run), context=run.context))
    return ours[dataset], stack.enter_context(h5py.File(place(run), "r"))[dataset]


def _of_read(run: Run, dataset: str, kind: Kind, stack: ExitStack) -> tuple[Call, Call]:
    ours, theirs = _opened(run, stack, dataset)
    random = np.random.default_rng(7)
    lists = [kind(random, len(ours)) for _ in range(_TURNS)]
    return lambda turn: ours[lists[turn % _TURNS]], put_here(run, lambda turn: _read(theirs, lists[turn % _TURNS]))


def _read(theirs: Any, named: Named) -> np.ndarray:
    if named.dtype.kind == "b" or (np.diff(named) > 0).all():
        return theirs[named]
    rows, order = np.unique(named, return_inverse=True)
    return theirs[rows][order]


def _of_gather(run: Run, stack: ExitStack) -> tuple[Call, Call]:
    """Of h5py's users who have the memory: they read the rows in ascending order, and copy them to their places."""
    ours, theirs = _opened(run, stack, NAME)
    random = np.random.default_rng(7)
    lists = [_at_random(random, len(ours)) for _ in range(_TURNS)]
    blank = np.zeros((len(lists[0]), MANY_BYTES // 4), "f4")
    out, other = on_device(run, blank.copy()), on_device(run, blank)

    def copied(turn: int) -> Any:
        named = lists[turn % _TURNS]
        order = np.argsort(named)
        if run.emulated:
            other[order] = theirs[named[order]]
        else:
            other.set(_read(theirs, named))
            wait_for(other)
        return other

    return lambda turn: ours.gather(lists[turn % _TURNS], out=out), copied


class _Written(NamedTuple):
    """Rows that a call has written, as stock HDF5 finds them in the file."""

    path: Path
    dataset: str
    rows: np.ndarray

    def get(self) -> np.ndarray:
        import h5py

        with h5py.File(self.path, "r") as file:
            return file[self.dataset][np.sort(self.rows)]


def _of_write(run: Run, into: _Into, stack: ExitStack) -> tuple[Call, Call]:
    """Each call opens the file and closes it, so that nothing is left in the memory of either library."""
    import h5py

    ours, theirs = (run.workspace.directory / f"{whose}-many.h5" for whose in ("ours", "theirs"))
    for copy in (ours, theirs):
        shutil.copyfile(place(run), copy)
        stack.callback(copy.unlink)
    random, rows = np.random.default_rng(9), _ONE_OF * (many_of(run) // into.share)
    lists = [_at_random(random, rows) for _ in range(_TURNS)]
    values = [np.floor(random.random((len(lists[0]), MANY_BYTES // 4), dtype="f4") * 256) for _ in range(_TURNS)]
    given = [on_device(run, one) for one in values]

    def write(turn: int) -> _Written:
        with penstock.open(ours, write=True, context=run.context) as file:
            file[into.dataset][lists[turn % _TURNS]] = given[turn % _TURNS]
        return _Written(ours, into.dataset, lists[turn % _TURNS])

    def write_sorted(turn: int) -> _Written:
        named, value = lists[turn % _TURNS], given[turn % _TURNS]
        order = np.argsort(named)
        with h5py.File(theirs, "r+") as file:
            file[into.dataset][named[order]] = (value if run.emulated else value.get())[order]
        return _Written(theirs, into.dataset, named)

    return write, write_sorted
