"""Where the public C and C++ headers are, for kernels and programs of users."""

from __future__ import annotations

from pathlib import Path

from penstock import _core
from penstock._error import Error


def get_include() -> str:
    """The folder to give a compiler with -I: it holds `penstock.h` and `penstock/ondevice/stored_array.hpp`."""
    folder = Path(str(_core.__file__)).parent / "include"
    if not (folder / "penstock" / "ondevice" / "stored_array.hpp").is_file():
        raise Error(
            code="not_found",
            operation="find the headers",
            file=str(folder),
            cause="this installation has none",
            advice="install the package again: pip install --force-reinstall penstock",
        )
    return str(folder)
