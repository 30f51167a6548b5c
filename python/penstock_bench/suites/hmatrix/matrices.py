"""The matrices that the cells of the suite `hmatrix` solve with, as files of the workspace."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import penstock as ps  # brings hmatrix when it is named: a build may leave it out, and every command knows this suite


@dataclass
class Matrices:
    """One mesh's, stored as doubles, which are "fp64", and in tiers, by their tolerance."""

    mesh: ps.hmatrix.Mesh
    files: dict[str, Path] = field(default_factory=dict)
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    write_s: dict[str, float] = field(default_factory=dict)  # of storing each, once
    reference: Any = None  # a product of the doubles

    @property
    def fp64_bytes(self) -> int:
        return int(self.facts["fp64"]["bytes_fp64"])

    def cache_bytes(self, ratio: float) -> int:
        return int(ratio * self.fp64_bytes)

    def ones(self) -> Any:
        import numpy as np

        return np.ones(self.mesh.unknowns)

    def open(self, context: ps.Context, name: str, **options: Any) -> ps.hmatrix.HMatrix:
        return ps.hmatrix.open(self.files[name], context=context, **options)


def power(tolerance: float) -> str:
    """1e-4, as people write it."""
    return f"{tolerance:.0e}".replace("e-0", "e-")
