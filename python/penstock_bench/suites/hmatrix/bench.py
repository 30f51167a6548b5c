"""What all measurements of the suite `hmatrix` share."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock import Context, hmatrix
from penstock.calibration.workspace import Workspace

if TYPE_CHECKING:
    pass


@dataclass
class HMatrixBench:
    """What the cells share."""

    context: Context
    workspace: Workspace
    settings: dict[str, Any]
    mesh: hmatrix.Mesh
    files: dict[str, Path] = field(default_factory=dict)  # "fp64", and tiers by their tolerance
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

    def open(self, name: str, **options: Any) -> hmatrix.HMatrix:
        return hmatrix.open(self.files[name], context=self.context, **options)


def power(tolerance: float) -> str:
    """1e-4, as people write it."""
    return f"{tolerance:.0e}".replace("e-0", "e-")
