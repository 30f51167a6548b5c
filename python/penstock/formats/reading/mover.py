"""Mover: what executing plans needs of one open file: a context, its files, scratch on the device, and decoders.

What must stay true: scratch that is kept between batches is bounded (what two batches need).
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from penstock import _core
from penstock._api import Context
from penstock._error import Error
from penstock._files.open_files import OpenFiles
from penstock.formats.model import DatasetInfo, Filter, HostDecoder
from penstock.formats.reading import plan
from penstock.formats.reading.decoders import nvcomp
from penstock.formats.reading.decoders.decoding import DeviceDecoder
from penstock.formats.reading.decoders.rates import DecodeRates
from penstock.formats.reading.kept import KeptChunks

_SCRATCH_UNIT = 1 << 20
_KINDS = ("device", "pinned")  # of scratch
_PIPELINES = 64  # kept
_DECODED_SHARE = 32  # of the device's memory, in one batch; with streams and turned chunks it takes some times that


@dataclass
class Mover:
    """What executing needs: a context, its open files, scratch, and decoders: the format's, and one of the device.

    `library`: who decodes on the host, as evidence says it. `name`: of the file, for errors. `decoder`: of the device,
    instead of nvCOMP; a text: why there is none.
    """

    context: Context
    decode: HostDecoder
    library: str = "the format's library"
    name: str = ""
    decoder: DeviceDecoder | str | None = None
    kept: KeptChunks = field(default_factory=KeptChunks)
    files: OpenFiles = field(init=False)
    emulated: bool = field(init=False)
    device: str = field(init=False)
    _scratch: list[_core.Buffer] = field(default_factory=list)
    _pipelines: OrderedDict[Any, _core.Pipeline | str] = field(default_factory=OrderedDict)
    _encoders: OrderedDict[Any, _core.Encoder] = field(default_factory=OrderedDict)
    _is_opened: bool = False  # the decoder: by device_decoder()
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.device, self.emulated = self.context._place
        self.files = OpenFiles(self.raw)

    @property
    def rates(self) -> DecodeRates:
        """All files of the context share them."""
        kept: dict[type, DecodeRates] = self.context._kept
        return kept.get(DecodeRates) or kept.setdefault(DecodeRates, DecodeRates(len(os.sched_getaffinity(0))))

    @property
    def raw(self) -> _core.Context:
        return self.context._raw

    @property
    def is_given_decoder(self) -> bool:
        return self.decoder is not None and not self._is_opened

    def device_decoder(self) -> DeviceDecoder | str:
        """Opened when it is first asked for; or why there is none."""
        with self._lock:
            if self.decoder is None:
                self._is_opened = True
                self.decoder = "the device is emulated on the host" if self.emulated else nvcomp.opened(self.raw)
            return self.decoder

    @property
    def decoded_bytes(self) -> int:
        """That one batch may decode to on this device."""
        return min(plan.DECODED_BYTES, int(self.raw.device_info["total_bytes"]) // _DECODED_SHARE)

    def pipeline(self, info: DatasetInfo) -> _core.Pipeline | str:
        """What undoes the filters of its chunks on the host's cores; or why this build cannot, empty where only the
        format's library can."""
        if isinstance(info.pipeline, str) or info.edge_cut:
            return ""
        key = (info.pipeline, info.chunk_bytes)
        with self._lock:
            if key not in self._pipelines:
                try:
                    self._pipelines[key] = _core.make_pipeline(info.pipeline, info.chunk_bytes)
                except Error as error:
                    self._pipelines[key] = error.cause
                while len(self._pipelines) > _PIPELINES:
                    self._pipelines.popitem(last=False)
            return self._pipelines[key]

    def encoder(self, filters: tuple[Filter, ...], chunk_bytes: int) -> _core.Encoder:
        """What applies the filters on the host's cores."""
        key = (filters, chunk_bytes)
        with self._lock:
            if key not in self._encoders:
                self._encoders[key] = _core.make_encoder(filters, chunk_bytes)
            while len(self._encoders) > _PIPELINES:
                self._encoders.popitem(last=False)
            return self._encoders[key]

    def take_scratch(self, bytes: int, kind: str = "device") -> _core.Buffer:
        with self._lock:
            fitting = [buffer for buffer in self._scratch if buffer.bytes >= bytes and buffer.kind == kind]
            if fitting:
                least = min(fitting, key=lambda one: one.bytes)
                self._scratch = [one for one in self._scratch if one is not least]
                return least
        return _core.allocate(self.raw, -(-bytes // _SCRATCH_UNIT) * _SCRATCH_UNIT, kind, "none")

    def give_back(self, buffer: _core.Buffer) -> None:
        """Kept for the next batch, the larger ones of a kind, up to what two batches need."""
        with self._lock:
            kept = sorted([*self._scratch, buffer], key=lambda one: -one.bytes)
            kept = [one for one in kept if one.bytes <= 2 * plan.SCRATCH_BYTES]
            self._scratch = [one for kind in _KINDS for one in [each for each in kept if each.kind == kind][:2]]

    def close(self) -> None:
        self.kept.close()
        with self._lock:
            self._scratch.clear()
        self.files.close()

    def abandon(self) -> None:
        self.kept.close()
        with self._lock:
            self._scratch.clear()
        self.files.forget()


class uploaded:  # noqa: N801 - reads as a function
    """Host bytes where the device can read them: on the device, or where they are when the device is emulated."""

    def __init__(self, mover: Mover, plain: Any, bytes: int) -> None:
        self._mover, self._plain, self._bytes = mover, plain, bytes
        self._scratch: _core.Buffer | None = None

    def __enter__(self) -> Any:
        if self._mover.emulated:
            return self._plain
        self._scratch = self._mover.take_scratch(self._bytes)
        self._mover.raw.copy_to_device(self._scratch.slice(0, self._bytes), self._plain)
        return self._scratch

    def __exit__(self, *_: object) -> None:
        if self._scratch is not None:
            self._mover.give_back(self._scratch)
