"""What api/test_many_files.py runs in a process that may have few descriptors: each function is one program.

python programs/many_files.py LIMIT FUNCTION FOLDER
"""

from __future__ import annotations

import os
import resource
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.testing  # now: later there may be no descriptor to load it with

import penstock as ps
from penstock._files import open_files

EDGE = 8
PROGRAMS: dict[str, Callable[[Path], None]] = {}


def program(function: Callable[[Path], None]) -> Callable[[Path], None]:
    PROGRAMS[function.__name__] = function
    return function


def free_descriptors() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0] - sum(1 for _ in Path("/proc/self/fd").iterdir()) + 1


def field(files: int) -> np.ndarray:
    """Which has as many chunks of EDGE x EDGE."""
    return np.random.default_rng(files).normal(size=(files * EDGE, EDGE)).astype("float32")


def make(path: Path, files: int) -> np.ndarray:
    """A store with one dataset, "x", that has a chunk file for each EDGE rows."""
    values = field(files)
    with ps.create(path, device="host") as file:
        file.create_dataset("x", values.shape, "float32", chunk_shape=(EDGE, EDGE), resizable=(None, EDGE))
        file["x"][...] = values
    return values


def need_equal(found: object, wanted: np.ndarray) -> None:
    np.testing.assert_array_equal(np.asarray(found), wanted)


@program
def write_and_read(folder: Path) -> None:
    for files in (65, 300):
        values = make(folder / f"{files}.zarr", files)
        assert len(list((folder / f"{files}.zarr/x/c").iterdir())) == files
        with ps.open(folder / f"{files}.zarr", device="host") as file:
            need_equal(file["x"][...], values)
            need_equal(file["x"][3 : files * EDGE - 3 : 5], values[3 : files * EDGE - 3 : 5])
            out = np.empty_like(values)
            file["x"].read(out=out)
            need_equal(out, values)


@program
def change_and_append(folder: Path) -> None:
    values = make(folder / "x.zarr", 300)
    with ps.open(folder / "x.zarr", device="host", write=True) as file:
        file["x"][...] = -values
        file["x"].append(values)
        need_equal(file["x"][...], np.concatenate([-values, values]))
    need_equal(ps.load(folder / "x.zarr", "host")["x"], np.concatenate([-values, values]))


@program
def past_the_cache_with_any_number_left(folder: Path) -> None:
    """Others take descriptors after Penstock has counted them: a file for which one is left, not two, waits too."""
    values = make(folder / "x.zarr", 64)
    make(folder / "few.zarr", 1)
    with ps.Context("host") as context, context.open(folder / "few.zarr" / "x" / "c" / "0" / "0") as file:
        if not file.facts["direct"]:
            return  # no O_DIRECT here
    open_files._COUNTED_FOR_S = 3600.0
    for left in (*range(3, 12), 20, 21, 22):
        with ps.open(folder / "few.zarr", device="host") as few, ps.open(folder / "x.zarr", device="host") as file:
            few["x"].read(path="direct")
            open_files._room.recount()
            open_files._room.files()
            held = [os.open("/dev/null", os.O_RDONLY) for _ in range(free_descriptors() - left)]
            try:
                need_equal(file["x"].read(path="direct"), values)
                assert {share["path"] for share in file.evidence()["paths"]} == {"direct"}
            finally:
                for one in held:
                    os.close(one)


@program
def threads_and_stores(folder: Path) -> None:
    """All of them share the descriptors; each thread reads and writes stores of its own, and one that all read."""
    shared = make(folder / "shared.zarr", 100)
    with ps.open(folder / "shared.zarr", device="host") as common:

        def work(number: int) -> None:
            values = make(folder / f"{number}.zarr", 120)
            for _ in range(3):
                need_equal(common["x"][...], shared)
                need_equal(ps.load(folder / f"{number}.zarr", "host")["x"], values)

        with ThreadPoolExecutor(6) as pool:
            for _ in pool.map(work, range(6)):
                pass


@program
def reads_that_nobody_waits_for(folder: Path) -> None:
    values = make(folder / "x.zarr", 200)
    with ps.open(folder / "x.zarr", device="host") as file:
        pending = [file["x"].start_read(slice(EDGE * at, EDGE * (at + 1))) for at in range(200)]
        whole = [file["x"].start_read() for _ in range(3)]
        for at in reversed(range(200)):
            need_equal(pending[at].result(), values[EDGE * at : EDGE * (at + 1)])
        for one in whole:
            need_equal(one.result(), values)


