"""What evidence holds, for type checkers and readers: a dict at run time. docs/python.md says what each value means.

What must stay true: the keys are those that the core writes (src/context/evidence.cpp) and formats add; what is not
known is None, never 0.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple, TypedDict

from penstock import _core


class PathShare(TypedDict):
    """What one path moved."""

    path: str
    bytes: int
    operations: int
    host_copies_bytes: int
    from_pinned_mapping: bool
    past_page_cache: bool | None


class Fallback(TypedDict):
    """Bytes that went another way than was asked for."""

    wanted: str
    took: str
    bytes: int
    cause: str


class Residency(TypedDict):
    """How much of a range was in the page cache."""

    pages: int
    sampled_pages: int
    resident_pages: int
    dirty_pages: int | None
    resident_fraction: float
    source: str


class FormatCounts(TypedDict):
    """What reads and writes of datasets did beside their transfers."""

    requested_bytes: int
    range_bytes: int
    ranges: int
    batches: int
    staged_bytes: int
    scratch_peak_bytes: int
    filled_bytes: int
    host_decoded_bytes: int
    gpu_decoded_bytes: int
    decoders: dict[str, int]
    host_encoded_bytes: int
    encoders: dict[str, int]


class Evidence(TypedDict):
    """How bytes went.

    That of one transfer has all but `formats`. A sum over several (DataFile.evidence(), Pending.evidence) has the first
    six, for what the process counts cannot be summed, and `formats`, which is there wherever datasets were moved.
    """

    path: str
    paths: list[PathShare]
    fallbacks: list[Fallback]
    notes: list[str]
    pinned_peak_bytes: int
    plan: str
    residency_before: Residency | None
    residency_after: Residency | None
    process_io: dict[str, int] | None
    cufile: dict[str, int | str] | None
    cpu_user_s: float
    cpu_system_s: float
    reason: str
    predicted_seconds: float | None
    formats: FormatCounts


def evidence_of(text: str) -> Evidence:
    """What the core wrote. Its 0 stands for a prediction that no profile of the machine makes."""
    found: Evidence = json.loads(text)
    found["predicted_seconds"] = found["predicted_seconds"] or None
    return found


class _Said(NamedTuple):
    bytes: int
    seconds: float
    reached_end: bool
    path: str
    evidence: Evidence


class Outcome:
    """The end of a transfer that did what was asked, or met the end of the file first (then `reached_end`). It does not
    change; two are equal that say the same."""

    __slots__ = ("_told",)

    def __init__(self, bytes: int, seconds: float, reached_end: bool, path: str, evidence: Evidence) -> None:
        _set_told(self, _Said(bytes, seconds, reached_end, path, evidence))

    @classmethod
    def _of(cls, native: _core.SmallRead | _core.Outcome) -> Outcome:
        """That says what the core knows: to ask it for all of that takes longer than a small read."""
        made = _new(cls)
        _set_told(made, native)
        return made

    @property
    def bytes(self) -> int:
        """How many arrived, or were written."""
        return self._told.bytes

    @property
    def seconds(self) -> float:
        """From the call to the end."""
        return self._told.seconds

    @property
    def reached_end(self) -> bool:
        """Whether the file ended before the memory was full."""
        return self._told.reached_end

    @property
    def path(self) -> str:
        """The path that moved all bytes, "mixed", or "none"."""
        return self._told.path

    @property
    def evidence(self) -> Evidence:
        """How the bytes went, and what is known of that."""
        told = self._told
        if not isinstance(told, _Said):
            evidence = evidence_of(told.evidence_json)
            _set_told(self, told := _Said(told.bytes, told.seconds, told.reached_end, told.path, evidence))
        return told.evidence

    @property
    def bytes_per_second(self) -> float:
        """Bytes by seconds; 0 where no time passed."""
        return self.bytes / self.seconds if self.seconds > 0 else 0.0

    def _values(self) -> tuple[Any, ...]:
        return self.bytes, self.seconds, self.reached_end, self.path, self.evidence

    def __reduce__(self) -> tuple[Any, ...]:
        return Outcome, self._values()

    def __eq__(self, other: object) -> bool:
        return self._values() == other._values() if isinstance(other, Outcome) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._values()[:4])

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"cannot set {name!r}: an Outcome does not change")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"cannot delete {name!r}: an Outcome does not change")

    def __repr__(self) -> str:
        names = ("bytes", "seconds", "reached_end", "path", "evidence")
        values = zip(names, self._values(), strict=True)
        return f"Outcome({', '.join(f'{name}={value!r}' for name, value in values)})"


_new, _set_told = object.__new__, Outcome.__dict__["_told"].__set__
