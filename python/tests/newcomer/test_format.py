"""A format comes by the steps of CONTRIBUTING.md: a reader, a writer, a row, and the kits, to which it is one of many.

The format of the newcomer has named arrays behind a page that begins with its mark and tells in JSON where they lie.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from newcomer import Newcomer, copy_packages, pytest_in

READER = '''"""Toy files: a page that tells of the arrays, and the arrays."""

from __future__ import annotations

import json
import os

from penstock._arrays.dtype import DType
from penstock._files.descriptor import read_at
from penstock.formats.faults import cut_short, damaged, foreign
from penstock.formats.model import DatasetInfo
from penstock.formats.simple.single import ContiguousFile, bytes_of, identity_of, reading

MARK = b"TOYFILE1"
HEAD_BYTES = 4096


def open_toy(name: str | os.PathLike[str]) -> ContiguousFile:
    name = os.fspath(name)
    with reading(name) as (descriptor, status):
        head = read_at(descriptor, HEAD_BYTES, 0)
    if not head.startswith(MARK):
        raise foreign(name, "toy", head)
    try:
        told = json.loads(head[len(MARK) :].rstrip(b"\\0"))
        found = {one: _described(one, *entry) for one, entry in told.items()}
    except (ValueError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise damaged(name, f"its head is not understood: {str(error)[:100]}") from None
    for one, (info, start) in found.items():
        if start < HEAD_BYTES or start + bytes_of(info) > status.st_size:
            raise cut_short(name, f"{one} does not lie in the {status.st_size} bytes of the file", one)
    return ContiguousFile(name, "toy", found, identity=identity_of(status))


def _described(name: str, dtype: str, shape: list[int], start: int) -> tuple[DatasetInfo, int]:
    if not all(type(extent) is int and 0 <= extent < 1 << 40 for extent in [*shape, start]) or len(shape) > 32:
        raise ValueError(f"{shape} at {start}")
    return DatasetInfo(name, tuple(shape), DType.of(dtype), tuple(shape)), start
'''

WRITER = '''"""Writes toy files."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

from penstock.formats.faults import refused
from penstock.formats.model import NewDataset, Writer
from penstock.formats.simple.in_place import InPlaceWriter
from penstock.formats.simple.single import bytes_of
from penstock.formats.simple.single_write import ContiguousWriter, aligned
from penstock.formats.toy.reader import HEAD_BYTES, MARK, open_toy


def toy_writer(name: str | os.PathLike[str], *, append: bool = False) -> Writer:
    return InPlaceWriter(name, open_toy) if append else ToyWriter(name)


class ToyWriter(ContiguousWriter):
    format = "toy"

    def _place(self, datasets: Sequence[NewDataset]) -> list[int]:
        end = max((start + bytes_of(info) for info, start in self._datasets.values()), default=HEAD_BYTES)
        places = []
        for one in datasets:
            places.append(aligned(end))
            end = places[-1] + one.dtype.itemsize * max(1, _items(one.shape))
        return places

    def _head(self) -> bytes:
        told = {one: (info.dtype.dtype.str, info.shape, at) for one, (info, at) in self._datasets.items()}
        text = MARK + json.dumps(told).encode()
        if len(text) > HEAD_BYTES:
            raise refused(self.name, "it holds too many arrays", "write several files")
        return text.ljust(HEAD_BYTES, b"\\0")


def _items(shape: Sequence[int]) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count
'''

_PLACES = '"toy.reader:open_toy", "toy.write:toy_writer"'
ROW = f"""        Format("toy", (".toy",), {_PLACES}, begins=(b"TOYFILE1",), has_groups=False),
"""

KIT = '''"""Toy files: the kit of formats, and NumPy as the stock library."""

from __future__ import annotations

import json
from pathlib import Path

import format_kit as kit
import numpy as np

import penstock


def by_numpy(path: Path) -> np.ndarray:
    head = path.read_bytes()[8:4096].rstrip(b"\\0")
    dtype, shape, at = json.loads(head)["data"]
    return np.fromfile(path, dtype, int(np.prod(shape)), offset=at).reshape(shape)


def test_round_trips(tmp_path: Path) -> None:
    kit.check_round_trips(tmp_path, ".toy", stock=by_numpy)


def test_selections_and_out(tmp_path: Path) -> None:
    expected = kit.sample((31, 5, 4), "f4")
    penstock.save(tmp_path / "x.toy", {"a": expected, "b": expected[0]}, "host")
    with penstock.open(tmp_path / "x.toy", device="host") as file:
        kit.check_selections(file, "a", expected)
        kit.check_refuses_wrong_out(file["a"])
    kit.check_reads_only_what_is_wanted(tmp_path / "x.toy", "a", slice(3, 5), (tmp_path / "x.toy").stat().st_size)


