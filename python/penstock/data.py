"""Samples for training: rows of datasets in random order, in batches that threads have read ahead.

    from penstock.data import BatchLoader, Samples

    with penstock.open("train.h5") as file:
        for batch in BatchLoader(Samples(file["images"]), 256, seed=1):
            ...

No process is started and no file is copied to one: reading releases the GIL, and one call reads or decodes all rows
of a batch at once. Needs no framework; penstock.torch gives the same as tensors. What must stay true: each sample comes
once an epoch, on one rank; the order follows from seed and epoch alone, so a place can be stored and taken up again.
"""

from __future__ import annotations

import operator
import os
import pickle
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread, main_thread
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from penstock import _core
from penstock._arrays.array import Array
from penstock._arrays.distinct import distinct
from penstock._arrays.host_array import HostArray
from penstock._options import need_known
from penstock.formats.dataset import Dataset

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["BatchLoader", "BatchOptions", "Samples"]

Source = Dataset | Sequence[Dataset]


class Samples:
    """The rows of one dataset, or of several after each other, as a sequence: `samples[i]`, `len(samples)`.

    Args:
        source: a Dataset, a list of Datasets (of any formats, with rows of one shape and type), or a dict of those,
            whose lengths must be equal: then a sample is a dict of arrays.

    A sample is an Array of the row's shape, on the device that its file was opened for. The files must stay open. It
    can be pickled, and used after a fork: each process opens the files anew, as it does for their datasets.
    Raises TypeError and ValueError of datasets that do not fit each other."""

    def __init__(self, source: Source | Mapping[str, Source]) -> None:
        self._named = isinstance(source, Mapping)
        named = source if isinstance(source, Mapping) else {"": source}
        self._columns = {name: _Column(name, one) for name, one in named.items()}
        lengths = {name: len(column) for name, column in self._columns.items()}
        if not lengths:
            raise ValueError("there are no datasets to take samples from")
        if len(set(lengths.values())) > 1:
            raise ValueError(f"datasets of one sample have the same length; these have {lengths}")
        self._process = os.getpid()

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def __getitem__(self, index: int) -> Any:
        """One sample. Raises IndexError behind the last."""
        if not hasattr(index, "__index__"):
            raise TypeError(f"a sample has an int, not {type(index).__name__}; batch() takes several")
        number = index + len(self) if index < 0 else index
        if not 0 <= number < len(self):
            raise IndexError(f"index {index} is out of bounds for {len(self)} samples")
        return self._of({name: column.row(number) for name, column in self._here().items()})

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """Several samples, read at once: what a loader of PyTorch asks for."""
        batch = self.batch(indices)
        if not self._named:
            return [batch[at] for at in range(len(indices))]
        return [{name: array[at] for name, array in batch.items()} for at in range(len(indices))]

    def batch(self, indices: Sequence[int] | np.ndarray) -> Any:
        """Several samples, as one Array with a first dimension of n; or a dict of those. `indices`: n integers, in any
        order, also repeated. Raises IndexError and TypeError as Dataset.gather does."""
        numbers = _numbers(indices, len(self))
        return self._of({name: column.batch(numbers) for name, column in self._here().items()})

    def _of(self, found: dict[str, Array]) -> Any:
        return found if self._named else found[""]

    def _here(self) -> dict[str, _Column]:
        """Of this process: a fork leaves the files to its parent."""
        if self._process != os.getpid():
            self._columns, self._process = pickle.loads(pickle.dumps(self._columns)), os.getpid()  # noqa: S301
        return self._columns


def _numbers(indices: Sequence[int] | np.ndarray, count: int) -> np.ndarray:
    """As int64 [n], of samples that there are."""
    found = np.asarray(indices) if len(indices) else np.empty(0, np.int64)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise TypeError(f"samples are taken by a list of integers, not by {found.ndim} dimensions of {found.dtype}")
    wrong = found[(found >= count) if found.dtype.kind == "u" else (found < -count) | (found >= count)]
    if len(wrong):
        raise IndexError(f"index {wrong[0]} is out of bounds for {count} samples")
    return found.astype(np.int64)


