"""Headers that the core reads: it says what the parsers of Python say, or leaves the file to them."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock import Error, _core
from penstock.formats.model import Container
from penstock.formats.simple.npy import open_npy
from penstock.formats.simple.safetensors import open_safetensors

Open = Callable[[Path], Container]


def safetensors(header: Any, data: int) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + bytes(data)


def npy(text: str, data: int, version: int = 1) -> bytes:
    size = len(text).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + size + text.encode("latin-1") + bytes(data)


TWO = {
    "__metadata__": {"format": "pt", "é\n": "\U0001f600"},
    "b": {"dtype": "F32", "shape": [2, 3], "data_offsets": [4, 28]},
    "a/ü": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]},
    "none": {"dtype": "I64", "shape": [0, 5], "data_offsets": [28, 28]},
    "one": {"dtype": "F8_E4M3", "shape": [], "data_offsets": [28, 29]},
}
PLAIN = {
    "__metadata__": {"format": "pt", "by": "a test"},
    "model.layers.0.weight": {"dtype": "F32", "shape": [2, 3], "data_offsets": [4, 28]},
    "b": {"data_offsets": [0, 4], "dtype": "BF16", "shape": [2]},
    "none": {"dtype": "I64", "shape": [0, 5], "data_offsets": [28, 28]},
}
SAFETENSORS = [
    safetensors(TWO, 29),
    safetensors({"a": {"dtype": "F4", "shape": [4], "data_offsets": [0, 2]}}, 2),
    safetensors({"a": {"dtype": "NEW", "shape": [4], "data_offsets": [0, 2]}}, 2),
    safetensors({"a": {"dtype": "U8", "shape": [1] * 20, "data_offsets": [0, 1]}}, 1),
    safetensors(b'{"a":{"dtype":"U8","shape":[2.0],"data_offsets":[0,2]}}', 2),
    safetensors(b'{"a":{"dtype":"U8","shape":[-0],"data_offsets":[0,0]}}', 0),
    safetensors(b'{"a":{"dtype":"U8","shape":[true],"data_offsets":[0,1]}}', 1),
    safetensors(b'{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"a":{}}', 2),
    safetensors(b'{"a\\ud800":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}', 2),
    safetensors(b'{"__metadata__":{"x":1}}', 0),
    safetensors(b"{}  \n", 0),
    safetensors({str(one): {"dtype": "U8", "shape": [1], "data_offsets": [one, one + 1]} for one in range(400)}, 400),
    safetensors(json.dumps(TWO).encode() + b" " * 40_001, 29),
    safetensors(b"{" + b" " * 40_001, 0),
    safetensors(json.dumps(TWO).encode() + b" " * 70_000, 29),
    safetensors(PLAIN, 28),
    safetensors(json.dumps(PLAIN, indent=2).encode() + b" " * 70_000, 28),
    safetensors(
        {f"weights.{one}": {"dtype": "I8", "shape": [], "data_offsets": [one, one + 1]} for one in range(1500)}, 1500
    ),
    safetensors(
        b'{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}', 0
    ),
]
NPY = [
    npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }\n", 48),
    npy("{'descr': '|b1', 'fortran_order': False, 'shape': (), }\n", 1, 2),
    npy("{'descr': '<c16', 'fortran_order': False, 'shape': (2,), }\n", 32, 3),
    npy("{'descr': '>i8', 'fortran_order': False, 'shape': (2,), }\n", 16),
    npy("{'descr': '<f4', 'fortran_order': True, 'shape': (1, 5), }\n", 20),
    npy("{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1), }\n", 4),
    npy("{'descr': '<U3', 'fortran_order': False, 'shape': (2,), }\n", 24),
    npy("{'descr': '<M8[s]', 'fortran_order': False, 'shape': (2,), }\n", 16),
    npy("{'descr': '|O', 'fortran_order': False, 'shape': (2,), }\n", 16),
    npy("{'shape': (2, 0), 'fortran_order': False, 'descr': 'f8'}", 0),
    npy("{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (2,), }\n", 8),
    npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3L, 4), }\n", 48),
]


def told(open: Open, name: Path) -> Any:
    """All that a container says, or how it refuses."""
    try:
        found = open(name)
    except Error as error:
        return error.code, re.sub("0x[0-9a-f]+", "", error.cause)
    names = list(found.names())
    places = [(found.info(one), found.place(one), found.watch(one)) for one in names]
    return names, places, [type(info.dtype.native.name) for info, _, _ in places], dict(found.attributes())


def compare(content: bytes, open: Open, name: Path, patch: pytest.MonkeyPatch) -> bool:
    """Whether the core read it."""
    name.write_bytes(content)
    is_read = _core.read_header(name.suffix[1:], name) is not None
    found = told(open, name)
    with patch.context() as without:
        without.setattr(_core, "read_header", lambda *_: None)
        assert found == told(open, name), content
    return is_read


KINDS = {
    "safetensors": (SAFETENSORS, open_safetensors, [0, 5, 10, 11, 12, 15, 16, 17]),
    "npy": (NPY, open_npy, [0, 1, 2, 9, 11]),
}


@pytest.mark.filterwarnings("ignore:invalid escape sequence")
@pytest.mark.parametrize("suffix", KINDS)
def test_the_core_says_what_python_says_or_nothing(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = tmp_path / f"x.{suffix}"
    samples, open, read = KINDS[suffix]
    by_core = [compare(content, open, name, monkeypatch) for content in samples]
    assert [at for at, is_read in enumerate(by_core) if is_read] == read
    random.seed(5)
    pool = [*b'0123456789-+.eE,:[]{}()"\\ \n\0\xffTrueFals<>|=ifcbu', *range(256)]
    for _ in range(3000):
        content = bytearray(random.choice(samples))
        for _ in range(random.choice((1, 1, 2, 4))):
            at = random.randrange(min(len(content), 400))
            change = random.randrange(3)
            content[at : at + (change != 1)] = bytes([random.choice(pool)] if change else [])
        compare(bytes(content), open, name, monkeypatch)


def test_of_no_regular_file_it_says_nothing(tmp_path: Path) -> None:
    for name in (tmp_path, tmp_path / "absent.npy", Path("/dev/null")):
        assert _core.read_header("npy", name) is None
    np.save(tmp_path / "x.npy", np.zeros(3))
    assert _core.read_header("hdf5", tmp_path / "x.npy") is None
    found = _core.read_header("npy", tmp_path / "x.npy")
    assert found is not None
    status = (tmp_path / "x.npy").stat()
    assert found[:2] == (status.st_dev, status.st_ino)
    assert found[3] == {"data": ("float64", (3,), 128)}
