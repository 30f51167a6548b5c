"""What a program that reads with h5py asks for, asked of both: the answers are alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import penstock as ps

Both = tuple[Any, Any]


def write(path: Path) -> None:
    with h5py.File(path.with_name("other.h5"), "w") as f:
        f["inner/d"] = np.arange(5.0)
    with h5py.File(path, "w") as f:
        f["x"] = np.arange(24, dtype="f4").reshape(4, 6)
        f["g/x"], f["g/h/y"] = [10, 11, 12], [20, 21]
        f["soft"], f["other"] = h5py.SoftLink("/g"), h5py.ExternalLink("other.h5", "/inner")
        f["second"], f["empty/below"] = f["g/h"], h5py.SoftLink("/x")
        f.create_group("none").attrs["a"] = 1
        f["gone"], f["away"] = h5py.SoftLink("/nowhere"), h5py.ExternalLink("absent.h5", "/d")
        f["zero"], f["one"] = np.zeros((0, 3)), 1.5
        f.create_dataset("rows", data=np.arange(80).reshape(8, 10), chunks=(3, 4), maxshape=(None, 10))
        f["records"] = np.array([(1, 2.5, b"ab"), (3, 4.5, b"cde")], [("a", "i4"), ("b", "f8"), ("c", "S3")])
        f["texts"], f["text"], f["fixed"] = ["a", "é", ""], "hello", np.array([b"ab", b"cdef"])
        f["of"] = f["x"].ref
        f.create_dataset("parts", (1,), h5py.regionref_dtype)[0] = f["x"].regionref[1:3, ::2]


@pytest.fixture
def both(tmp_path: Path) -> Iterator[Both]:
    """The same file, opened by h5py and by Penstock."""
    write(tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as stock, ps.open(tmp_path / "a.h5", device="host") as ours:
        yield stock, ours


def same(both: Both, ask: Callable[[Any], Any]) -> None:
    """That both answer alike, with values of one type, or that both refuse with an error of one kind."""
    stock, ours = (answer(file, ask) for file in both)
    assert type(stock) is type(ours) or isinstance(ours, type(stock)), (stock, ours)
    if isinstance(stock, np.ndarray):
        assert (stock.dtype, stock.shape) == (ours.dtype, ours.shape)
        assert stock.tolist() == ours.tolist()
    elif not isinstance(stock, Exception):
        assert stock == ours


def answer(file: Any, ask: Callable[[Any], Any]) -> Any:
    try:
        found = ask(file)
    except (KeyError, TypeError, ValueError) as error:
        return error
    return np.asarray(found) if isinstance(found, (ps.Array, np.generic)) else found


@pytest.mark.parametrize(
    "ask",
    [
        lambda f: f["g"]["/x"][...],  # from the root
        lambda f: f["g/h"]["/g/x"][...],
        lambda f: f["g"].get("/x")[...],
        lambda f: f["g"]["/h/y"],
        lambda f: "/h" in f["g"],
        lambda f: f["soft"]["h"]["y"][...],
        lambda f: f["soft/h"]["y"][...],
        lambda f: f["other"]["d"][...],
        lambda f: f["second"]["y"][...],
        lambda f: f["g"]["h"]["y"][...],  # has another name, under which it is listed
        lambda f: f["g/h/"]["y"][...],
        lambda f: f["empty"]["below"][...],
        lambda f: f["none"].attrs["a"],
        lambda f: len(f["none"]),
        lambda f: f["none"]["x"],
        lambda f: [name in f for name in ("none", "soft", "g/h", "gone", "away", "nowhere")],
        lambda f: f["gone"],
        lambda f: f.get("gone", 3),
        lambda f: f.get("away"),
        lambda f: f["g"] == f["g"],
        lambda f: f["g"] == f["g/h"],
        lambda f: len({f["g"], f["g"], f["g/h"]}),
    ],
)
def test_groups_and_links_are_found_as_by_h5py(both: Both, ask: Callable[[Any], Any]) -> None:
    same(both, ask)


def test_a_group_that_a_link_leads_to_lists_what_it_holds(both: Both) -> None:
    f = both[1]
    assert [list(f[name]) for name in ("soft", "other", "second", "empty")] == [["x", "h/y"], ["d"], ["y"], ["below"]]
    assert f["soft"].load()["h/y"].to_numpy().tolist() == [20, 21]
    assert f["soft"].name == "soft" and f["soft"]["h"].name == "soft/h"


@pytest.mark.parametrize("name", ["x", "zero", "one", "g", "none", "/"])
def test_what_is_open_is_true_however_many_elements_it_has(both: Both, name: str) -> None:
    found = [file[name] for file in both]
    assert [bool(one) for one in found] == [True, True]
    for file in both:
        file.close()
    assert [bool(one) for one in found] == [False, False] and not both[1]


@pytest.mark.parametrize(
    "ask",
    [
        lambda f: [np.asarray(row).tolist() for row in f["x"]],
        lambda f: list(f["one"]),  # nothing to go through: no empty list
        lambda f: list(f["zero"]),
        lambda f: f["x"][(0, 2), 1:3],
        lambda f: f["x"][1:3, (0, 2)],
        lambda f: f["x"][((0, 1),)],
        lambda f: f["records"]["a", 1],
        lambda f: f["records"][0, "b"],
        lambda f: f["records"].fields("b")[:1],
        lambda f: len(f["records"].fields("b")),
        lambda f: f["records"].dtype.names,
        lambda f: f["x"].dtype.names,
        lambda f: f["x"].dtype.str,
        lambda f: f["x"].dtype.type,
        lambda f: f["x"].maxshape,
        lambda f: f["rows"].maxshape,
        lambda f: f["rows"].len(),
        lambda f: f["one"].len(),
        lambda f: list(f["rows"].iter_chunks()),
        lambda f: list(f["rows"].iter_chunks(np.s_[2:5, 3:9])),
        lambda f: f["x"].iter_chunks(),
        lambda f: f["x"].astype("i2")[1:3, 0],
        lambda f: np.asarray(f["x"].astype("f8")),
        lambda f: f["texts"].asstr()[:],
        lambda f: f["texts"].asstr()[1],
        lambda f: f["text"].asstr()[()],
        lambda f: f["fixed"].asstr()[:],
        lambda f: f["texts"].asstr("ascii", "replace")[:],
        lambda f: f["texts"].asstr("ascii")[:],
        lambda f: f["x"].asstr(),
        lambda f: f[f["of"][()]][...],
        lambda f: f["x"][f["parts"][0]],
        lambda f: f.mode,
        lambda f: f["x"].attrs[3],
    ],
)
def test_datasets_answer_as_those_of_h5py(both: Both, ask: Callable[[Any], Any]) -> None:
    same(both, ask)


def test_several_members_come_as_elements_of_these_alone(both: Both) -> None:
    stock, ours = (file["records"] for file in both)
    for ask in (lambda one: one["a", "c"], lambda one: one.fields(["a", "c"])[:], lambda one: one["c", "a", 1:]):
        wanted, found = ask(stock), np.asarray(ask(ours))
        assert found.dtype.names == wanted.dtype.names and found.tolist() == wanted.tolist()
    with pytest.raises(KeyError, match="there are a, b, c"):
        ours["a", "q"]


def test_read_direct_fills_a_part_of_an_array(both: Both) -> None:
    found = []
    for file in both:
        out = np.zeros((5, 6), "f4")
        file["x"].read_direct(out, np.s_[0:2], np.s_[1:3])
        found.append(out.tolist())
    assert found[0] == found[1] and found[0][2][5] == 11


def test_visititems_calls_with_name_and_dataset(both: Both) -> None:
    assert both[1]["g"].visititems(lambda name, one: f"{name} {one.shape}") == "x (3,)"


@pytest.mark.parametrize(
    ("name", "word"),
    [
        *(("x", "compression"), ("x", "resize"), ("g", "create_group"), ("g", "id")),  # h5py
        *(("/", "variables"), ("x", "dimensions"), ("x", "ncattrs"), ("x", "set_auto_mask")),  # netCDF4
        *(("x", "oindex"), ("g", "array_keys"), ("g", "tree")),  # zarr
    ],
)
def test_a_word_of_another_library_says_what_to_write(both: Both, name: str, word: str) -> None:
    with pytest.raises(AttributeError, match=rf"a penstock\.\w+ has no \.{word}: ."):
        getattr(both[1][name], word)
    with pytest.raises(AttributeError, match="no attribute 'misspelt'"):
        both[1][name].misspelt  # noqa: B018


def test_what_lies_in_other_files_has_no_chunks(tmp_path: Path) -> None:
    layout = h5py.VirtualLayout((4, 3), "f8")
    for row in range(4):
        with h5py.File(tmp_path / f"{row}.h5", "w") as file:
            file["d"] = np.full(3, row, "f8")
        layout[row] = h5py.VirtualSource(tmp_path / f"{row}.h5", "d", (3,))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_virtual_dataset("virtual", layout)
        parts = [(str(tmp_path / "0.bin"), 0, 16), (str(tmp_path / "1.bin"), 0, 16)]
        file.create_dataset("external", data=np.arange(4.0), external=parts)
    with h5py.File(tmp_path / "a.h5") as stock, ps.open(tmp_path / "a.h5", device="host") as ours:
        for name in ("virtual", "external"):
            assert stock[name].chunks is ours[name].chunks is None
            assert np.array_equal(stock[name][...], ours[name][...])


@pytest.mark.parametrize("suffix", [".h5", ".nc"])
def test_arrays_without_dimensions_are_attributes(tmp_path: Path, suffix: str) -> None:
    values = {"n": np.array(5), "f": np.array(2.5, "f4"), "s": np.array("q"), "r": np.array((1, 2.0), "i4, f8")}
    with ps.create(tmp_path / f"a{suffix}", device="host") as file:
        file["x"] = np.arange(2)
        for name, value in values.items():
            file["x"].attrs[name] = value
    with h5py.File(tmp_path / f"a{suffix}") as file:
        found = file["x"].attrs
        assert {name: found.get_id(name).shape for name in values} == dict.fromkeys(values, ())
        assert [found["n"], found["f"], found["r"].tolist()] == [5, 2.5, (1, 2.0)]
        assert found["s"] in ("q", b"q")


@pytest.mark.parametrize("suffix", [".h5", ".nc"])
@pytest.mark.parametrize(
    ("value", "words"), [([1, "a"], "text and int cannot be in one list"), (None, "NoneType"), ({"a": 1}, "dict")]
)
def test_attributes_of_no_type_say_what_can_be(tmp_path: Path, suffix: str, value: Any, words: str) -> None:
    with ps.create(tmp_path / f"a{suffix}", device="host") as file:
        file["x"] = np.arange(2)
        with pytest.raises(ps.Error, match=f"attribute 'a' cannot be written: .*{words}.*; text, numbers and lists"):
            file["x"].attrs["a"] = value


def test_tables_of_text_in_attributes_are_lists_of_lists(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.attrs["fixed"], file.attrs["text"] = np.array([[b"a", b"b"]]), np.array([["c", "d"]], object)
    with ps.open(tmp_path / "a.h5", device="host") as file:
        assert dict(file.attrs) == {"fixed": [["a", "b"]], "text": [["c", "d"]]}


@pytest.mark.parametrize("word", ["decode", "upper", "split"])
def test_text_in_an_array_says_how_to_get_the_str(both: Both, word: str) -> None:
    for found in (both[1]["text"][()], both[1]["texts"][1]):
        with pytest.raises(AttributeError, match=rf"no \.{word}: array\.item\(\) is the str"):
            getattr(found, word)
        assert not hasattr(found, "misspelt") and not hasattr(found, "__cuda_array_interface__")
        assert found.item() in ("hello", "é") and f"{found}" == found.item()


def test_text_is_a_series_of_pandas(both: Both) -> None:
    pandas = pytest.importorskip("pandas")
    assert pandas.Series(both[1]["texts"][...]).tolist() == ["a", "é", ""]
    assert pandas.DataFrame({"t": both[1]["texts"][...], "n": both[1]["x"][:3, 0]})["t"].tolist() == ["a", "é", ""]


def test_a_group_that_is_written_to_says_what_takes_values(both: Both) -> None:
    with pytest.raises(TypeError, match=r"a group makes no datasets: write file\['g/new'\] = value"):
        both[1]["g"]["new"] = np.arange(3)
    with pytest.raises(AttributeError, match=r"Group has no .create_dataset: file.create_dataset"):
        both[1]["g"].create_dataset("new", (3,), "f4")


def test_an_attribute_is_no_member_and_says_where_it_is(tmp_path: Path) -> None:
    with ps.create(tmp_path / "a.nc", device="host") as file:
        file["T"] = np.arange(3.0)
        file["T"].attrs["units"], file.attrs["title"] = "K", "t"
    with ps.open(tmp_path / "a.nc", device="host") as file:
        with pytest.raises(AttributeError, match=r"a penstock.Dataset has no .units: .attrs\['units'\] has it"):
            file["T"].units  # noqa: B018
        with pytest.raises(AttributeError, match=r"a penstock.DataFile has no .title: .attrs\['title'\] has it"):
            file.title  # noqa: B018
        dataset = file["T"]
        assert not hasattr(dataset, "misspelt")
    assert not hasattr(dataset, "units")  # of a closed file


def test_a_region_that_is_no_box_says_where_its_elements_are(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "b.h5", "w") as f:
        f["x"] = np.arange(6)
        f["part"] = f["x"].regionref[np.array([True, False, False, True, True, False])]
    with ps.open(tmp_path / "b.h5", device="host") as f:
        region = f["part"][()]
        with pytest.raises(IndexError, match=r"to_numpy\(\)\[reference.selection\] has them"):
            f["x"][region]
        assert f[region][...].to_numpy()[region.item().selection].tolist() == [0, 3, 4]
