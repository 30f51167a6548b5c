"""What a power failure can leave of a durable change to an HDF5 file, and how opening it for writing repairs that."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

h5py = pytest.importorskip("h5py")
from hdf5_kit import numbered  # noqa: E402
from hdf5_steps import check_content, grow, make  # noqa: E402

from penstock import Error  # noqa: E402
from penstock.formats import hdf5_append, hdf5_journal  # noqa: E402
from penstock.formats.hdf5_write import Hdf5Writer  # noqa: E402


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.h5"


class PowerFailure(Exception):
    """The machine goes dark."""


def fail_after(monkeypatch: pytest.MonkeyPatch, leave: object) -> None:
    """While changes are applied, `leave(descriptor, changes)` says what gets to storage; then all ends."""

    def apply(name: str, descriptor: int, changes: list) -> None:
        leave(descriptor, changes)  # type: ignore[operator]
        raise PowerFailure

    monkeypatch.setattr(hdf5_append, "apply", apply)
    monkeypatch.setattr(hdf5_append.InPlace, "abandon", lambda self, session: os.close(session.descriptor))


@pytest.mark.parametrize("seed", range(12))
def test_any_mixture_of_sectors_is_repaired_when_the_file_is_opened_for_writing(
    path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    make(path, {"a": (64, 3), "b": (64, 3)}, {"a": (1, 3), "b": (1, 3)})
    chance = np.random.default_rng(seed)

    def leave(descriptor: int, changes: list) -> None:
        for one in changes:
            begin = 0
            while begin < len(one.new):
                end = begin + 512 - (one.offset + begin) % 512
                if chance.random() < 0.5:
                    os.pwrite(descriptor, one.new[begin:end], one.offset + begin)
                begin = end

    with monkeypatch.context() as patch:
        fail_after(patch, leave)
        writer = Hdf5Writer(path, append=True)
        grow(writer, {"a": (66, 3), "b": (66, 3)})
        with pytest.raises(PowerFailure):
            writer.publish(durable=True)
    assert hdf5_journal.journal_path(str(path)).exists()
    Hdf5Writer(path, append=True).abandon()
    assert not hdf5_journal.journal_path(str(path)).exists()
    check_content(path, {"a": (66, 3), "b": (66, 3)}, {"a": (66, 3), "b": (66, 3)})


def test_a_journal_is_only_followed_where_it_fits(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(path, {"a": (3, 3)}, {"a": (1, 3)})
    journal = hdf5_journal.journal_path(str(path))

    def interrupted() -> None:
        with monkeypatch.context() as patch:
            fail_after(patch, lambda descriptor, changes: None)
            writer = Hdf5Writer(path, append=True)
            grow(writer, {"a": (writer.info("a").shape[0] + 1, 3)})
            with pytest.raises(PowerFailure):
                writer.publish(durable=True)

    interrupted()
    journal.write_text(journal.read_text()[:-40])  # power failed while it was written: nothing had begun
    Hdf5Writer(path, append=True).abandon()
    assert not journal.exists()
    check_content(path, {"a": (3, 3)}, {"a": (3, 3)})

    interrupted()
    with h5py.File(path, "r+") as file:
        file["a"].resize((5, 3))
        file["a"][...] = numbered((5, 3))
    with pytest.raises(Error, match="changed by others"):
        Hdf5Writer(path, append=True)
    journal.unlink()
    check_content(path, {"a": (5, 3)}, {"a": (5, 3)})

    interrupted()
    make(path, {"a": (2, 3)}, {"a": (1, 3)})  # a new file of that name
    assert not journal.exists()
    assert path.exists()


def test_a_durable_change_is_on_storage_in_the_right_order(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Data and new structures, then the journal, then the changes, then they again, and the journal goes last."""
    make(path, {"a": (3, 3)}, {"a": (1, 3)})
    seen: list[str] = []
    journal = hdf5_journal.journal_path(str(path))
    real = {"write": hdf5_append.write_journal, "apply": hdf5_append.apply, "drop": hdf5_append.drop_journal}
    monkeypatch.setattr(hdf5_append, "write_journal", lambda *a: (seen.append("journal"), real["write"](*a)))
    monkeypatch.setattr(hdf5_append, "apply", lambda *a: (seen.append("apply"), real["apply"](*a)))
    monkeypatch.setattr(hdf5_append, "drop_journal", lambda *a: (seen.append("drop"), real["drop"](*a)))
    sync = os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda fd: (seen.append("sync"), sync(fd)))
    writer = Hdf5Writer(path, append=True)
    grow(writer, {"a": (4, 3)})
    writer.publish(durable=True)
    assert seen == ["sync", "journal", "apply", "sync", "drop"]
    assert not journal.exists()
