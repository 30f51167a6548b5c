"""Raw files with a type and a shape; load and save of plain bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from format_kit import check_refuses_wrong_out, check_selections, same

import penstock


@pytest.fixture
def stored(tmp_path: Path) -> tuple[Path, np.ndarray]:
    content = np.random.default_rng(1).random((50, 4, 3)).astype("f4")
    (tmp_path / "x.bin").write_bytes(b"header.." + content.tobytes())
    return tmp_path / "x.bin", content


def test_selections(stored: tuple[Path, np.ndarray]) -> None:
    path, content = stored
    with penstock.open(path, device="host", dtype="float32", shape=(50, 4, 3), offset_bytes=8) as file:
        check_selections(file, "data", content)
        check_refuses_wrong_out(file["data"])


def test_shapes_are_found_out(stored: tuple[Path, np.ndarray]) -> None:
    path, content = stored
    found = penstock.load(path, "host", dtype="float32", shape=(-1, 4, 3), offset_bytes=8)
    same(found, content)
    same(penstock.load(path, "host", dtype="<f4", offset_bytes=8), content.reshape(-1))
    same(
        penstock.load(path, "host", dtype="float32", shape=(2, 3), offset_bytes=20),
        content.reshape(-1)[3:9].reshape(2, 3),
    )


def test_big_endian_numbers_are_turned(tmp_path: Path) -> None:
    content = np.arange(1000, dtype=">i4")
    content.tofile(tmp_path / "be.bin")
    same(penstock.load(tmp_path / "be.bin", "host", dtype=">i4"), content)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"shape": (7, 7, 13)}, "needs 2548 bytes"),
        ({"shape": (-1, 11)}, "not a whole number"),
        ({"offset_bytes": 3000}, "offset 3000"),
        ({"offset_bytes": -8}, "offset -8"),
    ],
)
def test_what_does_not_fit_is_told(stored: tuple[Path, np.ndarray], arguments: dict[str, object], word: str) -> None:
    with pytest.raises(penstock.Error, match=word) as caught:
        penstock.open(stored[0], device="host", dtype="float32", **arguments)  # type: ignore[arg-type]
    assert "x.bin" in str(caught.value)


def test_arguments_that_contradict_each_other(stored: tuple[Path, np.ndarray], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="one extent may be -1"):
        penstock.open(stored[0], dtype="f4", shape=(-1, -1))
    with pytest.raises(TypeError, match="dtype="):
        penstock.open(stored[0], format="raw")
    with pytest.raises(TypeError, match="format='raw'"):
        penstock.open(tmp_path / "x.npy", dtype="f4")
    with pytest.raises(penstock.Error, match=r"hdf5 \(.h5"):
        penstock.open(stored[0])
    with pytest.raises(ValueError, match="no format 'tar'"):
        penstock.open(stored[0], format="tar")
    with pytest.raises(ValueError, match="no known format"):
        penstock.create(tmp_path / "x.tar")
    with pytest.raises(penstock.Error) as caught:
        penstock.open(tmp_path / "absent.h5")
    assert caught.value.code == "not_found"


def test_one_array_is_saved_as_raw_bytes(tmp_path: Path) -> None:
    content = np.arange(100.0)
    penstock.save(tmp_path / "a.bin", content, "host", format="raw")
    assert (tmp_path / "a.bin").read_bytes() == content.tobytes()
    array = penstock.load(tmp_path / "a.bin", "host", dtype="float64")
    assert penstock.save(tmp_path / "b.bin", array).bytes == 800
    assert penstock.save(tmp_path / "c.npy", array).bytes == 800
    assert np.array_equal(np.load(tmp_path / "c.npy"), content)


@pytest.mark.parametrize(
    ("name", "cause"),
    [("x", "x has no suffix to say its format"), ("x.hd5", "the suffix of .*x.hd5 is that of no known format")],
)
def test_an_array_does_not_lose_its_type_and_shape_by_a_name_that_says_no_format(
    tmp_path: Path, name: str, cause: str
) -> None:
    content = np.arange(4.0)
    penstock.save(tmp_path / "a.npy", content, "host")
    for data in (content, content.astype("u1"), penstock.load(tmp_path / "a.npy", "host")):
        listed = r": hdf5 \(.h5 .*, raw \(.bin .raw\), .*; format= names one"
        with pytest.raises(ValueError, match=cause + listed) as told:
            penstock.save(tmp_path / name, data, "host")
        assert str(told.value).endswith("; did you mean .hdf5?") == (name == "x.hd5")
    assert [one.name for one in tmp_path.iterdir()] == ["a.npy"]
    for bare in ("x.bin", "x.RAW"):
        penstock.save(tmp_path / bare, content, "host")
        assert (tmp_path / bare).read_bytes() == content.tobytes()


def test_several_datasets_are_not_told_to_take_the_suffix_that_they_have(tmp_path: Path) -> None:
    for make in (
        lambda: penstock.save(tmp_path / "x.bin", {"a": np.ones(3)}),
        lambda: penstock.create(tmp_path / "x.bin"),
    ):
        with pytest.raises(ValueError, match=r"that of no known format: hdf5 .*\(.zarr\), raw; format= names one$"):
            make()


def test_memory_without_a_type_is_written_under_any_name(tmp_path: Path) -> None:
    (tmp_path / "some").write_bytes(b"12345")
    for number, data in enumerate((b"12345", memoryview(b"12345"), penstock.load(tmp_path / "some", "host"))):
        penstock.save(tmp_path / f"copy{number}", data, "host")
        assert (tmp_path / f"copy{number}").read_bytes() == b"12345"


def test_names_without_a_known_suffix_are_bytes(tmp_path: Path) -> None:
    (tmp_path / "some").write_bytes(b"12345")
    buffer = penstock.load(tmp_path / "some", "host")
    assert isinstance(buffer, penstock.Buffer)
    with penstock.Context("host") as context:
        assert bytes(memoryview(penstock.load(tmp_path / "some", context=context))) == b"12345"


def test_text_that_the_kernel_makes_is_no_array_of_no_elements(tmp_path: Path) -> None:
    for use in (lambda: penstock.open("/proc/self/maps", dtype="u1"), lambda: penstock.load("/proc/self/maps", "host")):
        with pytest.raises(penstock.Error, match="open /proc/self/maps: .* at each read.*; copy it into a file"):
            use()
    (tmp_path / "empty").touch()
    assert penstock.load(tmp_path / "empty", "host", dtype="u1").shape == (0,)
