"""What the comparison with stock readers is generated from: a dataset as (type, shape, layout, filter), and selections.

Hypothesis draws and, where a case fails, shrinks them. A case knows nothing of libraries; `stores` writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

RECORD = [("a", "<i4"), ("b", ">f8", (2,)), ("c", "S3"), ("d", [("e", "<u2"), ("f", "?")])]


@dataclass(frozen=True)
class Case:
    """One dataset. `filter` is a name that the format's store knows; `written`: how much of it has values."""

    type: str
    shape: tuple[int, ...]
    chunks: tuple[int, ...] | None  # None: one behind the other
    grows: tuple[int, ...]  # axes without limit
    filter: str
    written: str  # "all", "part" or "none"
    variant: str  # of the format: its version, the order of elements, ...
    seed: int

    @property
    def layout(self) -> str:
        return "contiguous" if self.chunks is None else "chunked" if not self.grows else "growing"

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(RECORD if self.type == "record" else self.type)

    def values(self) -> np.ndarray:
        """Of any bits, so that NaNs and all signs are among them; text and bools are of what their types allow."""
        dtype, made = self.dtype, np.random.default_rng(self.seed)
        if dtype.kind == "b":
            return np.asarray(made.integers(0, 2, self.shape), dtype)
        if dtype.names:
            found = np.zeros(self.shape, dtype)
            found["a"], found["b"] = made.integers(0, 99, self.shape), made.random((*self.shape, 2))
            found["c"], found["d"]["e"] = b"xyz", made.integers(0, 99, self.shape)
            return found
        if dtype.kind in "SU":
            return np.asarray(made.integers(0, 10**6, self.shape).astype("U7").astype(dtype))
        if self.filter in ("scaleoffset", "quantized"):
            return np.asarray(made.integers(0, 100, self.shape).astype(dtype))
        count = int(np.prod(self.shape, dtype=int))
        raw = made.integers(0, 256, count * dtype.itemsize, np.uint8)
        return np.frombuffer(raw.tobytes(), dtype).reshape(self.shape).copy()

    def written_part(self) -> tuple[slice, ...]:
        if self.written == "all":
            return tuple(slice(None) for _ in self.shape)
        return tuple(slice(extent // 3, extent // 3 + (extent + 2) // 3) for extent in self.shape)


@dataclass(frozen=True)
class Store:
    """A format: what its library can write here, how it does, and how it reads."""

    format: str
    suffix: str
    types: Sequence[str]
    filters: Sequence[str]
    variants: Sequence[str]
    write: Callable[[Path, Case], None]
    read: Callable[[Path], np.ndarray]
    may_grow: str = "any"  # axes without limit: "any", "first" or "none"
    least: int = 0  # elements of an axis that does not grow


@st.composite
def cases(draw: Any, store: Store) -> Case:
    """A dataset that the library of the store writes."""
    rank = draw(st.sampled_from((2, 1, 3, 2, 3, 4, 0)))
    most = {0: 1, 1: 400, 2: 40, 3: 14, 4: 7}[rank]
    shape = tuple(draw(st.lists(st.integers(store.least, most), min_size=rank, max_size=rank)))
    is_chunked = rank > 0 and draw(st.integers(0, 3)) != 0
    chunks, grows, packed = None, (), "none"
    if is_chunked:
        chunks = tuple(draw(st.integers(1, max(1, min(extent, 50)))) for extent in shape)
        free = {"any": range(rank), "first": (0,), "none": ()}[store.may_grow]
        grows = tuple(axis for axis in free if draw(st.booleans()))
        packed = draw(st.sampled_from(store.filters))
    if any(extent == 0 and axis not in grows for axis, extent in enumerate(shape)):
        chunks, grows, packed = None, (), "none"  # libraries take no chunks that are larger than the dataset
    kind, variant = draw(st.sampled_from(store.types)), draw(st.sampled_from(store.variants))
    written = draw(st.sampled_from(("all", "all", "part", "none")))
    return Case(kind, shape, chunks, grows, packed, written, variant, draw(st.integers(0, 2**16)))


def _one(draw: Any, extent: int) -> Any:
    """Of one axis: an integer or a slice, with steps of both signs and bounds beyond the ends."""
    if extent and draw(st.integers(0, 3)) == 0:
        return draw(st.integers(-extent, extent - 1))
    bound = st.none() | st.integers(-extent - 2, extent + 2)
    step = draw(st.none() | st.integers(1, 5) | st.integers(-4, -1))
    return slice(draw(bound), draw(bound), step)


def _listed(draw: Any, extent: int) -> Any:
    if draw(st.booleans()):
        return np.array(draw(st.lists(st.booleans(), min_size=extent, max_size=extent)), bool)
    numbers = st.integers(-extent, extent - 1) if extent else st.nothing()
    found = draw(st.lists(numbers, max_size=12 if extent else 0))
    return draw(st.sampled_from((list, lambda one: np.array(one, "i8"))))(found)


@dataclass(frozen=True)
class Picked:
    """An index and what kind it is of."""

    kind: str
    index: Any


@st.composite
def selections(draw: Any, shape: tuple[int, ...]) -> Picked:
    """An index of all kinds that a dataset takes."""
    kind = draw(st.sampled_from(("whole", "basic", "basic", "ellipsis", "list", "mask of all")))
    if kind == "whole" or not shape:
        return Picked("whole", draw(st.sampled_from(((), Ellipsis))))
    if kind == "mask of all":
        chosen = np.random.default_rng(draw(st.integers(0, 99))).random(shape) < draw(st.sampled_from((0, 0.2, 1)))
        return Picked(kind, chosen)
    items = [_one(draw, extent) for extent in shape]
    if kind == "list":
        axis = draw(st.integers(0, len(shape) - 1))
        items[axis] = _listed(draw, shape[axis])
    if kind == "ellipsis":
        first = draw(st.integers(0, len(shape)))
        last = draw(st.integers(first, len(shape)))
        items[first:last] = [Ellipsis]
    if kind == "basic":
        items = items[: draw(st.integers(1, len(shape)))]
    is_alone = len(items) == 1 and draw(st.booleans())
    return Picked(kind, items[0] if is_alone else tuple(items))


def taken(array: np.ndarray, index: Any) -> np.ndarray:
    """What NumPy takes; a list's dimension stays in its place, also where a slice stands between it and an integer."""
    items = index if isinstance(index, tuple) else (index,)
    listed = [i for i, one in enumerate(items) if isinstance(one, (list, np.ndarray))]
    if not listed or (isinstance(items[listed[0]], np.ndarray) and items[listed[0]].ndim > 1):
        return np.asarray(array[index])
    place = listed[0]
    numbers = np.asarray(items[place])
    if numbers.dtype != bool:
        numbers = numbers.astype("i8")
    axis = sum(not isinstance(one, (int, np.integer)) for one in items[:place])
    rest = array[(*items[:place], slice(None), *items[place + 1 :])]
    return np.asarray(rest[(slice(None),) * axis + (numbers,)])
