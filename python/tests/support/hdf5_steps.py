"""Every state that a dying writer can leave an HDF5 file in: the first steps of a change, for any number of steps."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import h5py
import numpy as np
import pytest
from hdf5_kit import numbered, put

from penstock._arrays.dtype import DType
from penstock.formats.hdf5.changing import apply as hdf5_apply, making as hdf5_making
from penstock.formats.hdf5.changing.order import Change
from penstock.formats.hdf5.write import Hdf5Writer
from penstock.formats.model import NewDataset

INT = DType.of("int32")
Shapes = Mapping[str, tuple[int, ...]]
Check = Callable[[Path], None]
Reorder = Callable[[Sequence[Change]], Sequence[Change]]


def check_content(path: Path, before: Shapes, after: Shapes) -> None:
    """Stock HDF5 opens the file; each dataset has its old or its new shape, and right values in all of it."""
    with h5py.File(path, "r") as file:
        for name, shape in before.items():
            found = file[name]
            assert found.shape in (shape, after[name]), (name, found.shape)
            assert np.array_equal(found[...], numbered(found.shape)), name


class Steps:
    """Publishes with a look at every prefix of the changes; counts them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, reorder: Reorder | None = None) -> None:
        self.looked = 0
        self.changes: list[Change] = []
        self._reorder = reorder or (lambda changes: changes)
        self._check: Check | None = None
        monkeypatch.setattr(hdf5_making, "apply", self._apply)

    def publish(self, writer: Hdf5Writer, check: Check | None) -> None:
        self._check = check
        writer.publish(durable=False)

    def _apply(self, name: str, descriptor: int, changes: Sequence[Change]) -> None:
        self.changes = list(changes)
        image = Path(name).with_name("image.h5")
        for count in range(len(changes) + 1) if self._check else ():
            shutil.copyfile(name, image)
            apply_to(image, self._reorder(changes)[:count])
            self._check(image)
            self.looked += 1
        hdf5_apply.apply(name, descriptor, changes)


def apply_to(path: Path, changes: Sequence[Change]) -> None:
    descriptor = os.open(path, os.O_RDWR)
    try:
        for one in changes:
            assert os.pwrite(descriptor, one.new, one.offset) == len(one.new)
    finally:
        os.close(descriptor)


def grow(writer: Hdf5Writer, shapes: Shapes) -> tuple[Shapes, Shapes]:
    """Extends datasets and writes their new elements; (shapes before, shapes after) of all."""
    before = {name: writer.info(name).shape for name in writer.names()}
    for name, shape in shapes.items():
        writer.extend(name, shape)
        put(writer, name, before[name])
    return before, {**before, **shapes}


def make(path: Path, shapes: Shapes, chunks: Shapes) -> None:
    writer = Hdf5Writer(path)
    writer.create(
        [NewDataset(name, shape, INT, chunks[name], resizable=(None,) * len(shape)) for name, shape in shapes.items()]
    )
    for name in shapes:
        put(writer, name)
    writer.publish(durable=False)


def make_with_h5py(path: Path, shapes: Shapes, chunks: Shapes, **options: object) -> None:
    """`first`: elements of a dataset before all others, so that structures cross pages here and there."""
    first = int(options.pop("first", 0))  # type: ignore[call-overload]
    most = options.pop("maxshape", None)
    with h5py.File(path, "w", **options) as file:
        if first:
            file["first"] = numbered((first,))
        for name, shape in shapes.items():
            maxshape = most or (None,) * len(shape)
            file.create_dataset(name, data=numbered(shape), chunks=chunks[name], maxshape=maxshape)
