"""penstock.Snapshot: dicts of arrays become what h5py reads, and wrong use is told in one line before a file is
made."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import penstock

FIELD = np.arange(12.0).reshape(4, 3)
LIMIT_S = 60


@pytest.fixture
def name(tmp_path: Path) -> Path:
    return tmp_path / "snapshot.hdf5"


def opened(name: Path, fields: dict[str, Any] | None = None, **options: Any) -> penstock.Snapshot:
    return penstock.Snapshot(name, fields, device="host", **options)


TYPES = ("bool", "int8", "uint8", "int32", "int64", "uint64", "float16", "float32", "float64", "complex64", "S5")


def test_a_dict_of_arrays_is_what_h5py_reads(name: Path) -> None:
    fields: dict[str, np.ndarray] = {f"a/{one}": (FIELD % 2).astype(one) for one in TYPES}
    fields |= {"scalar": np.float32(3), "empty": np.zeros((0, 3)), "a/large": np.random.default_rng(1).random(200_001)}
    facts = opened(name, durable=True).write(fields)
    with h5py.File(name) as file:
        for path, array in fields.items():
            assert file[path].dtype == array.dtype and file[path].shape == array.shape, path
            np.testing.assert_array_equal(file[path][()], array)
    assert facts.data_bytes == sum(one.nbytes for one in fields.values())
    assert facts.file_bytes == name.stat().st_size
    assert sum(one["bytes"] for one in facts.evidence["paths"]) == facts.data_bytes
    assert facts.evidence["predicted_seconds"] != 0, "None where nothing predicts it"


def test_arrays_of_penstock_and_of_python(name: Path) -> None:
    np.save(name.with_suffix(".npy"), FIELD)
    ours = penstock.load(name.with_suffix(".npy"), device="host")
    opened(name, {"ours": ours, "list": [1.5, 2.5], "view": memoryview(b"abc")}).write()
    with h5py.File(name) as file:
        np.testing.assert_array_equal(file["ours"][...], FIELD)
        assert list(file["list"]) == [1.5, 2.5] and bytes(file["view"][...]) == b"abc"


def test_arrays_of_other_libraries(name: Path) -> None:
    torch = pytest.importorskip("torch")
    opened(name, {"torch": torch.arange(5)}).write()
    with h5py.File(name) as file:
        np.testing.assert_array_equal(file["torch"][...], np.arange(5))


def test_values_of_python_become_attributes(name: Path) -> None:
    snapshot = opened(name, {"g/x": FIELD})
    snapshot.add_group("Config")
    snapshot.add_link("alias", "/g")
    values: dict[str, Any] = {
        **{"int": 3, "float": 0.5, "bool": True, "large": 2**64 - 1, "text": "SWIFT", "bytes": b"ab", "empty": ""},
        **{"one": [7], "u4": np.uint32(5), "f4": np.float32(0.5), "table": np.eye(2, dtype=">i2"), "none": []},
        **{"texts": ["Gas", "DM"], "numpy text": np.array(["a", "bcd"]), "greek": "μm"},
    }
    for path in ("/", "g", "g/x"):
        snapshot.set_attrs(path, {"int": 4})
        snapshot.set_attrs(path, values)
    snapshot.write()
    wanted: dict[str, tuple[str, tuple[int, ...]]] = {
        **{"int": ("i8", ()), "float": ("f8", ()), "bool": ("?", ()), "large": ("u8", ()), "one": ("i8", (1,))},
        **{"u4": ("u4", ()), "f4": ("f4", ()), "table": ("i2", (2, 2)), "none": ("f8", (0,)), "text": ("S5", ())},
        **{"bytes": ("S2", ()), "empty": ("S1", ()), "texts": ("S3", (2,)), "numpy text": ("S3", (2,))},
        "greek": ("S3", ()),
    }
    with h5py.File(name) as file:
        assert isinstance(file.get("alias", getlink=True), h5py.SoftLink) and not len(file["Config"])
        for path in ("/", "g", "g/x"):
            attrs = file[path].attrs
            assert sorted(attrs) == sorted(values)
            for one, (dtype, shape) in wanted.items():
                assert attrs.get_id(one).shape == shape, one
                assert one == "greek" or attrs.get_id(one).dtype == np.dtype(dtype), one
            assert attrs["int"] == 3 and attrs["large"] == 2**64 - 1 and attrs["bool"] and attrs["f4"] == 0.5
            np.testing.assert_array_equal(attrs["table"], np.eye(2))
            assert attrs["text"] == b"SWIFT" and list(attrs["texts"]) == [b"Gas", b"DM"] and list(attrs["one"]) == [7]


def test_links_lead_to_other_files(name: Path) -> None:
    opened(name.with_name("other.hdf5"), {"g/x": FIELD}).write()
    snapshot = opened(name)
    snapshot.add_link("a/outside", "/g", file="other.hdf5")
    snapshot.write()
    with h5py.File(name) as file:
        link = file["a"].get("outside", getlink=True)
        assert isinstance(link, h5py.ExternalLink) and (link.filename, link.path) == ("other.hdf5", "/g")
        np.testing.assert_array_equal(file["a/outside/x"][...], FIELD)


def test_an_array_may_change_after_the_write_and_is_read_by_it(name: Path) -> None:
    array = FIELD.copy()
    snapshot = opened(name, {"x": array})
    array += 1
    snapshot.write()
    array += 1
    with h5py.File(name) as file:
        np.testing.assert_array_equal(file["x"][...], FIELD + 1)


WRONG: dict[str, tuple[Callable[[penstock.Snapshot], object], type[Exception], str]] = {
    "twice": (lambda s: s.add_dataset("/a/x", FIELD), penstock.Error, "'a/x' is added twice"),
    "below": (lambda s: s.write({"a/x/y": FIELD}), penstock.Error, "two members x"),
    "order": (lambda s: s.write({"y": FIELD.T}), ValueError, "'y': the array is not in C order; give numpy.ascont"),
    "big": (lambda s: s.write({"y": FIELD.astype(">f8")}), TypeError, "give them in the order of this machine"),
    "objects": (lambda s: s.write({"y": FIELD.astype(object)}), Exception, "Python objects"),
    "text": (lambda s: s.write({"y": ["a", "b"]}), TypeError, "'y' is text of any length"),
    "unicode": (lambda s: s.write({"y": np.array(["a"])}), TypeError, "numpy S"),
    "dates": (lambda s: s.write({"y": np.zeros(2, "M8[s]")}), TypeError, "'y' has elements of"),
    "no array": (lambda s: s.write({"y": object()}), TypeError, "is not an array"),
    "no dict": (lambda s: s.write([FIELD]), TypeError, "a dict of paths and arrays"),  # type: ignore[arg-type]
    "path": (lambda s: s.write({3: FIELD}), TypeError, "a path is a str, not int"),  # type: ignore[dict-item]
    "group": (lambda s: s.add_group(None), TypeError, "a path is a str, not NoneType"),  # type: ignore[arg-type]
    "link": (lambda s: s.add_link("b", ""), penstock.Error, "leads nowhere"),
    "absent": (lambda s: s.set_attrs("b", {"n": 1}), penstock.Error, "no group or dataset 'b'"),
    "None": (lambda s: s.set_attrs("a", {"n": None}), TypeError, "'n' is None; give text, a number, or an array"),
    "mixed": (lambda s: s.set_attrs("a", {"n": ["a", 1, None]}), TypeError, "give text, a number, or an array"),
    "ragged": (lambda s: s.set_attrs("a", {"n": [[1], [1, 2]]}), ValueError, "inhomogeneous"),
    "bytes": (lambda s: s.set_attrs("a", {"n": b"\xff"}), ValueError, "no UTF-8"),
    "attrs": (lambda s: s.set_attrs("a", "n"), TypeError, "attributes are a dict"),  # type: ignore[arg-type]
    "long": (lambda s: s.set_attrs("a", {"n": np.zeros(9000)}), penstock.Error, "store it as a dataset"),
    "layout": (lambda s: s.use_preset("gadget5"), penstock.Error, "no layout 'gadget5'"),
    "word": (lambda s: s.use_preset("swift", tme=1), TypeError, "tme"),  # type: ignore[call-arg]
    "box": (lambda s: s.use_preset("swift", box_size=[1, 2]), ValueError, "box_size is [1, 2]; give one length"),
    "masses": (lambda s: s.use_preset("swift", mass_table=[1] * 8), ValueError, "8 masses"),
    "number": (lambda s: s.use_preset("swift", time="a"), TypeError, "time"),  # type: ignore[arg-type]
    "stream": (lambda s: s.write({"y": FIELD}, stream="a"), TypeError, "is not a stream"),
    "half a letter": (
        lambda s: s.set_attrs("a", {"n": "\ud800"}),
        ValueError,
        "attribute 'n': its text '\\ud800' holds",
    ),
    "half in a list": (lambda s: s.set_attrs("a", {"n": ["a", "\ud800"]}), ValueError, "cannot be kept as UTF-8"),
    "half an attribute": (lambda s: s.set_attrs("a", {"\ud800": 1}), ValueError, "the name of an attribute '\\ud800'"),
    "half a path": (lambda s: s.write({"\ud800": FIELD}), ValueError, "the path '\\ud800' holds"),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_use_is_one_line_and_leaves_the_snapshot_as_it_was(name: Path, what: str) -> None:
    call, kind, words = WRONG[what]
    name.write_bytes(b"old")
    snapshot = opened(name, {"a/x": FIELD})
    with pytest.raises(kind) as caught:
        call(snapshot)
    assert words in str(caught.value) and ("\n" not in str(caught.value) or what in ("word",))
    assert name.read_bytes() == b"old" and list(name.parent.iterdir()) == [name]
    snapshot.write()
    with h5py.File(name) as file:
        assert set(file) == {"a"}


def test_options_that_make_no_sense_are_refused(name: Path) -> None:
    with pytest.raises(penstock.Error, match="no memory 'gpu'; use one of auto, device, host"):
        opened(name, memory="gpu")
    with pytest.raises(penstock.Error, match="path"):
        opened(name, path="none")
    with pytest.raises(TypeError):
        opened(name, durable="yes")
    name.write_bytes(b"old")
    with pytest.raises(FileExistsError):
        opened(name, {"x": FIELD}, replace=False).write()
    with pytest.raises(FileNotFoundError):
        opened(name.parent / "none" / "x.hdf5", {"x": FIELD}).write()
    done = opened(name, {"x": FIELD})
    done.write()
    for call in (done.write, lambda: done.add_group("b"), lambda: done.add_dataset("y", FIELD)):
        with pytest.raises(penstock.Error, match="the snapshot is written already; open another one"):
            call()


def test_memory_of_another_place_is_refused(name: Path) -> None:
    context = penstock.Context("host")
    buffer = context.allocate(FIELD.nbytes)
    on_device = penstock.Array(buffer, "float64", FIELD.shape)
    snapshot = penstock.Snapshot(name, {"a/y": on_device}, memory="device", context=context)
    for call in (snapshot.write, lambda fields: snapshot.add_dataset(*fields.popitem())):
        with pytest.raises(penstock.Error, match="dataset 'x': .*this snapshot takes memory of"):
            call({"x": FIELD})
        assert not name.exists()
    snapshot.write({"x": on_device})
    with h5py.File(name) as file:
        assert file["a/y"].shape == file["x"].shape == FIELD.shape


INTERRUPTED = """
import os, signal, sys, threading
import numpy as np, penstock
fields = {"x": np.zeros(int(sys.argv[2]), "u1")}
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    while True:
        penstock.Snapshot(sys.argv[1], fields, device="host", path="buffered").write()
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_ends_a_write_and_leaves_no_part_of_a_file(name: Path) -> None:
    program = [sys.executable, "-c", INTERRUPTED, str(name), str(400 << 20)]
    ran = subprocess.run(program, capture_output=True, text=True, timeout=LIMIT_S)
    assert ran.stdout == "interrupted\n", ran.stderr
    assert [one.name for one in name.parent.iterdir()] in ([], [name.name])
    if name.exists():
        with h5py.File(name) as file:
            assert file["x"].shape == (400 << 20,)


def test_a_child_of_fork_is_refused(name: Path) -> None:
    snapshot = opened(name, {"x": FIELD})
    child = os.fork()
    if child == 0:
        try:
            snapshot.write()
        except penstock.Error as error:
            os._exit(0 if "forked" in str(error) else 2)
        os._exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    snapshot.write()


def test_help_tells_the_verbs(capsys: pytest.CaptureFixture[str]) -> None:
    help(penstock.Snapshot)
    told = capsys.readouterr().out
    assert all(verb in told for verb in ("add_dataset", "add_group", "add_link", "set_attrs", "use_preset", "write"))
