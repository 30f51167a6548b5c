"""The choice of what decodes under "auto": by a guess, by what reads took, and never a side that is much slower."""

from __future__ import annotations

import random

import numpy as np
import pytest

from penstock.formats.reading.decoders import rates
from penstock.formats.reading.decoders.rates import ChunkWork, DecodeRates, Kind, Side, Spent, kind_of

MIB = 1 << 20
DEFLATE = Kind("deflate", MIB, MIB // 2)
ZSTD = Kind("zstd", MIB // 16, MIB // 32)


def guessed(known: DecodeRates, work: ChunkWork) -> dict[Side, float]:
    return {"cores": known._guess("cores", work), "device": known._guess("device", work)}


def read(known: DecodeRates, work: ChunkWork, took: dict[Side, float]) -> tuple[Side, float]:
    """One call of a machine where each side takes so many seconds."""
    side = known.choose(work, True).side
    known.took(side, work, took[side])
    return side, took[side]


def test_first_a_few_chunks_are_the_cores_and_many_the_devices() -> None:
    known = DecodeRates(cores=4)
    assert known.choose(ChunkWork(DEFLATE, 16), True).side == "cores"
    assert known.choose(ChunkWork(DEFLATE, 4096), True).side == "device"
    assert known.choose(ChunkWork(ZSTD, 16), True).side == "cores"
    assert known.choose(ChunkWork(ZSTD, 1 << 16), True).side == "device"
    assert known.choose(ChunkWork(DEFLATE, 16), True).why == "the host takes about 0.2 of the GPU's time (estimated)"


def test_a_library_that_decodes_one_by_one_leaves_more_to_the_device() -> None:
    known = DecodeRates(cores=16)
    assert known.choose(ChunkWork(DEFLATE, 64), True).side == "cores"
    assert known.choose(ChunkWork(DEFLATE, 64), False).side == "device"
    assert known.choose(ChunkWork(DEFLATE, 4), False).side == "cores"
    tried = [one.tried for found in known._known.values() for one in found.values()]
    assert sorted(tried) == [0, 1], "nothing is learned of a library"


@pytest.mark.parametrize("faster", ["cores", "device"])
def test_sides_that_may_be_alike_are_tried_and_then_the_faster_one_is_taken(faster: Side) -> None:
    work = ChunkWork(DEFLATE, 256)
    known = DecodeRates(cores=8)
    guess = guessed(known, work)
    mean = (guess["cores"] * guess["device"]) ** 0.5
    assert max(guess.values()) < rates._MAYBE * min(guess.values()), "a case where the guess leaves it open"
    took: dict[Side, float] = {"cores": mean * 1.2, "device": mean * 1.2}
    took[faster] = mean
    sides = [read(known, work, took)[0] for _ in range(60)]
    assert set(sides[:8]) == {"cores", "device"}
    assert set(sides[8:]) == {faster}
    assert "(measured)" in known.choose(work, True).why


def test_the_slower_side_is_tried_again_sometimes_and_taken_when_it_became_the_faster() -> None:
    work, known = ChunkWork(DEFLATE, 256), DecodeRates(cores=8)
    took: dict[Side, float] = {"cores": 0.05, "device": 0.06}
    first = [read(known, work, took)[0] for _ in range(200)]
    assert 2 <= first[20:].count("device") <= 4
    took["device"] = 0.03
    assert [read(known, work, took)[0] for _ in range(200)][-1] == "device"


def test_a_side_that_is_much_slower_is_not_tried() -> None:
    work, known = ChunkWork(DEFLATE, 16), DecodeRates(cores=16)
    assert {read(known, work, {"cores": 0.006, "device": 0.045})[0] for _ in range(300)} == {"cores"}


def test_a_read_that_was_held_up_changes_little() -> None:
    known = DecodeRates(cores=8)
    work = ChunkWork(DEFLATE, 256)
    known.took("cores", work, 0.05)
    before = known._correction("cores", work)
    known.took("cores", work, 5.0)
    assert known._correction("cores", work) == pytest.approx(before * rates._RISE)
    known.took("cores", work, 0.01)
    assert known._correction("cores", work) == pytest.approx(before / 5)


def test_the_first_call_of_a_device_loads_its_code_and_is_not_believed() -> None:
    known, work = DecodeRates(cores=8), ChunkWork(DEFLATE, 256)
    known.took("device", work, 3.0)
    assert known._correction("device", work) == 1
    known.took("device", work, 0.05)
    assert known._correction("device", work) == pytest.approx(0.05 / known._guess("device", work))
    known.took("device", ChunkWork(ZSTD, 256), 3.0)
    assert known._correction("device", ChunkWork(ZSTD, 256)) == 1, "of another codec, too"


def test_what_is_known_of_as_many_chunks_goes_before_what_is_known_of_others() -> None:
    known = DecodeRates(cores=8)
    for chunks, times in ((64, 2), (4096, 3)):
        work = ChunkWork(DEFLATE, chunks)
        known.took("cores", work, times * known._guess("cores", work))
    for chunks, times in ((64, 2), (100, 2), (128, 2), (1024, 3), (1 << 15, 3)):
        assert known._correction("cores", ChunkWork(DEFLATE, chunks)) == pytest.approx(times), chunks
    assert known._correction("cores", ChunkWork(ZSTD, 64)) == 1


@pytest.mark.parametrize("seed", range(40))
def test_many_reads_take_hardly_longer_than_by_the_better_fixed_choice(seed: int) -> None:
    chance = random.Random(seed)
    known = DecodeRates(cores=chance.choice([2, 8, 16, 64]))
    works = [ChunkWork(kind, 1 << chance.randrange(3, 14)) for kind in (DEFLATE, ZSTD) for _ in range(3)]
    errors: dict[Side, float] = {"cores": chance.uniform(0.75, 1.35), "device": chance.uniform(0.75, 1.35)}
    spent = best = 0.0
    for number in range(2400):
        work = works[number % len(works)]
        guess = guessed(known, work)
        took = {side: guess[side] * errors[side] * chance.uniform(1, 1.05) for side in errors}
        spent += read(known, work, took)[1]
        best += min(took.values())
    assert spent < 1.05 * best


def test_kinds_are_few() -> None:
    def sizes(values: list[int]) -> np.ndarray:
        return np.array(values, np.int64)

    assert kind_of("zstd", 100, sizes([60, 64, 70])) == kind_of("zstd", 100, sizes([50, 80])) == Kind("zstd", 100, 64)
    assert kind_of("zstd", 100, sizes([0])).stored_bytes == 1
    known = DecodeRates(cores=2)
    for number in range(3 * rates._MOST):
        known.choose(ChunkWork(Kind("zstd", number, 1), 20), True)
    assert len(known._known) <= rates._MOST + 2


def told(side: Side, moved_s: float, decoded_s: float, monkeypatch: pytest.MonkeyPatch) -> DecodeRates:
    """What a context knows after two reads that took so long."""
    known, now = DecodeRates(cores=2), [0.0]
    monkeypatch.setattr(rates.time, "perf_counter", lambda: now[0])
    for _ in range(2):
        spent = Spent()
        spent.moved(moved_s)
        with spent.timed(side, 10):
            now[0] += decoded_s
        spent.moved(99)  # of the next batch, while the first is decoded
        spent.teach(known, DEFLATE)
    return known


def test_a_read_that_waited_for_storage_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    work = ChunkWork(DEFLATE, 10)
    known = told("device", 0.01, 0.04, monkeypatch)
    assert known._correction("device", work) == pytest.approx(0.05 / known._guess("device", work))
    assert not told("device", 0.01, 0.02, monkeypatch)._known
    assert told("cores", 0, 0.02, monkeypatch)._known


def test_a_read_by_both_sides_tells_nothing() -> None:
    known, spent = DecodeRates(cores=2), Spent()
    for side in ("cores", "device"):
        with spent.timed(side, 10):
            pass
    spent.teach(known, DEFLATE)
    spent.teach(known, None)
    assert not known._known