class _Column:
    """Datasets after each other."""

    def __init__(self, name: str, source: Source) -> None:
        self._parts = [source] if isinstance(source, Dataset) else list(source)
        said = f" of {name!r}" if name else ""
        if not self._parts or not all(isinstance(part, Dataset) for part in self._parts):
            raise TypeError(f"samples{said} are taken from a Dataset or a list of them")
        first = self._parts[0]
        for part in self._parts:
            if not part.ndim:
                raise ValueError(f"dataset {part.name!r} has no dimensions, so it has no rows")
            if (part.shape[1:], part.dtype) != (first.shape[1:], first.dtype):
                raise ValueError(
                    f"rows of dataset {part.name!r} are {part.shape[1:]} of {part.dtype}, those of {first.name!r} "
                    f"{first.shape[1:]} of {first.dtype}"
                )
            if part._file.device != first._file.device:
                raise ValueError(f"dataset {part.name!r} is read to {part._file.device}, not {first._file.device}")
        self._ends = np.cumsum([len(part) for part in self._parts])

    def __len__(self) -> int:
        return int(self._ends[-1])

    def row(self, number: int) -> Array:
        part = int(np.searchsorted(self._ends, number, "right"))
        return self._parts[part][number - (int(self._ends[part - 1]) if part else 0)]

    def batch(self, numbers: np.ndarray) -> Array:
        if len(self._parts) == 1:
            return self._parts[0].gather(numbers)
        numbers = np.where(numbers < 0, numbers + len(self), numbers)
        part_of = np.searchsorted(self._ends, numbers, "right")
        parts = distinct(part_of).tolist()
        if len(parts) == 1:
            return self._of_part(parts[0], numbers)
        if self._parts[0].dtype.host_only:
            return self._objects(numbers, part_of, parts)
        return self._of_parts(numbers, part_of, parts)

    def _objects(self, numbers: np.ndarray, part_of: np.ndarray, parts: list[int]) -> Any:
        """Text and lists, which NumPy puts in order."""
        found = np.empty((len(numbers), *self._parts[0].shape[1:]), object)
        for part in parts:
            found[part_of == part] = self._of_part(part, numbers[part_of == part])
        return found.view(HostArray)

    def _of_part(self, part: int, numbers: np.ndarray, out: Any = None) -> Array:
        return self._parts[part].gather(numbers - (int(self._ends[part - 1]) if part else 0), out)

    def _of_parts(self, numbers: np.ndarray, part_of: np.ndarray, parts: list[int]) -> Array:
        """Rows of each dataset follow each other first; one copy then puts them in order."""
        first = self._parts[0]
        shape = (len(numbers), *first.shape[1:])
        row_bytes = int(np.prod(first.shape[1:], dtype=np.int64)) * first.dtype.itemsize
        raw = first._file.context._raw
        apart, whole = (_core.allocate(raw, max(1, len(numbers) * row_bytes), "device", "none") for _ in range(2))
        order = np.argsort(part_of, kind="stable")
        begin = 0
        for part in parts:
            wanted = numbers[part_of == part]
            out = Array(apart, first.dtype, (len(wanted), *shape[1:]), begin * row_bytes)
            self._of_part(part, wanted, out)
            begin += len(wanted)
        if row_bytes:
            table = np.empty((len(numbers), 5), np.int64)
            table[:, 0], table[:, 1] = order * row_bytes, np.arange(len(numbers)) * row_bytes
            table[:, 2:] = row_bytes, 1, 1
            _core.copy_boxes(raw, whole, apart, table, 1)
        return Array(whole, first.dtype, shape)


class BatchOptions(TypedDict, total=False):
    """How batches are made: see BatchLoader."""

    shuffle: bool
    seed: int
    rank: int
    world: int
    drop_last: bool
    ahead: int
    threads: int


_DEFAULTS: BatchOptions = {
    "shuffle": True,
    "seed": 0,
    "rank": 0,
    "world": 1,
    "drop_last": False,
}


