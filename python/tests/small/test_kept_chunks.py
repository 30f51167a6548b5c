"""Decoded chunks that are kept: nothing of a file that changed just now, or that was closed meanwhile; and whatever a
look for a chunk's place does in the middle of a read, which holds no lock of Python but for that."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock
from penstock import _core
from penstock.formats.reading import cores, kept, small

h5py = pytest.importorskip("h5py")

WHOLE = np.arange(400 * 64, dtype="f8").reshape(400, 64)

PROGRAM = """
import sys, threading, time
import penstock
from penstock.formats.reading import small

def decoding(*given):
    how = usual(*given)

    def where(number):
        asked.set()
        time.sleep(0.3)
        return how.coded["where"](number)

    return how._replace(coded={**how.coded, "where": where})

class Last:
    def __del__(self, sleep=time.sleep):
        sleep(1)  # the interpreter is ending, and lets other threads try to go on

usual, small._decoding = small._decoding, decoding
asked, sys.keeps = threading.Event(), Last()
file = penstock.open(sys.argv[1], device="host")
threading.Thread(target=lambda: file["x"][3], daemon=True).start()
asked.wait()
"""


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files count as old at once: the time of the last change of an inode cannot be set."""
    monkeypatch.setattr(kept, "_SETTLED_NS", 0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "x.h5"
    with h5py.File(made, "w") as file:
        file.create_dataset("x", data=WHOLE, chunks=(50, 64), compression="gzip")
    time.sleep(0.05)  # a tick of the clock that files are stamped by
    return made


@pytest.fixture
def asks(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Has each look for a chunk's place end with a call."""

    def set_call(call: Callable[[], object], **others: Any) -> None:
        usual: Any = small._decoding

        def decoding(*given: Any) -> Any:
            how = usual(*given)
            where = how.coded["where"]
            return how._replace(coded={**how.coded, **others, "where": lambda number: (where(number), call())[0]})

        monkeypatch.setattr(small, "_decoding", decoding)

    return set_call


def count_kept(file: Any) -> int:
    return len(file._file._mover.kept.chunks)


def test_a_read_that_began_before_the_file_was_settled_keeps_nothing(path: Path, asks: Callable[..., None]) -> None:
    settles_ns = time.time_ns() + 2_000_000_000
    calls = iter([lambda: None, lambda: time.sleep(max(0, settles_ns - time.time_ns()) / 1e9 + 0.01)])
    asks(lambda: next(calls)(), settles_ns=settles_ns)
    with penstock.open(path, device="host") as file:
        for row in (390, 391, 392, 3):  # the first ones open the file
            assert np.array_equal(np.asarray(file["x"][row]), WHOLE[row])
            assert count_kept(file) == 0, "the next change might have the same time"
        assert np.array_equal(np.asarray(file["x"][3]), WHOLE[3])
        assert count_kept(file) == 1


def test_a_file_that_changes_between_reading_and_decoding_leaves_no_chunk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zarr = pytest.importorskip("zarr")
    array = zarr.create_array(tmp_path / "x", shape=(40, 16), dtype="i4", chunks=(20, 16))
    array[...] = 1
    time.sleep(0.05)
    usual = cores.decode

    def decode(*given: Any) -> bool:
        array[...] = 2
        time.sleep(0.05)
        return usual(*given)

    with penstock.open(tmp_path / "x", device="host", format="zarr") as file:
        with monkeypatch.context() as patch:
            patch.setattr(cores, "decode", decode)
            assert np.asarray(file[""][3]).tolist() == [1] * 16, "as it was when it was read"
        assert np.asarray(file[""][3]).tolist() == [2] * 16


def test_a_file_that_is_closed_during_a_read_holds_no_chunk(path: Path, asks: Callable[..., None]) -> None:
    with penstock.open(path, device="host") as file:
        calls = iter([lambda: None, file.close])
        asks(lambda: next(calls)())
        for row in (390, 391, 392):  # which open it
            assert np.array_equal(np.asarray(file["x"][row]), WHOLE[row])
        with pytest.raises(ValueError, match="is closed"):
            np.asarray(file["x"][3])
        assert count_kept(file) == 0


def test_an_interrupt_during_a_read_leaves_nothing_half_done(path: Path, asks: Callable[..., None]) -> None:
    calls = iter([True, True, False])

    def interrupt() -> None:
        if next(calls, False):
            raise KeyboardInterrupt

    asks(interrupt)
    out = np.zeros_like(WHOLE)
    with penstock.open(path, device="host") as file:
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                file["x"].read(out=out)
        assert count_kept(file) == 0
        assert np.array_equal(np.asarray(file["x"][40:60]), WHOLE[40:60])
        told = file.evidence()["formats"]
    assert told["requested_bytes"] == WHOLE[40:60].nbytes
    assert sum(told["decoders"].values()) == WHOLE[40:60].nbytes


def test_a_look_for_a_place_may_read_the_same_rows(path: Path, asks: Callable[..., None]) -> None:
    found: list[Any] = []
    rows = iter([7, 8])

    def read() -> None:
        row = next(rows, None)
        if row is not None:
            found.append(np.asarray(file["x"][[row, 390]]))

    with penstock.open(path, device="host") as file:
        asks(read)
        assert np.array_equal(np.asarray(file["x"][5:395]), WHOLE[5:395])
    assert np.array_equal(np.stack(found), np.stack([WHOLE[[8, 390]], WHOLE[[7, 390]]]))


def test_what_is_no_key_and_no_chunk_is_refused() -> None:
    chunks = _core.KeptChunks(100, 2)
    chunk = np.zeros(4, "u1")
    for key in [(), (1,), (1, 2, 3), (1, 2, 3, 4, 5), (-1, 2, 3, 4), (1, 2, 3, "4")]:
        with pytest.raises(TypeError):
            chunks.keep(key, chunk)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            chunks.find(key)  # type: ignore[arg-type]
    with pytest.raises(BufferError):
        memoryview(_core.DecodedChunk.__new__(_core.DecodedChunk))


def test_the_process_ends_well_while_a_chunk_is_looked_for(path: Path) -> None:
    program = [sys.executable, "-c", PROGRAM, str(path)]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=100, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
