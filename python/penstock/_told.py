"""What evidence holds, for type checkers and readers: a dict at run time. docs/python.md says what each value means.

What must stay true: the keys are those that the core writes (src/context/evidence.cpp) and formats add; what is not
known is None, never 0.
"""

from __future__ import annotations

from typing import TypedDict


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
    predicted_seconds: float
    formats: FormatCounts