class _ReadAhead:
    """Threads that read a batch each. They are asked by queues of C, as Futures hold Python's lock for longer, and with
    many cores that lock is what batches wait for."""

    _LOOK_S = 1.0  # between two looks whether the program has ended in the midst of an epoch

    def __init__(self, read: Callable[[np.ndarray], Any], threads: int) -> None:
        self._read = read
        self._tasks: SimpleQueue[tuple[np.ndarray, SimpleQueue[Any]] | None] = SimpleQueue()
        self._threads: list[Thread] = []
        for number in range(threads):
            thread = Thread(target=self._serve, name=f"penstock-batches_{number}")
            try:
                thread.start()
            except RuntimeError:  # the system gives no more of them
                if not self._threads:
                    raise
                break
            self._threads.append(thread)

    def ask(self, numbers: np.ndarray) -> SimpleQueue[Any]:
        """Where the batch comes, or the error instead: (batch, None) or (None, error)."""
        place: SimpleQueue[Any] = SimpleQueue()
        self._tasks.put((numbers, place))
        return place

    def end(self) -> None:
        """What no thread has begun is not read. Returns when all threads have ended."""
        with suppress(Empty):
            while True:
                self._tasks.get_nowait()
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            thread.join()

    def _serve(self) -> None:
        main = main_thread()
        while True:
            try:
                task = self._tasks.get(timeout=self._LOOK_S)
            except Empty:
                if main.is_alive():
                    continue
                return
            if task is None:
                return
            numbers, place = task
            try:
                place.put((self._read(numbers), None))
            except BaseException as error:  # noqa: BLE001 - whoever takes the batch is told
                place.put((None, error))
            del task, numbers, place  # a batch is its taker's alone


_CORES_OF_THREAD = 4  # a batch of compressed samples is decoded by all cores, others by the thread alone
_FEWEST_THREADS, _MOST_THREADS = 2, 8


