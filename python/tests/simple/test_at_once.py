"""Small arrays of NumPy are saved without a transfer: the same file, byte for byte, and the same errors."""

import fcntl
import resource
import signal
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as some

import penstock
from penstock.formats.simple.at_once import MOST_BYTES

AT_ONCE = "a small new file"
TYPES = ["u1", "i2", "f4", "f8", "c16", "?"]


def the_long_way(name: Path, data: Any) -> bytes:
    arrays = data if isinstance(data, dict) else {"data": data}
    with penstock.create(name, device="host") as file:
        file.write_many(arrays).result()
    return name.read_bytes()


@settings(max_examples=40, deadline=None)
@given(
    shapes=some.lists(some.lists(some.integers(1, 5), max_size=3).map(tuple), min_size=1, max_size=3),
    types=some.lists(some.sampled_from(TYPES), min_size=3, max_size=3),
)
def test_a_file_is_that_of_the_long_way(
    tmp_path_factory: pytest.TempPathFactory, shapes: list[tuple[int, ...]], types: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("once")
    arrays = {
        f"x{i}": np.arange(int(np.prod(shape)), dtype="f8").reshape(shape).astype(kind)
        for i, (shape, kind) in enumerate(zip(shapes, types, strict=False))
    }
    kept = {name: one for name, one in arrays.items() if one.dtype.kind != "c"}  # safetensors has no complex numbers
    cases: list[tuple[str, Any]] = [("a.npy", arrays["x0"]), *([("a.safetensors", kept)] if kept else [])]
    for name, data in cases:
        outcome = penstock.save(folder / name, data)
        assert AT_ONCE in outcome.evidence["plan"], name
        assert outcome.bytes == sum(one.nbytes for one in (data.values() if isinstance(data, dict) else [data]))
        assert (folder / name).read_bytes() == the_long_way(folder / f"long{name}", data)


def test_a_raw_file_has_the_elements(tmp_path: Path) -> None:
    values = np.arange(12.0).reshape(3, 4)
    assert AT_ONCE in penstock.save(tmp_path / "x", values, format="raw").evidence["plan"]
    assert (tmp_path / "x").read_bytes() == values.tobytes()


@pytest.mark.parametrize(
    ("what", "data", "options"),
    [
        ("a large one", np.zeros(MOST_BYTES + 1, "u1"), {}),
        ("one with steps", np.arange(20.0)[::2], {}),
        ("one in columns", np.asfortranarray(np.arange(6.0).reshape(2, 3)), {}),
        ("one of the other byte order", np.arange(6, dtype=">f4"), {}),
        ("a path that is named", np.arange(6.0), {"path": "buffered"}),
        ("a context", np.arange(6.0), {"context": "host"}),
        ("numbers of a list", [1.0, 2.0], {}),
    ],
)
def test_what_is_more_than_that_goes_the_long_way(
    tmp_path: Path, what: str, data: Any, options: dict[str, Any]
) -> None:
    if "context" in options:
        options = {"context": penstock.Context(options["context"])}
    outcome = penstock.save(tmp_path / "x.npy", data, **options)
    assert AT_ONCE not in outcome.evidence["plan"], what
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), data)


def test_attributes_go_the_long_way(tmp_path: Path) -> None:
    name = tmp_path / "x.safetensors"
    outcome = penstock.save(name, {"x": np.arange(3.0)}, attributes={"who": "me"})
    assert AT_ONCE not in outcome.evidence["plan"]
    with penstock.open(name) as file:
        assert dict(file.attrs) == {"who": "me"}


def test_an_older_file_gives_its_mode_and_a_link_stays(tmp_path: Path) -> None:
    older, link = tmp_path / "older.npy", tmp_path / "link.npy"
    np.save(older, np.zeros(2))
    older.chmod(0o640)
    link.symlink_to(older)
    assert AT_ONCE in penstock.save(link, np.ones(3)).evidence["plan"]
    assert link.is_symlink()
    assert stat.S_IMODE(older.stat().st_mode) == 0o640
    assert np.load(older).tolist() == [1, 1, 1]


def test_one_who_changes_the_older_file_is_not_robbed_of_it(tmp_path: Path) -> None:
    name = tmp_path / "x.npy"
    np.save(name, np.zeros(2))
    with name.open("r+b") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(penstock.Error, match="has it open for writing"):
            penstock.save(name, np.ones(3))
    assert np.load(name).tolist() == [0, 0]
    assert [one.name for one in tmp_path.iterdir()] == ["x.npy"]


@contextmanager
def no_file_longer_than(bytes: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_write_that_fails_leaves_the_older_file_and_nothing_else(tmp_path: Path) -> None:
    name = tmp_path / "x.npy"
    np.save(name, np.zeros(2))
    for bytes in (4096, 5000):  # nothing of the elements fits, and some of them
        with no_file_longer_than(bytes), pytest.raises(penstock.Error) as raised:
            penstock.save(name, np.ones(1000))
        assert raised.value.code == "no_space", raised.value
        assert "dataset 'data'" in str(raised.value)
    assert np.load(name).tolist() == [0, 0]
    assert [one.name for one in tmp_path.iterdir()] == ["x.npy"]


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(penstock.Error) as raised:
        penstock.save(tmp_path / "none" / "x.npy", np.ones(3))
    assert raised.value.code == "not_found"


def test_names_that_the_format_has_not(tmp_path: Path) -> None:
    with pytest.raises(penstock.Error, match="holds one array"):
        penstock.save(tmp_path / "x.npy", {"a": np.ones(1), "b": np.ones(1)})
    with pytest.raises(penstock.Error, match="no type"):
        penstock.save(tmp_path / "x.safetensors", {"a": np.ones(1, "c16")})
    with pytest.raises(ValueError, match="zero character"):
        penstock.save(tmp_path / "x.safetensors", {"a\0b": np.ones(1)})
    assert not list(tmp_path.iterdir())
