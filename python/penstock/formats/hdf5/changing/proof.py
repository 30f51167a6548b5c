"""Tries the steps of a change on an image of the file, before the file is touched.

Extending datasets is safe by the order of its steps alone. Adding datasets and attributes can rearrange more than the
rules foresee; so for these each step is looked at through HDF5 itself. What must stay true: after any number of steps,
whatever could be read of the objects concerned before can still be read, in its old or its new state.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from h5py import h5a, h5d, h5f, h5fd, h5g, h5o, h5t

from penstock.formats.faults import unsupported
from penstock.formats.hdf5.attributes import plain
from penstock.formats.hdf5.changing.order import Change, Fresh
from penstock.formats.hdf5.changing.overlay import Overlay, Real
from penstock.formats.hdf5.library import place_of
from penstock.formats.hdf5.open import access_list, high_level, name_bytes, name_text

Facts = dict[str, Any]
State = dict[str, Facts] | None


class Image(NamedTuple):
    """A file, where it ended before, and how large it will be before the first step."""

    real: Real
    old_end: int
    size: int


def check_steps(name: str, image: Image, steps: tuple[list[Fresh], list[Change]], paths: Iterable[str]) -> None:
    """Raises Error when a step is not safe for one of the objects."""
    overlay = Overlay(image.real, image.old_end)
    fresh, changes = steps
    for one in fresh:
        _put(overlay, one.offset, one.content)
    overlay.truncate(image.size)
    paths = sorted(set(paths))
    states = [_look(overlay, paths)]
    for one in changes:
        _put(overlay, one.offset, one.new)
        states.append(_look(overlay, paths))
    for number, state in enumerate(states):
        wrong = _wrong(states[0], state, states[-1])
        if wrong:
            cause = f"after {number} of {len(changes)} steps {wrong}"
            raise unsupported(name, f"this cannot be added safely: {cause}", "add it with h5py, or write a new file")


def _put(overlay: Overlay, offset: int, content: bytes) -> None:
    overlay.seek(offset)
    overlay.write(memoryview(content))


def _look(overlay: Overlay, paths: Sequence[str]) -> State:
    """What HDF5 finds; None when it cannot open the file."""
    access = access_list()
    access.set_fileobj_driver(h5fd.fileobj_driver, overlay)
    access.set_fclose_degree(h5f.CLOSE_STRONG)
    try:
        file = h5f.open(b"penstock-proof", h5f.ACC_RDONLY, access)
    except (OSError, RuntimeError):
        return None
    try:
        return {path: _facts(file, path) for path in paths}
    finally:
        file.close()


def _facts(file: h5f.FileID, path: str) -> Facts:
    """Of one object; empty when there is none."""
    try:
        found = h5o.open(file, name_bytes(path) or b"/")
    except KeyError:
        return {}
    facts: Facts = {"address": h5o.get_info(found).addr}
    try:
        if isinstance(found, h5g.GroupID):
            names: list[bytes] = []
            found.links.iterate(names.append)
            facts |= {f"link {name_text(one)}": found.links.get_info(one).u for one in names}
        elif isinstance(found, h5d.DatasetID):
            facts |= {"shape": found.shape, "type": found.get_type().encode(), "offset": place_of(found)}
        for index in range(h5a.get_num_attrs(found)):
            attribute = h5a.open(found, index=index)
            facts[f"attribute {name_text(attribute.name)}"] = _value(found, attribute)
    except (OSError, RuntimeError, ValueError, KeyError, TypeError) as error:
        facts["trouble"] = str(error)
    return facts


def _value(found: h5g.GroupID | h5d.DatasetID, attribute: h5a.AttrID) -> Any:
    """What can be compared: h5py makes new objects of references each time, so of these the stored bytes."""
    stored = attribute.get_type()
    if stored.detect_class(h5t.REFERENCE):
        if stored.detect_class(h5t.VLEN):
            return len(high_level(found).attrs[name_text(attribute.name)])
        raw = np.zeros(attribute.get_storage_size(), np.uint8)
        attribute.read(raw, mtype=stored)
        return raw.tobytes()
    value = plain(high_level(found).attrs[name_text(attribute.name)])
    return value.tobytes() if isinstance(value, np.ndarray) else value


def _wrong(old: State, state: State, new: State) -> str:
    """What can no longer be read, or reads neither as before nor as afterwards; empty when all can."""
    if old is None or state is None or new is None:
        return "the file could not be opened"
    for path, facts in state.items():
        before, after = old[path], new[path]
        if not after or "trouble" in after:
            return f"{path or '/'} could not be read: {after.get('trouble', 'it is not there')}"
        if not before and facts and facts != after:
            return f"{path or '/'} would be half made"
        for key, value in before.items():
            if key not in facts or not (_same(facts[key], value) or _same(facts[key], after.get(key))):
                return f"{key} of {path or '/'} could not be read"
        if "trouble" in facts and "trouble" not in before:
            return f"{path or '/'} could not be read: {facts['trouble']}"
    return ""


def _same(one: Any, other: Any) -> bool:
    return bool(np.array_equal(one, other)) if isinstance(one, np.ndarray) else one == other
