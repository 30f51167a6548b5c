"""HDF5_DRIVER_CONFIG as `penstock vfd-path` takes it: what the driver or the first transfer would refuse is refused
before any program runs.

What must stay true: keys and values are those of apps/vfd/settings.cpp. A test compares both.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from penstock import Error, path_names
from penstock._text import guess
from penstock.cli import options

_UNITS = {"": 0, "KiB": 10, "MiB": 20, "GiB": 30}  # shifts
_MOST_BYTES = 1 << 40


class Key(NamedTuple):
    """What its value may be, for people, and what says why a value is none: nothing where it is one."""

    values: str
    refusal: Callable[[str], str]


def check(text: str) -> None:
    """Raises Error for a text that is no configuration."""
    for word in filter(None, text.split(",")):
        key, equals, value = word.partition("=")
        if not equals or key not in KEYS:
            cause = f"there is no key '{key}'" if equals else f"'{word}' has no ="
            near = "" if key in KEYS else guess(key, KEYS)
            raise _refused(cause + near, f"keys are {', '.join(KEYS)}, with commas between")
        cause = KEYS[key].refusal(value) if value else "has no value"
        if cause:
            raise _refused(f"{key}={value} {cause}", f"{key}= takes {KEYS[key].values}")


def listing() -> str:
    """Keys and their values, for people."""
    return "; ".join(f"{name}: {key.values}" for name, key in KEYS.items())


def _refused(cause: str, advice: str) -> Error:
    return options.refusal("vfd-path", f"--config: {cause}", advice)


def _one_of(*names: str) -> Key:
    def refusal(value: str) -> str:
        return "" if value in names else f"is not known{guess(value, names)}"

    return Key(f"{', '.join(names[:-1])} or {names[-1]}", refusal)


def _device(value: str) -> str:
    return "" if options.DEVICE.fullmatch(value) else f"names no device{guess(value, ('auto', 'host', 'cuda:0'))}"


def _file(value: str) -> str:
    """A relative name is of the folder that the program runs in, which need not be there yet."""
    if value.endswith("/") or Path(value).is_dir():
        return "is a folder"
    return "" if not Path(value).is_absolute() or Path(value).parent.is_dir() else "lies in no folder that is there"


def _size(value: str) -> str:
    found = re.fullmatch(rf"([0-9]+)({'|'.join(_UNITS)})", value)
    fits = found is not None and 0 < int(found[1].lstrip("0")[:20] or "0") << _UNITS[found[2]] <= _MOST_BYTES
    return "" if fits else "is no size from 1 byte to 1024GiB"


KEYS = {
    "evidence": Key("stderr or a file", lambda value: "" if value == "stderr" else _file(value)),
    "errors": Key("hdf5, stderr or a file", lambda value: "" if value in ("hdf5", "stderr") else _file(value)),
    "memory": _one_of("auto", "host", "device"),
    "device": Key("auto, host or cuda:N", _device),
    "path": _one_of(*path_names()),
    "large": Key("a size such as 4MiB", _size),
    "chunk_cache": _one_of("on", "off"),
}
