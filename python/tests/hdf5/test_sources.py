"""Virtual datasets whose sources are not there: the read says so, and a strict one refuses. h5py gives the values."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps

h5py = pytest.importorskip("h5py")

ROWS = 10


def source(path: Path, dataset: str = "d", first: int = 1) -> None:
    with h5py.File(path, "w") as file:
        file[dataset] = np.arange(first, first + ROWS, dtype="f8")


def virtual(path: Path, *sources: tuple[str, str]) -> Path:
    """The sources one behind the other."""
    layout = h5py.VirtualLayout((ROWS * len(sources),), "f8")
    for number, (file, dataset) in enumerate(sources):
        layout[number * ROWS : (number + 1) * ROWS] = h5py.VirtualSource(file, dataset, (ROWS,))
    with h5py.File(path, "w") as file:
        file.create_virtual_dataset("v", layout, fillvalue=-1)
    return path


def read(path: Path, selection: Any = ..., **options: Any) -> list[str]:
    """What the evidence says of it; the values are h5py's."""
    with h5py.File(path) as file:
        expected = file["v"][selection]
    with ps.open(path, device="host") as file:
        assert np.array_equal(file["v"].read(selection, **options), expected)
        return file.evidence()["notes"]


def refused(path: Path, words: str) -> None:
    with ps.open(path, device="host") as file, pytest.raises(ps.Error, match=words) as caught:
        file["v"].read(strict=True)
    assert caught.value.code == "fallback_refused"
    context = ps.Context("host", strict=True)
    with ps.open(path, context=context) as file, pytest.raises(ps.Error, match=words):
        file["v"].read()


def test_sources_that_are_there_are_not_spoken_of(tmp_path: Path) -> None:
    source(tmp_path / "a.h5")
    source(tmp_path / "b.h5", first=100)
    path = virtual(tmp_path / "v.h5", ("a.h5", "d"), ("b.h5", "d"))
    assert read(path) == []
    assert read(path, strict=True) == []


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("absent", "its source file 'b.h5' is not there"),
        ("other", "b.h5' has no dataset 'd'"),
    ],
)
@pytest.mark.parametrize("first", ["a", "b"])
def test_a_source_that_gives_nothing(what: str, words: str, first: str, tmp_path: Path) -> None:
    source(tmp_path / "a.h5")
    if what == "other":
        source(tmp_path / "b.h5", "another")
    second = {"a": "b", "b": "a"}[first]
    path = virtual(tmp_path / "v.h5", (f"{first}.h5", "d"), (f"{second}.h5", "d"))
    notes = read(path)
    assert len(notes) == 1
    assert notes[0].startswith("v: reads as fill values in part: ")
    assert words in notes[0]
    refused(path, words)
    there = slice(0, ROWS) if first == "a" else slice(ROWS, 2 * ROWS)
    assert read(path, there, strict=True) == [], "what does not need it is read"


def test_a_source_that_cannot_be_opened_is_an_error_that_names_it(tmp_path: Path) -> None:
    source(tmp_path / "a.h5")
    (tmp_path / "b.h5").write_text("no HDF5")
    path = virtual(tmp_path / "v.h5", ("a.h5", "d"), ("b.h5", "d"))
    with ps.open(path, device="host") as file:
        with pytest.raises(ps.Error, match=r"its source file '.*b.h5' cannot be read: .*begins with b'no HDF5'"):
            file["v"].read()
        assert int(file["v"][3]) == 4


def test_all_sources_are_gone(tmp_path: Path) -> None:
    path = virtual(tmp_path / "v.h5", ("a.h5", "d"), ("b.h5", "d"))
    assert len(read(path)) == 2
    refused(path, "a.h5' is not there")


def test_a_dataset_of_the_same_file(tmp_path: Path) -> None:
    path = virtual(tmp_path / "v.h5", (".", "d"))
    assert "has no dataset 'd'" in read(path)[0]
    with h5py.File(path, "a") as file:
        file["d"] = np.arange(ROWS, dtype="f8")
    assert read(path) == []


def test_a_source_whose_own_source_is_gone(tmp_path: Path) -> None:
    inner = virtual(tmp_path / "inner.h5", ("gone.h5", "d"))
    path = virtual(tmp_path / "v.h5", (inner.name, "v"))
    assert "inner.h5': its source file 'gone.h5' is not there" in read(path)[0]
    refused(path, "gone.h5")


def test_strided_mappings(tmp_path: Path) -> None:
    source(tmp_path / "a.h5")
    layout = h5py.VirtualLayout((2 * ROWS,), "f8")
    layout[::2] = h5py.VirtualSource("a.h5", "d", (ROWS,))
    layout[1::2] = h5py.VirtualSource("b.h5", "d", (ROWS,))
    with h5py.File(tmp_path / "v.h5", "w") as file:
        file.create_virtual_dataset("v", layout)
    notes = read(tmp_path / "v.h5")
    assert len(notes) == 1
    assert "'b.h5' is not there" in notes[0]


