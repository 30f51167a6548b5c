"""Evidence of formats: the sums over transfers, and what no transfer can know.

Requested bytes are those of the selected elements; range bytes those that were read for them; host_decoded_bytes were
decoded by the host's cores or the format's library, gpu_decoded_bytes on the device, and neither is silent. What
must stay true: a number here is counted, not estimated.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING, cast

from penstock import _core
from penstock._api import Outcome
from penstock._evidence import distinct, path_name, plans, sum_by
from penstock._told import Evidence, FormatCounts, PathShare, evidence_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.formats.reading.decoders.decoding import DeviceDecoder
    from penstock.formats.reading.plan import Batch

_FOLDED = 64  # outcomes that are kept before they are summed
_NOTES = 100
_SMALL_FILE = "buffered, on the calling thread: a small new file"
KEPT = "host in an earlier read"  # among those who decoded: chunks that were kept


@dataclass
class Counts:
    """What one read or write of datasets did beside its transfers."""

    requested_bytes: int = 0  # of the selected elements
    range_bytes: int = 0  # of file ranges, gaps that were cheaper to read than to skip included
    ranges: int = 0
    batches: int = 0
    staged_bytes: int = 0  # through scratch on the device
    scratch_peak_bytes: int = 0  # of one batch
    filled_bytes: int = 0  # not stored in the file
    host_decoded_bytes: int = 0
    gpu_decoded_bytes: int = 0  # of whole chunks
    decoders: dict[str, int] = field(default_factory=dict)  # bytes by who decoded them
    host_encoded_bytes: int = 0  # of elements, before they were compressed
    encoders: dict[str, int] = field(default_factory=dict)  # those bytes by who encoded them

    def decoded_on_host(self, bytes: int, library: str) -> None:
        self.host_decoded_bytes += bytes
        self._add_decoder(f"host by {library}", bytes)

    def decoded_on_cores(self, bytes: int, decoder: str) -> None:
        self.host_decoded_bytes += bytes
        self._add_decoder(decoder, bytes)

    def took_kept(self, bytes: int) -> None:
        if bytes:
            self._add_decoder(KEPT, bytes)

    def encoded_on_cores(self, bytes: int, encoder: str) -> None:
        self.host_encoded_bytes += bytes
        self.encoders[encoder] = self.encoders.get(encoder, 0) + bytes

    def decoded_on_device(self, bytes: int, decoder: DeviceDecoder | str) -> None:
        self.gpu_decoded_bytes += bytes
        self._add_decoder(decoder if isinstance(decoder, str) else decoder.name, bytes)

    def _add_decoder(self, name: str, bytes: int) -> None:
        self.decoders[name] = self.decoders.get(name, 0) + bytes

    def take(self, batch: Batch) -> None:
        self.range_bytes += batch.bytes
        self.ranges += batch.ranges
        self.batches += 1
        self.staged_bytes += int(batch.staged[:, 3].sum())
        self.scratch_peak_bytes = max(self.scratch_peak_bytes, batch.scratch_bytes)

    def take_reads(self, tally: _core.SmallTally) -> None:
        """Those that no transfer made."""
        self.range_bytes += tally.bytes
        self.ranges += tally.operations
        self.batches += tally.reads
        self.staged_bytes += tally.staged_bytes
        self.scratch_peak_bytes = max(self.scratch_peak_bytes, tally.scratch_peak_bytes)

    def add(self, other: Counts) -> None:
        """Takes in what another read or write did."""
        mine, theirs = vars(self), vars(other)
        for name, value in theirs.items():
            if isinstance(value, int) and name != "scratch_peak_bytes":
                mine[name] += value
        self.scratch_peak_bytes = max(self.scratch_peak_bytes, other.scratch_peak_bytes)
        for name, bytes in other.decoders.items():
            self._add_decoder(name, bytes)
        for name, bytes in other.encoders.items():
            self.encoders[name] = self.encoders.get(name, 0) + bytes

    def plus(self, other: Counts) -> Counts:
        total = replace(self, decoders=dict(self.decoders), encoders=dict(self.encoders))
        total.add(other)
        return total


def outcome_of(
    raw: Sequence[_core.Outcome | Outcome], counts: Counts, seconds: float, notes: Sequence[str] = ()
) -> Outcome:
    """One outcome for the transfers of a job, and what it read without one. `notes`: what else the evidence should
    say."""
    parts = [one if isinstance(one, Outcome) else Outcome._of(one) for one in raw]
    bytes = sum(part.bytes for part in parts)
    evidence = parts[0].evidence if len(parts) == 1 else _merged(parts)
    evidence = evidence | {"notes": distinct([*evidence["notes"], *notes])[:_NOTES], "formats": dict(vars(counts))}
    return Outcome(bytes, seconds, False, path_name(parts), evidence)


def outcome_at_once(bytes: int, operations: int, seconds: float, plan: str = _SMALL_FILE) -> Outcome:
    """Of arrays of the host, which system calls wrote to new files."""
    share: PathShare = {
        "path": "buffered",
        "bytes": bytes,
        "operations": operations,
        "host_copies_bytes": 0,
        "from_pinned_mapping": False,
        "past_page_cache": False,
    }
    evidence: Evidence = {
        "path": "buffered",
        "paths": [share],
        "fallbacks": [],
        "notes": [],
        "pinned_peak_bytes": 0,
        "plan": f"write {bytes} bytes by {plan}",
        "residency_before": None,
        "residency_after": None,
        "process_io": None,
        "cufile": None,
        "cpu_user_s": 0.0,
        "cpu_system_s": 0.0,
        "reason": plan,
        "predicted_seconds": None,
        "formats": cast(FormatCounts, vars(Counts(bytes, range_bytes=bytes, ranges=operations, batches=1))),
    }
    return Outcome(bytes, seconds, False, "buffered", evidence)


def outcome_of_tally(tally: _core.SmallTally) -> Outcome | None:
    """One outcome for all small reads of a file; None where there were none."""
    if not tally.reads:
        return _kept_outcome(tally) if tally.kept_reads else None
    told = [evidence_of(sample.evidence_json) for sample in tally.samples]
    share = told[0]["paths"][0] | {
        "bytes": tally.bytes,
        "operations": tally.operations,
        "host_copies_bytes": tally.host_copies_bytes,
    }
    evidence = told[-1] | {
        "paths": [share],
        "plan": "\n".join(distinct(one["plan"] for one in told)),
        "formats": dict(vars(_counts_of(tally))),
    }
    return Outcome(tally.bytes, tally.seconds, False, "buffered", evidence)


def _counts_of(tally: _core.SmallTally) -> Counts:
    counts = Counts(
        tally.requested_bytes,
        range_bytes=tally.bytes,
        ranges=tally.operations,
        batches=tally.reads,
        staged_bytes=tally.staged_bytes,
        scratch_peak_bytes=tally.scratch_peak_bytes,
    )
    for decoder, bytes in tally.decoded.items():
        counts.decoded_on_cores(bytes, decoder)
    counts.took_kept(tally.kept_bytes)
    return counts


def _kept_outcome(tally: _core.SmallTally) -> Outcome:
    """Nothing was moved by a path."""
    evidence: Evidence = {"path": "none", "paths": [], "fallbacks": [], "notes": [], "pinned_peak_bytes": 0, "plan": ""}
    return Outcome(0, 0.0, False, "none", evidence | {"formats": dict(vars(_counts_of(tally)))})


def _merged(parts: list[Outcome]) -> Evidence:
    """Without the counters of the process: transfers overlap, so those cannot be summed."""
    evidence: Evidence = {
        "path": path_name(parts),
        "paths": sum_by(parts, "paths", ("path", "from_pinned_mapping", "past_page_cache")),
        "fallbacks": sum_by(parts, "fallbacks", ("wanted", "took", "cause")),
        "notes": distinct(note for part in parts for note in part.evidence["notes"])[:_NOTES],
        "pinned_peak_bytes": max((part.evidence["pinned_peak_bytes"] for part in parts), default=0),
        "plan": plans(parts),
    }
    evidence["paths"].sort(key=lambda share: -share["bytes"])
    return evidence


class Record:
    """Sums over all that was done with a file. What it holds does not grow with the number of reads."""

    def __init__(self, *others: Callable[[], Outcome | None]) -> None:
        """`others`: each the sum of what was not added; None: there was nothing."""
        self._parts: list[Outcome] = []
        self._others = others
        self._lock = Lock()  # of the parts: reads of several threads end at once

    def also(self, other: Callable[[], Outcome | None]) -> None:
        """One more of the others."""
        with self._lock:
            self._others += (other,)

    def add(self, outcome: Outcome) -> None:
        with self._lock:
            self._parts.append(outcome)
            if len(self._parts) >= _FOLDED:
                self._parts = [_sum(self._parts)]

    def evidence(self) -> Evidence:
        with self._lock:
            parts, others = list(self._parts), self._others
        sums = [other() for other in others]
        return _sum([*parts, *(one for one in sums if one is not None)]).evidence


def _sum(parts: list[Outcome]) -> Outcome:
    counts = Counts()
    for part in parts:
        counts = counts.plus(Counts(**part.evidence["formats"]))
    evidence = _merged(parts) | {"formats": dict(vars(counts))}
    evidence["plan"] = "\n".join(distinct(evidence["plan"].splitlines())[-_NOTES:])
    bytes, seconds = sum(part.bytes for part in parts), sum(part.seconds for part in parts)
    return Outcome(bytes, seconds, False, evidence["path"], evidence)
