"""Faults at each system call that Python code makes to change a file, and interrupts between its lines.

`Calls` counts the calls and makes one of them, or all from one on, fail as storage fails. What must stay true: a call
that fails has done nothing, unless the fault says that it did a part.
"""

from __future__ import annotations

import dis
import errno
import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

CALLS = ("open", "pwrite", "pwritev", "fsync", "fdatasync", "ftruncate", "rename", "replace", "unlink", "mkdir")


class Calls:
    """`fault(make, name)` happens in place of call number `at` (from 0); with `lasting`, of each later one too."""

    def __init__(self, at: int, fault: Callable[[Callable[[], Any], str, tuple[Any, ...]], Any], lasting: bool) -> None:
        self.count = 0
        self._at, self._fault, self._lasting = at, fault, lasting

    @contextmanager
    def armed(self) -> Iterator[Calls]:
        with pytest.MonkeyPatch.context() as patch:
            for name in CALLS:
                patch.setattr(os, name, self._wrapped(name, getattr(os, name)))
            yield self

    @property
    def struck(self) -> bool:
        return self.count > self._at

    def _wrapped(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            number, self.count = self.count, self.count + 1
            if number == self._at or (self._lasting and number > self._at):
                return self._fault(lambda *other: real(*(other or args), **more), name, args)
            return real(*args, **more)

        return call


def eio(make: Callable[..., Any], name: str, args: tuple[Any, ...]) -> Any:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def no_space(make: Callable[..., Any], name: str, args: tuple[Any, ...]) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def half_then_eio(make: Callable[..., Any], name: str, args: tuple[Any, ...]) -> Any:
    """A part reaches the file, and then the call fails."""
    if name == "pwrite":
        make(args[0], bytes(args[1])[: len(args[1]) // 2], args[2])
    return eio(make, name, args)


def short(make: Callable[..., Any], name: str, args: tuple[Any, ...]) -> Any:
    """No fault: the system may always write less."""
    if name == "pwrite":
        return make(args[0], bytes(args[1])[: (len(args[1]) + 1) // 2], args[2])
    return make()


def interrupt_before(make: Callable[..., Any], name: str, args: tuple[Any, ...]) -> Any:
    raise KeyboardInterrupt


def interrupt_after(make: Callable[..., Any], name: str, args: tuple[Any, ...]) -> Any:
    make()
    raise KeyboardInterrupt


FAULTS = {
    "eio": (eio, False),
    "eio from there on": (eio, True),
    "no space": (no_space, False),
    "no space from there on": (no_space, True),
    "half, then eio": (half_then_eio, False),
    "short counts": (short, True),
    "interrupt before": (interrupt_before, False),
    "interrupts from there on": (interrupt_before, True),
    "interrupt after": (interrupt_after, False),
}


class InterruptAt:
    """KeyboardInterrupt before line number `at` of those that run in the named modules."""

    def __init__(self, at: int, modules: tuple[str, ...]) -> None:
        self.count = 0
        self._at, self._modules = at, modules

    def __enter__(self) -> InterruptAt:
        self._before = sys.gettrace()
        gc.collect()
        gc.disable()  # Python drops an exception in __del__, so garbage of before must not take the interrupt
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)
        gc.enable()

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_globals.get("__name__") not in self._modules:
            return None
        if event == "line":
            self.count += 1
            if self.count == self._at + 1:
                raise KeyboardInterrupt
        return self._trace


class InterruptAfterCall:
    """KeyboardInterrupt where the interpreter looks for signals: after call number `at`, step of a loop or beginning of
    a function, of those in the named modules. What a call gave is lost then, as with a signal."""

    _PLACES = frozenset(dis.opmap.get(name) for name in ("CALL", "CALL_FUNCTION_EX", "JUMP_BACKWARD", "RESUME"))

    _SPARED = ("__del__", "descriptor")  # Python drops it in the one; h5py calls the other, and makes it another error

    def __init__(self, at: int, modules: tuple[str, ...]) -> None:
        self.count, self.where = 0, ""
        self._at, self._modules = at, modules
        self._last: dict[int, int] = {}  # what each frame did last

    def __enter__(self) -> InterruptAfterCall:
        gc.collect()
        gc.disable()  # as above
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        gc.enable()
        self._last.clear()

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if frame.f_globals.get("__name__") not in self._modules or code.co_name in self._SPARED:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "return":
            self._last.pop(id(frame), None)
        if event == "opcode":
            before, self._last[id(frame)] = self._last.get(id(frame)), code.co_code[frame.f_lasti]
            if before in self._PLACES:
                self._strike(frame)
        return self._trace

    def _strike(self, frame: FrameType) -> None:
        self.count += 1
        if self.count == self._at + 1:
            self.where = f"{frame.f_globals['__name__']}:{frame.f_lineno}"
            raise KeyboardInterrupt
