"""Elements of no fixed size (text, lists, references): the format's library makes Python objects of them.

They are read at once, on the calling thread, and lie in host memory whatever the device: no GPU has a type for them.
What must stay true: they come beside all others of a call and fail none of them; the evidence says of each that it
stays on the host, and a strict read to a GPU refuses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.formats.faults import host_alone, no_memory
from penstock.formats.reading.request import Request

if TYPE_CHECKING:
    import numpy as np

    from penstock.formats.model import Container
    from penstock.formats.reading.mover import Mover


def others(requests: Sequence[Request]) -> list[Request]:
    """Those whose elements are bytes."""
    return [one for one in requests if not one.info.dtype.host_only]


def notes_of(requests: Sequence[Request], mover: Mover, is_strict: bool) -> list[str]:
    """For the evidence. Error of the first that cannot go where a strict read must bring it."""
    found = [one.info for one in requests if one.info.dtype.host_only]
    if is_strict and not mover.emulated:
        raise host_alone(mover.name, found[0].name, str(found[0].dtype), mover.device)
    return [f"{info.name}: read by {mover.library} into host memory: {info.conversion}" for info in found]


def merged(source: Container, requests: Sequence[Request], results: Sequence[Any]) -> list[Any]:
    """What each request gets: `results` in order, and objects where elements are such."""
    left = iter(results)
    return [_read(source, one) if one.info.dtype.host_only else next(left) for one in requests]


def _read(source: Container, one: Request) -> Any:
    import numpy as np

    from penstock._arrays.host_array import HostArray

    out = None if one.out is None else _checked(one)
    try:
        box = source.values(one.info.name, one.stored.box)
        found = _picked(one, box)[_inside(one)]
    except MemoryError as error:
        raise no_memory(source.name, str(error) or "there is no memory for it", one.info.name) from error
    if one.info.order == "F":
        found = found.T
    if out is None:
        return found.view(HostArray)
    np.copyto(out, found)
    return one.out


def _picked(one: Request, box: np.ndarray) -> np.ndarray:
    """What a list or a mask names of the box; of the other dimensions all of it."""
    picks = one.stored.picks
    if picks is None:
        return box
    start = one.stored.box.start
    if not picks.single:
        return box.take(picks.numbers - start[picks.axis], picks.axis)
    counts = one.stored.counts
    return box[tuple((picks.numbers - start).T)].reshape(counts)


def _inside(one: Request) -> tuple[Any, ...]:
    """The selection as an index of its box."""
    chosen, parts = one.stored, []
    for step, gone in zip(chosen.steps, chosen.dropped, strict=True):
        parts.append(0 if gone else slice(None, None, step))
    return (*parts, ...)  # what is left is an array, not an element


def _checked(one: Request) -> np.ndarray:
    """Memory for objects is an array of NumPy."""
    import numpy as np

    name, dtype, shape = one.info.name, one.info.dtype, one.selection.shape
    if not isinstance(one.out, np.ndarray) or not one.out.dtype.hasobject:
        what = f"a {type(one.out).__name__}" + (f" of {one.out.dtype}" if hasattr(one.out, "dtype") else "")
        raise TypeError(
            f"dataset {name!r} has elements of {dtype}, which have no fixed size and go to no GPU: leave out= out, or "
            f"pass an array of NumPy of Python objects, not {what}"
        )
    if one.out.shape != shape:
        raise ValueError(f"out has shape {one.out.shape}, the selection of dataset {name!r} {shape}")
    return one.out
