"""penstock h5bench: h5bench's configurations run, their files are stock HDF5, their rates are h5bench's, and wrong
bytes, keys and values are told by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from command import Ran, assert_one_line_error
from places import ROOT

from penstock import Context, Error
from penstock_bench.h5bench import config
from penstock_bench.h5bench.benchmark import Options, Result
from penstock_bench.h5bench.data import FIELDS, SEED, place_of
from penstock_bench.h5bench.parts import parts_of
from penstock_bench.h5bench.run import perform

EXAMPLES = ROOT / "bench" / "h5bench"
Run = Callable[..., Ran]
CONTIGUOUS = {"MEM_PATTERN": "CONTIG", "FILE_PATTERN": "CONTIG", "TIMESTEPS": "2", "NUM_DIMS": "1", "DIM_1": "4096"}


def document(*benchmarks: tuple[str, dict[str, Any]], **changes: Any) -> dict[str, Any]:
    entries = [{"benchmark": name, "file": "test.h5", "configuration": values} for name, values in benchmarks]
    return {
        "mpi": {"command": "mpirun", "ranks": "1"},
        "vol": {},
        "file-system": {},
        "directory": "storage",
        "benchmarks": entries,
    } | changes


def save(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def runs_of(place: Path, *benchmarks: tuple[str, dict[str, Any]]) -> list[config.H5benchRun]:
    content = document(*benchmarks, directory=str(place / "storage"))
    return config.load(save(place / "config.json", content))


def do(context: Context, place: Path, *benchmarks: tuple[str, dict[str, Any]]) -> list[Result]:
    return [perform(context, run, Options()) for run in runs_of(place, *benchmarks)]


def expected(context: Context, field: int, count: int, step: int) -> np.ndarray:
    """Values by the rule, as raw words."""
    memory = context.allocate(4 * count)
    context.stamp(memory, place_of(field, 0, step), SEED)
    return np.asarray(memory).view(np.uint32).copy()


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.json")), ids=lambda path: path.stem)
def test_the_examples_run_and_are_verified(context: Context, tmp_path: Path, example: Path) -> None:
    content = json.loads(example.read_text()) | {"directory": str(tmp_path / "storage")}
    runs = config.load(save(tmp_path / "config.json", content))
    assert {run.benchmark for run in runs} == {"write", "read"}
    for found in [perform(context, run, Options()) for run in runs]:
        assert found["verified"] == "yes"
        assert found["total size"] == 32 * found["particles"] * found["time steps"]
        assert sum(share["bytes"] for share in found.evidence["paths"]) >= found["total size"]


@pytest.mark.parametrize(
    ("memory", "layout"),
    [("CONTIG", "CONTIG"), ("INTERLEAVED", "CONTIG"), ("CONTIG", "INTERLEAVED"), ("INTERLEAVED", "INTERLEAVED")],
)
def test_h5py_reads_the_fields_back(context: Context, tmp_path: Path, memory: str, layout: str) -> None:
    values = CONTIGUOUS | {"MEM_PATTERN": memory, "FILE_PATTERN": layout, "NUM_DIMS": "2", "DIM_1": "50", "DIM_2": "30"}
    do(context, tmp_path, ("write", values))
    with h5py.File(tmp_path / "storage" / "test.h5") as file:
        assert sorted(file) == ["Timestep_0", "Timestep_1"]
        for step in range(2):
            group = file[f"Timestep_{step}"]
            for number, (name, kind) in enumerate(FIELDS.items()):
                stored = group["particles"][name] if layout == "INTERLEAVED" else group[name][...]
                assert (stored.shape, stored.dtype) == ((50, 30), np.dtype(kind))
                words = np.ascontiguousarray(stored).view(np.uint32).ravel()
                assert (words == expected(context, number, 1500, step)).all()


def test_a_strided_write_leaves_the_rest_alone(context: Context, tmp_path: Path) -> None:
    values = CONTIGUOUS | {"FILE_PATTERN": "STRIDED", "STRIDE_SIZE": "8", "BLOCK_SIZE": "3", "BLOCK_CNT": "300"}
    wrote, read = do(context, tmp_path, ("write", values), ("read", values | {"READ_OPTION": "STRIDED"}))
    assert wrote["total size"] == read["total size"] == 2 * 900 * 32
    chosen = [8 * turn + item for turn in range(300) for item in range(3)]
    with h5py.File(tmp_path / "storage" / "test.h5") as file:
        stored = file["Timestep_1/px"][...].view(np.uint32)
        rest = np.delete(stored, chosen)
        assert (rest == 0).all()
        number = list(FIELDS).index("px")
        assert sorted(stored[chosen]) == sorted(expected(context, number, 900, 1))


def test_what_was_not_written_is_not_called_verified(context: Context, tmp_path: Path) -> None:
    strided = CONTIGUOUS | {"FILE_PATTERN": "STRIDED", "STRIDE_SIZE": "8", "BLOCK_SIZE": "3", "BLOCK_CNT": "300"}
    results = do(context, tmp_path, ("write", strided), ("read", CONTIGUOUS))
    assert results[1]["verified"].startswith("no: only STRIDED 8/3 300")
    with h5py.File(tmp_path / "storage" / "test.h5", "w") as file:
        for step, name in ((step, name) for step in range(2) for name in FIELDS):
            file[f"Timestep_{step}/{name}"] = np.zeros(4096, FIELDS[name])
    (foreign,) = do(context, tmp_path, ("read", CONTIGUOUS))
    assert foreign["verified"] == "no: the file was not written by penstock h5bench"


@pytest.mark.parametrize(
    "extra",
    [
        {},
        {"READ_OPTION": "PARTIAL", "TO_READ_NUM_PARTICLES": "3000"},
        {
            "FILE_PATTERN": "STRIDED",
            "READ_OPTION": "STRIDED",
            "STRIDE_SIZE": "5",
            "BLOCK_SIZE": "2",
            "BLOCK_CNT": "500",
        },
    ],
)
@pytest.mark.parametrize("mode", ["SYNC", "ASYNC"])
def test_one_wrong_byte_fails_the_run(context: Context, tmp_path: Path, extra: dict[str, str], mode: str) -> None:
    """Particle 2495 is in every one of these selections."""
    wanted = CONTIGUOUS | {"MODE": mode} | extra
    do(context, tmp_path, ("write", CONTIGUOUS))
    do(context, tmp_path, ("read", wanted))
    with h5py.File(tmp_path / "storage" / "test.h5") as file:
        place = file["Timestep_1/id_1"].id.get_offset() + 4 * 2495
    with (tmp_path / "storage" / "test.h5").open("r+b") as stream:
        stream.seek(place)
        was = stream.read(1)
        stream.seek(place)
        stream.write(bytes([was[0] ^ 1]))
    with pytest.raises(Error, match="Timestep_1/id_1 are wrong"):
        do(context, tmp_path, ("read", wanted))


def test_the_command_fails_on_a_wrong_byte(penstock: Run, context: Context, tmp_path: Path) -> None:
    do(context, tmp_path, ("write", CONTIGUOUS))
    read = save(tmp_path / "r.json", document(("read", CONTIGUOUS)))
    with h5py.File(tmp_path / "storage" / "test.h5", "r+") as file:
        file["Timestep_0/x"][7] = np.float32(0.5)
    ran = penstock("h5bench", read, cwd=tmp_path)
    assert_one_line_error(ran, "verify storage/test.h5", "Timestep_0/x are wrong")
    assert ran.code == 1
    assert penstock("h5bench", read, "--no-verify", cwd=tmp_path).code == 0


def test_rates_are_made_of_times_as_h5bench_makes_them(context: Context, tmp_path: Path) -> None:
    busy = CONTIGUOUS | {"TIMESTEPS": "3", "EMULATED_COMPUTE_TIME_PER_TIMESTEP": "40 ms"}
    for result in do(context, tmp_path, ("write", busy), ("read", busy)):
        assert result["total compute time"] == pytest.approx(0.08)  # none after the last step
        assert result["observed time"] > 0.08
        assert result["raw rate"] == pytest.approx(result["total size"] / result["raw time"] / 1e9)
        moving = result["observed time"] - result["total compute time"]
        assert result["observed rate"] == pytest.approx(result["total size"] / moving / 1e9)
        inside = sum(result[name] for name in ("raw time", "metadata time", "close time"))
        assert inside <= moving


def test_in_the_background_steps_move_while_others_compute(context: Context, tmp_path: Path) -> None:
    """A slow emulated link: in the foreground each step waits for it. In the background computing hides what the
    transfers of all but the last step take, in one of a few runs at least: a busy machine only adds to a run's time."""
    slow = Context("host", host_bandwidth_bytes_per_s=2e6)
    busy = CONTIGUOUS | {"TIMESTEPS": "3", "EMULATED_COMPUTE_TIME_PER_TIMESTEP": "200 ms"}
    (run,) = runs_of(tmp_path, ("write", busy))

    def waits(mode: str, most: int) -> Iterator[float]:
        """Seconds that each of up to `most` runs waited."""
        for _ in range(most):
            done = perform(slow, replace(run, background=mode == "ASYNC"), Options(verify=False))
            assert done["mode"] == mode
            yield done["raw time"]

    foreground = min(waits("SYNC", 3))
    assert any(seconds < 0.8 * foreground for seconds in waits("ASYNC", 10))