def unlimited(path: Path, file: str, *, step: int, gap: int = 0) -> Path:
    """A mapping that grows with its source, or (with %b in the name) with the number of its files."""
    from h5py import h5d, h5p, h5s, h5t

    with h5py.File(path, "w") as made:
        create, access = h5p.create(h5p.DATASET_CREATE), h5p.create(h5p.DATASET_ACCESS)
        create.set_fill_value(np.array(-1.0))
        here = h5s.create_simple((step,), (h5s.UNLIMITED,))
        here.select_hyperslab((0,), (h5s.UNLIMITED,), stride=(step,), block=(step,))
        there = h5s.create_simple((step,), (h5s.UNLIMITED,))
        if "%b" in file:
            there = h5s.create_simple((step,))
            there.select_all()
        else:
            there.select_hyperslab((0,), (h5s.UNLIMITED,), stride=(step,), block=(step,))
        create.set_virtual(here, file.encode(), b"d", there)
        access.set_virtual_printf_gap(gap)
        h5d.create(made.id, b"v", h5t.IEEE_F64LE, here, create, dapl=access)
    return path


def test_a_mapping_that_grows_with_its_source(tmp_path: Path) -> None:
    path = unlimited(tmp_path / "v.h5", "a.h5", step=ROWS)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("d", data=np.arange(3.0 * ROWS), maxshape=(None,))
    assert read(path) == []
    (tmp_path / "a.h5").unlink()
    with ps.open(path, device="host") as file:
        if file["v"].size:  # else there is nothing that a read could be told
            file["v"].read()
            assert "'a.h5' is not there" in file.evidence()["notes"][0]


def test_a_pattern_of_names_with_a_file_that_is_not_there(tmp_path: Path) -> None:
    path = unlimited(tmp_path / "v.h5", "part%b.h5", step=ROWS)
    for number in range(3):
        source(tmp_path / f"part{number}.h5", first=10 * number)
    assert read(path) == []
    with h5py.File(tmp_path / "part1.h5", "a") as file:
        del file["d"]
    with ps.open(path, device="host") as file:
        extent = file["v"].shape[0]
        file["v"].read()
        notes = file.evidence()["notes"]
    assert extent == ROWS or "part1.h5' has no dataset 'd'" in notes[0], "HDF5 ends there, or fills"


def test_sources_are_looked_for_where_hdf5_does(tmp_path: Path) -> None:
    """An absolute name that leads nowhere is looked for beside the file, a plain one beside that behind a link too."""
    for folder in ("old", "new", "links"):
        (tmp_path / folder).mkdir()
    for name in ("a.h5", "b.h5"):
        source(tmp_path / "old" / name)
    path = virtual(tmp_path / "old" / "v.h5", (str(tmp_path / "old" / "a.h5"), "d"), ("b.h5", "d"))
    shutil.copytree(tmp_path / "old", tmp_path / "new", dirs_exist_ok=True)
    shutil.rmtree(tmp_path / "old")
    assert read(tmp_path / "new" / path.name) == []
    (tmp_path / "links" / "v.h5").symlink_to(tmp_path / "new" / "v.h5")
    assert read(tmp_path / "links" / "v.h5") == []


def test_prefixes_that_are_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sources").mkdir()
    source(tmp_path / "sources" / "a.h5")
    path = virtual(tmp_path / "v.h5", ("a.h5", "d"))
    assert "'a.h5' is not there" in read(path)[0]
    monkeypatch.setenv("HDF5_VDS_PREFIX", "${ORIGIN}/sources")
    late = pytest.raises(ps.Error, match=r"could not open its source file .*/sources/a.h5.*HDF5_VDS_PREFIX")
    with ps.open(path, device="host") as file, late:  # HDF5 itself looked at the environment when it was loaded
        file["v"].read()
    show = "import sys, penstock as ps; f = ps.open(sys.argv[1], device='host'); print(f['v'][...].to_numpy().tolist())"
    more = f"{show}; print(f.evidence()['notes'])"
    done = subprocess.run([sys.executable, "-c", more, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [str(ps.load(tmp_path / "sources/a.h5", "host")["d"].to_numpy().tolist()), "[]"]


def test_of_many_sources_only_those_that_are_needed_are_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from penstock.formats.hdf5.reader import Hdf5

    for number in range(20):
        source(tmp_path / f"{number}.h5")
    path = virtual(tmp_path / "v.h5", *((f"{number}.h5", "d") for number in range(20)))
    opened = []
    real = Hdf5._source
    with ps.open(path, device="host") as file:
        assert file["v"].shape == (20 * ROWS,)
        monkeypatch.setattr(Hdf5, "_source", lambda self, name: (opened.append(name), real(self, name))[1])
        file["v"][5:15]
        assert [Path(name).name for name in opened] == ["0.h5", "1.h5"]
        file["v"][5:15]
        assert len(opened) == 2, "what was found is kept"
