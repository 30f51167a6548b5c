"""The choice of what decodes encoded chunks: a decoder on the device, the host's cores, or the format's library; why.

Pure choice, made chunk by chunk before anything moves. What must stay true: "gpu" never becomes the host silently, it
is an Error that says why; under "auto" on a GPU the evidence says why the host decoded.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from penstock import _core
from penstock._error import Error
from penstock.formats.model import ChunkTable, DatasetInfo, Recipe
from penstock.formats.reading.decoders.rates import ChunkWork, DecodeRates, Kind, Verdict, kind_of

CHOICES = ("auto", "host", "gpu")
STREAM_ALIGNMENT = 64  # bytes; where streams and decoded chunks begin in memory of the device


class Streams(NamedTuple):
    """Streams in memory of the device, and the places of what they decode to; none overlap."""

    codec: str  # as of model.Recipe
    memory: _core.Buffer
    offset: np.ndarray  # int64 [n], multiples of STREAM_ALIGNMENT
    bytes: np.ndarray  # int64 [n]
    to: np.ndarray  # int64 [n], in the same memory, multiples of STREAM_ALIGNMENT
    room: np.ndarray  # int64 [n], bytes of the chunks that they should become


class Decoded(NamedTuple):
    """What became of each stream."""

    bytes: np.ndarray  # int64 [n], decoded
    faults: dict[int, str]  # by number of the stream: what is wrong with it


class DeviceDecoder(Protocol):
    """Decodes many streams at a time in memory of one device."""

    name: str  # as evidence says it: "gpu by nvCOMP 6.0.0"

    def refusal(self, codec: str, chunk_bytes: int) -> str:
        """Why it cannot decode such chunks; empty: it can."""

    def decode(self, streams: Streams) -> Decoded:
        """Done on return. Writes nothing outside the places of decoded chunks. Raises Error when the device fails."""


class Choice(NamedTuple):
    """Rows of the table that the device decodes (bool [n], None: none), and why the host decodes the others. Of those,
    the rows that its cores decode by a pipeline; what is left is for the format's library."""

    on_device: np.ndarray | None = None
    note: str = ""
    on_cores: np.ndarray | None = None
    pipeline: _core.Pipeline | None = None
    kind: Kind | None = None  # of the chunks, where either could decode them


ON_HOST = Choice()


class Means(NamedTuple):
    """What can decode the chunks of a dataset; or why there is none."""

    device: DeviceDecoder | str
    cores: _core.Pipeline | str


def check_choice(decode: str) -> str:
    if decode not in CHOICES:
        raise ValueError(f"decode is {decode!r}, it must be one of {', '.join(CHOICES)}")
    return decode


@dataclass
class Wish:
    """What a call asks for, how many encoded chunks of all its datasets it reads, and what is known of such reads."""

    decode: str
    chunks: int
    rates: DecodeRates
    _verdicts: dict[Kind, Verdict] = field(default_factory=dict)

    def verdict(self, kind: Kind, by_cores: bool) -> Verdict:
        """One for all chunks of the call that are alike."""
        if kind not in self._verdicts:
            self._verdicts[kind] = self.rates.choose(ChunkWork(kind, self.chunks), by_cores)
        return self._verdicts[kind]


def choose(info: DatasetInfo, table: ChunkTable | None, wish: Wish, means: Means) -> Choice:
    """Chunks that are not on the device are the host's."""
    decode = wish.decode
    encoded = np.asarray(table.encoded, bool) if table is not None else np.zeros(0, bool)
    if table is None or decode == "host" or not encoded.any():
        return ON_HOST
    why = _refusal(info, means.device)
    if why:
        if decode == "gpu":
            raise _refused(info.name, why)
        return Choice(note=f"{info.name}: decoded on the host: {why}")
    other = encoded & (np.asarray(table.bytes) == 0)
    other |= False if table.host_only is None else encoded & table.host_only
    kind, note = None, ""
    if decode == "auto" and not other.all():
        assert isinstance(info.recipe, Recipe)  # else it is refused
        kind = kind_of(info.recipe.codec, info.chunk_bytes, np.asarray(table.bytes)[encoded & ~other])
        verdict = wish.verdict(kind, not isinstance(means.cores, str))
        note = f"{info.name}: decoded on the {'GPU' if verdict.side == 'device' else 'host'}: {verdict.why}"
        if verdict.side == "cores":
            return Choice(note=note, kind=kind)
    if not other.any():
        return Choice(encoded, note, kind=kind)
    why = f"{int(other.sum())} of {int(encoded.sum())} chunks did not go through all of the filters"
    if decode == "gpu":
        raise _refused(info.name, why)
    return Choice(encoded & ~other, f"{info.name}: decoded on the host in part: {why}")


def with_cores(info: DatasetInfo, table: ChunkTable, choice: Choice, pipeline: _core.Pipeline | str) -> Choice:
    """The choice with the rows that the cores decode. `pipeline`: of the dataset, or why this build has none."""
    if isinstance(pipeline, str):
        told = [choice.note, f"{info.name}: decoded by the format's library: {pipeline}" if pipeline else ""]
        return choice._replace(note="; ".join(filter(None, told)))
    rows = np.asarray(table.encoded, bool) & (np.asarray(table.bytes) > 0)
    rows &= True if table.skipped is None else np.asarray(table.skipped) >= 0
    rows &= True if choice.on_device is None else ~choice.on_device
    return choice._replace(on_cores=rows, pipeline=pipeline) if rows.any() else choice


def _refusal(info: DatasetInfo, decoder: DeviceDecoder | str) -> str:
    if not isinstance(info.recipe, Recipe):
        return info.recipe
    if isinstance(decoder, str):
        return decoder
    if info.edge_cut:
        return "its chunks are of different sizes"
    if info.chunk_bytes % info.recipe.shuffle_bytes:
        return f"chunks of {info.chunk_bytes} bytes were shuffled by elements of {info.recipe.shuffle_bytes}"
    return decoder.refusal(info.recipe.codec, info.chunk_bytes)


def _refused(name: str, why: str) -> Error:
    return Error(
        code="unsupported",
        operation=f"decode dataset {name!r} on the GPU",
        cause=why,
        advice='decode="auto" takes the host where it must, decode="host" always',
    )