@pytest.mark.parametrize("option", ["FULL", "PARTIAL", "STRIDED", "LDC", "RDC", "PRL", "CS"])
def test_parts_cover_what_the_option_says_once(option: str) -> None:
    dims = (24, 20) if option in ("LDC", "RDC", "PRL", "CS") else (480,)
    blocks = {"STRIDED": ((7, 3),), "CS": ((8, 3), (5, 2))}.get(option, ((4, 4), (5, 5)) if len(dims) == 2 else ())
    run = config.H5benchRun("read", Path("f"), "CONTIG", "CONTIG", dims, 1, option, blocks, 40, 100)
    marks, order = np.zeros(dims, int), []
    for part in parts_of(run):
        marks[part.index] += 1
        assert marks[part.index].shape == part.shape
        order += range(part.first, part.first + part.count)
    assert order == list(range(marks.sum()))
    assert (marks == _wanted(option, dims)).all()


def _wanted(option: str, dims: tuple[int, ...]) -> np.ndarray:
    """The same by arithmetic on places."""
    places = np.indices(dims)
    if option == "FULL":
        return np.ones(dims, int)
    if option == "PARTIAL":
        return (places[0] < 100).astype(int)
    if option == "STRIDED":
        return ((places[0] % 7 < 3) & (places[0] < 280)).astype(int)
    if option == "CS":
        return ((places[0] % 8 < 3) & (places[1] % 5 < 2)).astype(int)
    top, bottom, left, right = places[0] < 4, places[0] >= 20, places[1] < 5, places[1] >= 15
    return {"LDC": top & left | bottom & right, "RDC": top & right | bottom & left, "PRL": top | bottom | left | right}[
        option
    ].astype(int)


