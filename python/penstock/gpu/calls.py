"""Calls of kernels to the host: Python functions and functions of shared objects, by number or name, and files.

    with ps.gpu.Calls() as calls:
        trigger = calls.register(lambda argument, value: print("step", value), "step ended")
        kernel(grid, block, (calls.ref, trigger, ...))  # penstock/ondevice/calls.hpp

Without a GPU, host code that includes the same header calls it by the same address. See docs/gpu.md.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any

from penstock import _core
from penstock._api import Context, FileName
from penstock._error import Error
from penstock._files.file_name import file_name
from penstock._shared import shared_context
from penstock._sizes import byte_count

# What a kernel calls: gets the bytes of the argument and the number beside it.
HostFunction = Callable[[bytes, int], Any]


class Calls:
    """What answers calls of kernels. As a context manager: closes. Close it when the kernels have ended."""

    def __init__(  # noqa: PLR0913 - one keyword a choice
        self,
        *,
        device: str = "auto",
        context: Context | None = None,
        threads: int = 2,
        slots: int = 256,
        slot_bytes: int | str = 8192,
        files: int = 1024,
        timeout: float | None = 10.0,
    ) -> None:
        self._context = context or shared_context(device)
        self._raw = _core.device_calls(
            self._context._raw,
            threads=threads,
            slots=slots,
            slot_bytes=byte_count("slot_bytes", slot_bytes),
            files=files,
            timeout=timeout,
        )
        self._end = weakref.finalize(self, self._raw.close)  # before the interpreter ends: its threads need that

    @property
    def ref(self) -> int:
        """Address of the `penstock::ondevice::CallsRef` in device memory, for your own kernels."""
        return self._raw.ref()

    def register(self, function: HostFunction, name: str | None = None) -> int:
        """Lets kernels call `function(argument, value)`, and returns its number. The function returns None, an int,
        bytes, or both as a tuple. Kernels find it by its name, or `name`. It must not wait for its caller."""
        if not callable(function):
            raise TypeError(f"{function!r} cannot be called")
        return self._raw.add(getattr(function, "__name__", "") if name is None else name, function)

    def install(self, library: FileName) -> None:
        """Lets kernels call the functions of a shared object by name: those of penstock/host_function.h."""
        self._raw.install(file_name(library, "install functions"))

    def number(self, name: str) -> int:
        """The number of a function that was registered, or that an installed library has."""
        return self._raw.number(name)

    def errors(self) -> list[tuple[str, str]]:
        """(function, what it raised) of the first 64 calls that failed. After close, too."""
        return self._raw.errors()

    def stats(self) -> dict[str, int]:
        """How many calls were taken, and how many functions failed. After close, too."""
        return self._raw.statistics()

    def close(self) -> None:
        """Ends the threads, when the functions that run have returned; Error if a function raised. A second call raises
        nothing. Kernels must have ended."""
        if self._end.alive:
            self._end()
            self._raise_first()

    def _raise_first(self) -> None:
        errors = self.errors()
        if not errors:
            return
        function, text = errors[0]
        what = text.strip().rpartition("\n")[2]  # of a traceback
        more = self.stats()["failures"] - 1
        raise Error(
            code="internal",
            operation=f"call '{function}' from a kernel",
            cause=what if more == 0 else f"{what} (and {more} more calls failed)",
            advice="errors() has the first 64",
        )

    def __enter__(self) -> Calls:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self._end()