def test_writes(tmp_path: Path) -> None:
    kit.check_changes_in_place(tmp_path, ".toy")
    kit.check_big_endian_values(tmp_path, ".toy")
    kit.check_leaves_nothing_after_an_error(tmp_path, ".toy")


def test_damaged_files_give_data_or_an_error(tmp_path: Path) -> None:
    penstock.save(tmp_path / "x.toy", {"a": kit.sample((10, 10), "f4")}, "host")
    plain = (tmp_path / "x.toy").read_bytes()
    survived = sum(kit.check_survives(tmp_path / "y.toy", raw) for raw in kit.mutations(plain, 200, 1))
    assert 0 < survived < 200


def test_its_first_bytes_tell_of_it_under_any_name(tmp_path: Path) -> None:
    penstock.save(tmp_path / "x.toy", {"a": np.arange(7.0)}, "host")
    other = (tmp_path / "x.toy").rename(tmp_path / "other")
    kit.same(penstock.load(other, "host")["a"], np.arange(7.0))
'''

RIG_READER = """def by_toy(path: Path) -> int:
    dtype, shape, at = json.loads(path.read_bytes()[8:4096].rstrip(b"\\0"))["x"]
    return version_of(np.fromfile(path, dtype, shape[0], offset=at))


"""

PAGE = "# Toy files\n\nNamed arrays behind a page that tells of them.\n"
PAGE_ROW = "| toy | .toy | yes | yes, elements changed too | named arrays |\n"


def reader_and_writer(newcomer: Newcomer) -> None:
    at = newcomer.at(1)
    at.writes("python/penstock/formats/toy/__init__.py", '"""Toy files."""\n')
    at.writes("python/penstock/formats/toy/reader.py", READER)
    at.writes("python/penstock/formats/toy/write.py", WRITER)


def row(newcomer: Newcomer) -> None:
    registry = "python/penstock/formats/registry.py"
    newcomer.at(2).inserts(registry, ROW, before='        Format("raw", (), "simple.raw:')
    newcomer.at(2).inserts(registry, ', "toy"', before="]\n_BY_SUFFIX")


def kit_of_formats(newcomer: Newcomer) -> None:
    newcomer.at(3).writes("python/tests/toy/test_kit.py", KIT)


def kit_of_writers(newcomer: Newcomer) -> None:
    rig = "python/tests/support/writers_rig.py"
    newcomer.at(4).inserts(rig, RIG_READER, before="def by_h5py(path: Path)")
    newcomer.at(4).inserts(rig, '    "toy": Writer("x.toy", save(False), by_toy),\n', before='    "h5": Writer("x.h5"')


def page(newcomer: Newcomer) -> None:
    newcomer.at(5).writes("docs/formats/toy.md", PAGE)
    newcomer.at(5).inserts("docs/formats.md", PAGE_ROW, before="| raw | any |")


STEPS = (reader_and_writer, row, kit_of_formats, kit_of_writers, page)
OF_WRITERS = "python/tests/durable/test_steps.py"  # the quickest of those that take a row for a case


def added(tree: Path, *, but: Callable[[Newcomer], None] | None = None) -> Newcomer:
    newcomer = Newcomer("Add a format", "toy", copy_packages(tree))
    for step in STEPS:
        if step is not but:
            step(newcomer)
    return newcomer


def test_a_format_comes_by_the_steps_of_the_page(tmp_path: Path) -> None:
    newcomer = added(tmp_path)
    assert newcomer.has_taken_all()
    ran = pytest_in(tmp_path, "python/tests/toy/test_kit.py")
    assert ran.returncode == 0, ran.stdout
    ran = pytest_in(tmp_path, OF_WRITERS, "-k", "toy", "-rs")
    assert ran.returncode == 0, ran.stdout
    assert re.search(r"^1 (passed|skipped)", ran.stdout, re.M), "the row of writers is one of their cases"


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (reader_and_writer, "No module named 'penstock.formats.toy'"),
        (row, "the suffix of .*[.]toy is that of no known format"),
        (kit_of_formats, "file or directory not found: python/tests/toy/test_kit.py"),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_without_a_step_the_kit_says_what_is_missing(
    step: Callable[[Newcomer], None], said: str, tmp_path: Path
) -> None:
    newcomer = added(tmp_path, but=step)
    assert not newcomer.has_taken_all()
    ran = pytest_in(tmp_path, "python/tests/toy/test_kit.py", "-x")
    assert ran.returncode != 0
    assert re.search(said, ran.stdout), ran.stdout


def test_without_its_row_no_test_of_writers_knows_the_format(tmp_path: Path) -> None:
    added(tmp_path, but=kit_of_writers)
    ran = pytest_in(tmp_path, OF_WRITERS, "-k", "toy")
    assert ran.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, ran.stdout