class BatchLoader:
    """Batches of samples, read ahead by threads. Each `iter()` is one epoch; `len()` is its number of batches.

    Args:
        samples: what to take: a Samples, or what Samples takes.
        batch_size: samples of a batch; the last may have fewer.
        shuffle: in random order, another one each epoch (the default); else in the order of the datasets.
        seed: of the order; 0 unless given. All ranks give the same.
        rank, world: this process, and how many share the samples of an epoch. Ranks get the same number of samples, or
            one more, of disjoint parts.
        drop_last: leave the last batch out when it has fewer samples; then all ranks get the same number of batches.
        ahead: batches that are read before they are asked for: twice as many as there are threads.
        threads: that read them: one for each 4 cores of this process, from 2 to 8.

    `state_dict()` says where it is, after the batches that were handed out; `load_state_dict()` goes on there, in this
    or another process with the same samples. Raises ValueError of sizes that make no sense; what reading raises comes
    where the batch would have come."""

    def __init__(
        self,
        samples: Samples | Source | Mapping[str, Source],
        batch_size: int,
        **options: Unpack[BatchOptions],
    ) -> None:
        need_known("a loader of batches", BatchOptions.__annotations__, options)
        threads = min(max(len(os.sched_getaffinity(0)) // _CORES_OF_THREAD, _FEWEST_THREADS), _MOST_THREADS)
        how: BatchOptions = {**_DEFAULTS, "threads": threads, **options}
        how.setdefault("ahead", max(1, 2 * how["threads"]))
        given = {"batch_size": batch_size, "ahead": how["ahead"], "threads": how["threads"], "world": how["world"]}
        for name, value in given.items():
            if operator.index(value) < 1:
                raise ValueError(f"{name} is {value}, it must be 1 or more")
        if operator.index(how["seed"]) < 0:
            raise ValueError(f"seed is {how['seed']}, it must be 0 or more")
        if not 0 <= operator.index(how["rank"]) < how["world"]:
            raise ValueError(f"rank is {how['rank']}, it must be one of the {how['world']} from 0 on")
        self._samples = samples if isinstance(samples, Samples) else Samples(samples)
        self.batch_size, self.shuffle = operator.index(batch_size), bool(how["shuffle"])
        self.seed, self.drop_last = operator.index(how["seed"]), how["drop_last"]
        self._rank, self._world = operator.index(how["rank"]), operator.index(how["world"])
        self._ahead, self._threads = how["ahead"], how["threads"]
        self._epoch = self._batch = 0
        self._turn = 0  # of whoever moves the place: one iterator, set_epoch() or load_state_dict()

    def __len__(self) -> int:
        count = len(self._samples)
        own = count // self._world if self.drop_last else -(-(count - self._rank) // self._world)
        return own // self.batch_size if self.drop_last else -(-own // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        """The batches of this epoch that were not handed out yet. RuntimeError in the midst of an epoch whose place
        another iterator, set_epoch() or load_state_dict() has moved."""
        turn = self._take_turn()
        self._leave_ended()
        order = self._order()
        readers = _ReadAhead(self._read, min(self._threads, len(self)))
        waiting: deque[SimpleQueue[Any]] = deque()
        try:
            first, step = self._part()
            at = asked = self._batch + first
            last = len(self)
            while at < last:
                if turn != self._turn:
                    cause = f"another epoch was begun after batch {at} of {last}"
                    raise RuntimeError(f"{cause}: use one iterator at a time")
                while asked < last and len(waiting) < self._ahead:
                    numbers = order[asked * self.batch_size : (asked + 1) * self.batch_size]
                    waiting.append(readers.ask(numbers))
                    asked += step
                batch, error = waiting.popleft().get()
                if error is not None:
                    raise error
                at += step
                self._batch = min(at - first, last)
                yield batch
            if turn == self._turn:
                self._next_epoch()
        finally:
            readers.end()

    def _part(self) -> tuple[int, int]:
        """Which of the batches that were not handed out come from here: the number of the first, and how far apart."""
        return 0, 1

    def _take_turn(self) -> int:
        self._turn += 1
        return self._turn

    def _leave_ended(self) -> None:
        """From behind the last batch of an epoch to the next one. An epoch without batches ends by itself."""
        if self._batch and self._batch >= len(self):
            self._next_epoch()

    def _next_epoch(self) -> None:
        self._epoch, self._batch = self._epoch + 1, 0

    def _order(self) -> np.ndarray:
        """Numbers of the samples of this rank, in the order of the epoch."""
        count = len(self._samples)
        if not self.shuffle:
            return np.arange(self._rank, count, self._world)
        return np.random.default_rng([self.seed, self._epoch]).permutation(count)[self._rank :: self._world]

    def _read(self, numbers: np.ndarray) -> Any:
        return self._samples.batch(numbers)

    def set_epoch(self, epoch: int) -> None:
        """The next iter() begins this epoch, at its first batch."""
        number = operator.index(epoch)
        if number < 0:
            raise ValueError(f"epoch is {epoch}, it must be 0 or more")
        self._take_turn()
        self._epoch, self._batch = number, 0

    def state_dict(self) -> dict[str, int | bool]:
        """The place behind the batches that were handed out, and what the order follows from: numbers."""
        return {
            "epoch": self._epoch,
            "batch": self._batch,
            "batch_size": self.batch_size,
            "seed": self.seed,
            "shuffle": self.shuffle,
            "world": self._world,
            "samples": len(self._samples),
        }

    def load_state_dict(self, state: Mapping[str, int | bool]) -> None:
        """Goes to a place that state_dict() told. ValueError where the order would be another one."""
        if not isinstance(state, Mapping):
            raise TypeError(f"the place is a dict that state_dict() told, not {type(state).__name__}")
        now = self.state_dict()
        missing = now.keys() - state.keys()
        if missing:
            raise ValueError(f"the place has no {', '.join(sorted(missing))}: it is none that state_dict() told")
        epoch, batch = operator.index(state["epoch"]), operator.index(state["batch"])
        if min(epoch, batch) < 0:
            raise ValueError(f"there is no batch {batch} of epoch {epoch}")
        for name in ("batch_size", "seed", "shuffle", "world", "samples"):
            if state[name] != now[name]:
                raise ValueError(f"the place is one of {name}={state[name]}, this loader has {name}={now[name]}")
        most = -(-len(self._samples) // self._world)  # of a rank
        if batch > -(-most // self.batch_size):
            raise ValueError(f"the place is behind {batch} batches, an epoch has {len(self)}")
        self._take_turn()
        self._epoch, self._batch = epoch, batch
