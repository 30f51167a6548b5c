"""CONTRIBUTING.md is true: what its steps name is there, and a path and a format come by a file and a row. The modules
beside this one follow all steps of a section; this one is for every run."""

from __future__ import annotations

import re
from pathlib import Path

import format_kit as kit
import numpy as np
import pytest
from newcomer import PAGE, Newcomer
from places import ROOT

import penstock
import penstock.formats
from penstock.formats import registry

STEPS = re.findall(r"^\d\. (.*(?:\n {3}.*)*)", PAGE, re.M)
# What steps name and do not give a file for.
PLACES = {
    "PathKind": "include/penstock/types.hpp",
    "kPathKinds": "include/penstock/types.hpp",
    "Path": "src/path/path.hpp",
    "Container": "python/penstock/formats/model.py",
    "Format": "python/penstock/formats/format.py",
    "Several": "python/penstock/formats/registry.py",
    "ContiguousFile": "python/penstock/formats/simple/single.py",
    "ContiguousWriter": "python/penstock/formats/simple/single_write.py",
    "InPlaceWriter": "python/penstock/formats/simple/in_place.py",
    "Suite": "python/penstock_bench/engine/suite.py",
    "check_round_trips": "python/tests/support/format_kit.py",
}


def words(step: str) -> list[str]:
    return re.findall(r"`([^`]+)`", step)


@pytest.mark.parametrize("step", STEPS)
def test_the_files_that_a_step_names_are_there(step: str) -> None:
    paths = [word.rstrip("/") for word in words(step) if "/" in word]
    assert paths or words(step)
    for path in paths:
        places = [path, f"src/path/{path}", f"python/penstock/{path}", f"python/penstock_bench/{path}"]
        places.append(f"python/tests/{path}")
        assert any(list(ROOT.glob(place.replace("NAME", "*"))) for place in places), path


def test_the_nouns_that_steps_name_are_there() -> None:
    named = {word for step in STEPS for word in words(step)}
    assert set(PLACES) <= named
    for word, path in PLACES.items():
        assert re.search(rf"\b{word}\b", (ROOT / path).read_text()), word


def test_a_path_is_named_by_its_row_and_its_own_file_alone() -> None:
    named = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "src").rglob("*.[ch]pp")
        if not path.stem.endswith("_test") and re.search(r'PathKind::aio\b|"aio"|\bmake_aio\b', path.read_text())
    }
    assert named == {"src/base/path_traits.hpp", "src/path/queued/aio.cpp", "src/path/queued/aio_absent.cpp"}


READER = """
import numpy as np

from penstock._arrays.dtype import DType
from penstock.formats.faults import foreign
from penstock.formats.model import DatasetInfo
from penstock.formats.simple.single import ContiguousFile, identity_of, reading
from penstock._files.descriptor import read_at


def open_tiny(name):
    with reading(name) as (descriptor, status):
        begin = read_at(descriptor, 16, 0)
    if not begin.startswith(b"TINYFILE"):
        raise foreign(name, "tiny", begin)
    shape = (int.from_bytes(begin[8:16], "little"),)
    info = DatasetInfo("data", shape, DType.of("float64"), shape)
    return ContiguousFile(name, "tiny", {"data": (info, 16)}, identity=identity_of(status))
"""


def test_a_format_comes_by_a_module_and_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "modules" / "tiny"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "reader.py").write_text(READER)
    monkeypatch.setattr(penstock.formats, "__path__", [*penstock.formats.__path__, str(folder.parent)])
    row = registry.Format("tiny", (".tiny",), "tiny.reader:open_tiny", "", single=True, begins=(b"TINYFILE",))
    monkeypatch.setitem(registry.FORMATS, "tiny", row)
    monkeypatch.setitem(registry._BY_SUFFIX, ".tiny", row)
    monkeypatch.setattr(registry, "_SIGNED", registry.signed(registry.FORMATS))
    monkeypatch.setattr(registry, "_MARKS", registry.marks(registry._SIGNED))
    values = np.arange(1000.0)
    path = tmp_path / "x.tiny"
    path.write_bytes(b"TINYFILE" + (1000).to_bytes(8, "little") + values.tobytes())
    with penstock.open(path, context=kit.slow()) as file:
        kit.check_selections(file, "data", values)
    assert np.array_equal(penstock.load(path, "host").to_numpy(), values)
    other = path.rename(tmp_path / "other")  # its first bytes are known by the row
    assert np.array_equal(penstock.load(other, "host").to_numpy(), values)
    path.write_bytes(b"something else, and long enough")
    with pytest.raises(penstock.Error, match="tiny"):
        penstock.open(path)


def test_a_newcomer_changes_no_file_that_the_step_does_not_name(tmp_path: Path) -> None:
    newcomer = Newcomer("Add a suite of measurements", "tiny", tmp_path)
    newcomer.at(1).writes("python/penstock_bench/suites/tiny/table.py", "")
    newcomer.at(3).writes("python/tests/suites/test_tiny.py", "")
    for number, file in ((1, "python/penstock_bench/suites/other/table.py"), (2, "docs/bench.md")):
        with pytest.raises(AssertionError, match=f"step {number} does not name {file}"):
            newcomer.at(number).writes(file, "")
    assert newcomer.has_taken_all()
    assert not Newcomer("Add a suite of measurements", "tiny", tmp_path).has_taken_all()
    with pytest.raises(AssertionError, match="has no steps 'Add a dream'"):
        Newcomer("Add a dream", "tiny", tmp_path)