@program
def many_datasets_open(folder: Path) -> None:
    for number in range(150):
        np.save(folder / f"{number}.npy", np.full(100, number))
    files = [ps.open(folder / f"{number}.npy", device="host") for number in range(150)]
    for _ in range(2):
        for number, file in enumerate(files):
            need_equal(file["data"][...], np.full(100, number))
    with ps.Context("host") as context, context.open(folder / "3.npy") as plain:
        assert plain.size_bytes > 800


@program
def the_rest_of_the_program(folder: Path) -> None:
    """It opens files too, all the time."""
    values = make(folder / "x.zarr", 300)
    stop, failed = threading.Event(), list[OSError]()

    def others() -> None:
        while not stop.is_set():
            try:
                for descriptor in [os.open(folder, os.O_RDONLY) for _ in range(4)]:
                    os.close(descriptor)
            except OSError as error:
                failed.append(error)
                return

    thread = threading.Thread(target=others)
    thread.start()
    try:
        for _ in range(5):
            need_equal(ps.load(folder / "x.zarr", "host")["x"], values)
    finally:
        stop.set()
        thread.join()
    assert not failed, failed


@program
def no_descriptor_left(folder: Path) -> None:
    """An Error that says so; the next read, when there are some, is right."""
    values = make(folder / "x.zarr", 100)
    with ps.open(folder / "x.zarr", device="host") as file:
        assert file["x"].shape == values.shape
        held = []
        try:
            while True:
                held.append(os.open(folder, os.O_RDONLY))
        except OSError:
            pass
        try:
            file["x"].read()
            raise AssertionError("no descriptor was left")
        except ps.Error as error:
            assert "ulimit -n" in error.advice, error
            assert str(folder) in error.file, error
        for descriptor in held:
            os.close(descriptor)
        need_equal(file["x"][...], values)
        while True:  # files that are kept make way for each other
            try:
                os.open(folder, os.O_RDONLY)
            except OSError:
                break
        need_equal(file["x"][...], values)


@program
def compressed_and_plain(folder: Path) -> None:
    """What the host decodes opens files too."""
    import zarr

    values = field(150)
    group = zarr.open_group(folder / "x.zarr", mode="w")
    group.create_array("packed", data=values, chunks=(EDGE, EDGE), compressors=zarr.codecs.GzipCodec())
    group.create_array("plain", data=values, chunks=(EDGE, EDGE), compressors=None)
    group.create_array("sharded", data=values, chunks=(EDGE, EDGE), shards=(2 * EDGE, EDGE), compressors=None)
    for _ in range(3):
        found = ps.load(folder / "x.zarr", "host")
        for name in ("packed", "plain", "sharded"):
            need_equal(found[name], values)


@program
def by_zarr(folder: Path) -> None:
    import zarr

    from penstock import zarr_store

    zarr_store._SMALL_BYTES = 0
    values = make(folder / "x.zarr", 300)
    store = zarr_store.PenstockStore(folder / "x.zarr")
    need_equal(zarr.open_group(store, mode="r")["x"][...], values)
    keys = [(f"x/c/{at}/0", None) for at in range(300)]
    prototype = zarr.core.buffer.default_buffer_prototype()
    raw = b"".join(one.to_bytes() for one in zarr.core.sync.sync(store.get_partial_values(prototype, keys)))
    assert raw == values.tobytes()


@program
def ten_thousand_files(folder: Path) -> None:
    make(folder / "x.zarr", 1)
    document = (folder / "x.zarr/x/zarr.json").read_text().replace(f"{EDGE},", f"{EDGE * 10_000},", 1)
    assert str(EDGE * 10_000) in document
    (folder / "x.zarr/x/zarr.json").write_text(document)
    values = field(10_000)
    for at, chunk in enumerate(values.reshape(10_000, -1)):
        (folder / f"x.zarr/x/c/{at}").mkdir(exist_ok=True)
        (folder / f"x.zarr/x/c/{at}/0").write_bytes(chunk.tobytes())
    with ps.open(folder / "x.zarr", device="host") as file:
        need_equal(file["x"][...], values)
        need_equal(file["x"].start_read().result(), values)


def main(limit: str, name: str, folder: str) -> None:
    soft = int(limit)
    if limit.startswith("+"):  # so many above those that are open
        soft += 1 + max(int(one.name) for one in Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, soft))
    PROGRAMS[name](Path(folder))
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == soft, "the limit is the program's own"


if __name__ == "__main__":
    main(*sys.argv[1:])