def test_numbers_and_times_are_read_as_h5bench_writes_them(tmp_path: Path) -> None:
    for text, count in (("2048", 2048), ("2 K", 2048), ("2 Ks", 2048), ("1 M", 1 << 20), ("3M", 3 << 20)):
        (run,) = runs_of(tmp_path, ("write", CONTIGUOUS | {"DIM_1": text}))
        assert run.dims == (count,)
    for text, seconds in (("1 s", 1), ("100 ms", 0.1), ("5000us", 0.005), ("2 min", 120), ("3 sec", 3)):
        (run,) = runs_of(tmp_path, ("write", CONTIGUOUS | {"EMULATED_COMPUTE_TIME_PER_TIMESTEP": text}))
        assert run.compute_s == pytest.approx(seconds)
    alone = {key: value for key, value in CONTIGUOUS.items() if key != "DIM_1"} | {"NUM_PARTICLES": "16 K"}
    assert runs_of(tmp_path, ("write", alone))[0].dims == (16384,)
    (both,) = runs_of(tmp_path, ("write", CONTIGUOUS | {"NUM_PARTICLES": "16 M"}))
    assert both.dims == (4096,)
    assert any("NUM_PARTICLES 16777216 is not used" in note for note in both.notes)


REFUSED = {
    "FOO": "1",
    "MEM_PATTERN": "STRIDED",
    "FILE_PATTERN": "SIDEWAYS",
    "TIMESTEPS": "0",
    "NUM_DIMS": "4",
    "DIM_1": "-3",
    "DIM_2": "7",
    "MODE": "LOG",
    "COMPRESS": "YES",
    "SUBFILING": "YES",
    "FILE_PER_PROC": "YES",
    "ALIGN": "YES",
    "STDEV_DIM_1": "3",
    "IO_MEM_LIMIT": "1 G",
    "EMULATED_COMPUTE_TIME_PER_TIMESTEP": "5",
    "DELAYED_CLOSE_TIMESTEPS": [2],
    "COLLECTIVE_DATA": "MAYBE",
    "NUM_PARTICLES": "many",
}


@pytest.mark.parametrize("key", REFUSED)
def test_keys_and_values_that_cannot_be_are_refused_by_name(tmp_path: Path, key: str) -> None:
    with pytest.raises(Error) as caught:
        runs_of(tmp_path, ("write", CONTIGUOUS | {key: REFUSED[key]}))
    assert key in caught.value.cause and "benchmarks[0].configuration" in caught.value.cause
    assert caught.value.advice
    assert not (tmp_path / "storage").exists()


