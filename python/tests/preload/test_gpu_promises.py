"""What is promised of memory of a GPU, and not kept, is told by programs/preload_gpu.py."""

from __future__ import annotations

import preload_gpu as gpu
import pytest


def rounds(*rates: float, next_ms: float = 1.0, wrong: int = 0) -> list[gpu.Round]:
    return [gpu.Round(1 << 20, rate, next_ms, 1.0, wrong, "-") for rate in rates]


@pytest.mark.parametrize(
    ("how", "found", "broken"),
    [
        ("read", rounds(25.0, 35.0, 36.0), []),
        ("fread", rounds(24.9, 34.9, 36.0), ["the first request 24.9", "later requests 34.9"]),
        ("read", rounds(25.0, 35.0, 35.0, next_ms=1.2), ["the next kernel took 1.20"]),
        ("stream", rounds(20.0, 30.0, 30.0), []),
        ("sequential", rounds(20.0, 31.0, 29.9), ["later READ statements 29.9"]),
        ("write", rounds(0.1, 0.9, 0.9), []),
        ("fwrite", rounds(9.0, 0.8, 0.8), ["writes 0.8 GB/s, promised 0.9 of the engine's 1.0"]),
        ("read", rounds(50.0, 50.0, wrong=1), ["bytes are missing or wrong"]),
        ("write", [], ["bytes are missing or wrong"]),
    ],
)
def test_a_promise_that_is_not_kept_is_told(how: str, found: list[gpu.Round], broken: list[str]) -> None:
    told = gpu.judged(how, found, 1, 1.0)
    assert len(told) == len(broken) and all(one.startswith(part) for one, part in zip(told, broken, strict=True)), told
    fewer = [*found[:-1], gpu.Round(1, 50.0, 1.0, 1.0, 0, "-")]
    assert gpu.judged(how, fewer, 1, 1.0) == ["bytes are missing or wrong"]