def test_documents_that_are_none_are_refused(penstock: Run, tmp_path: Path) -> None:
    for content, words in (
        ("{", "not JSON"),
        ("\ufeff[]", "not JSON"),
        ([], "an object is needed"),
        (document(("write", CONTIGUOUS), extra=1), "no key 'extra'"),
        (document(("write", CONTIGUOUS), mpi={"ranks": "4"}), "mpi.ranks: 4 ranks"),
        (document(("write", CONTIGUOUS), mpi={"ranks": "1", "configuration": "-np 2"}), "mpi.configuration: 2 ranks"),
        (document(("write", CONTIGUOUS), vol={"connector": "daos"}), "vol.connector: 'daos'"),
        (document(("write", CONTIGUOUS), benchmarks=[]), "benchmarks: a list"),
        (document(("metadata", {})), "benchmarks[0].benchmark: 'metadata'"),
    ):
        with pytest.raises(Error) as caught:
            config.load(save(tmp_path / "c.json", content))
        assert caught.value.file.endswith("c.json") and words in caught.value.cause
    with pytest.raises(Error, match="No such file"):
        config.load(tmp_path / "absent.json")
    garbage = save(tmp_path / "c.json", "{")
    assert_one_line_error(penstock("h5bench", garbage), "h5bench", "c.json", "not JSON")
    missing = save(tmp_path / "r.json", document(("read", CONTIGUOUS)))
    assert_one_line_error(penstock("h5bench", missing, cwd=tmp_path), "storage/test.h5", "No such file")


def test_a_file_of_other_dimensions_is_refused_by_name(context: Context, tmp_path: Path) -> None:
    do(context, tmp_path, ("write", CONTIGUOUS))
    for change, words in (
        ({"DIM_1": "4000"}, r"Timestep_0/x has the shape \(4096,\)"),
        ({"TIMESTEPS": "3"}, "Timestep_2/x"),
        ({"FILE_PATTERN": "INTERLEAVED"}, "Timestep_0/particles"),
    ):
        with pytest.raises(Error, match=words):
            do(context, tmp_path, ("read", CONTIGUOUS | change))


def test_more_than_fits_is_refused_before_anything_is_made(context: Context, tmp_path: Path) -> None:
    with pytest.raises(Error, match="bytes are free"):
        do(context, tmp_path, ("write", CONTIGUOUS | {"DIM_1": "1 G", "TIMESTEPS": "1 M"}))
    small = Context("host", host_memory_bytes=1 << 20)
    with pytest.raises(Error, match="device memory"):
        do(small, tmp_path, ("write", CONTIGUOUS | {"DIM_1": "1 M"}))
    assert not list((tmp_path / "storage").iterdir())


def test_results_are_written_as_h5bench_writes_them(penstock: Run, tmp_path: Path) -> None:
    named = CONTIGUOUS | {"CSV_FILE": "named.csv"}
    content = save(tmp_path / "c.json", document(("write", named), ("read", named)))
    ran = penstock("h5bench", content, "--out", "all.csv", cwd=tmp_path)
    assert ran.code == 0, ran.err
    text = (tmp_path / "all.csv").read_text()
    assert text == (tmp_path / "storage" / "named.csv").read_text()
    lines = [line.split(", ") for line in text.splitlines()]
    assert lines[0] == ["metric", "value", "unit"] and {len(line) for line in lines} == {3}
    assert [value for metric, value, _ in lines if metric == "operation"] == ["write", "read"]
    assert [value for metric, value, _ in lines if metric == "total size"] == [str(2 * 4096 * 32)] * 2
    assert {"raw rate", "observed rate", "metadata time", "create time", "flush time", "close time"} <= {
        metric for metric, _, _ in lines
    }
    assert penstock("h5bench", content, "--out", "all.jsonl", cwd=tmp_path).code == 0
    rows = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    assert [row["operation"] for row in rows] == ["write", "read"]
    assert all(row["machine.id"] for row in rows)
    assert_one_line_error(penstock("h5bench", content, "--out", "all.xml", cwd=tmp_path), "all.xml", ".csv")


def test_a_cold_read_is_proved_cold_or_refused(penstock: Run, tmp_path: Path) -> None:
    content = save(tmp_path / "c.json", document(("write", CONTIGUOUS), ("read", CONTIGUOUS)))
    ran = penstock("h5bench", content, "--cold", "--durable", "--json", cwd=tmp_path)
    if ran.code != 0:
        assert_one_line_error(ran, "cannot be made cold", "--cold")
        return
    found = {row["metric"]: row["value"] for row in ran.json["runs"][1]["metrics"]}
    assert found["cache before"] <= 0.01
