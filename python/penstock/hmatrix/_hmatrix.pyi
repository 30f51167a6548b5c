"""Types of the compiled module of the solver. Private: use the names of the package penstock.hmatrix."""

from typing import Any

from penstock._core import Context, FileName

# Meshes are (vertices, triangles, values or None): (n, 3) float64, (m, 3) int64, (m,) float64, all contiguous.

def read_mesh(path: FileName, unit_metres: float, /) -> tuple[Any, Any, Any]: ...
def shape_names() -> list[str]: ...
def shape(name: str, triangles: int, /) -> tuple[Any, Any, Any]: ...
def inspect(vertices: Any, triangles: Any, /) -> dict[str, Any]:
    """Counts by name, and "text": what there is to say, a sentence a line."""

def clean(
    vertices: Any, triangles: Any, values: Any, refuse_duplicates: bool, /
) -> tuple[Any, Any, Any, dict[str, Any]]:
    """The mesh and what inspect() says of the one given."""

def write_surface(path: FileName, vertices: Any, triangles: Any, numbers: dict[str, Any], /) -> None: ...
def areas(vertices: Any, triangles: Any, /) -> Any: ...
def assemble_mesh(
    context: Context, path: FileName, vertices: Any, triangles: Any, how: dict[str, Any]
) -> dict[str, Any]:
    """`how`: AssembleOptions of penstock.hmatrix, and eps, about (JSON text), progress, galerkin, workers."""

def assemble_entries(
    context: Context, path: FileName, points: Any, entries: Any, how: dict[str, Any]
) -> dict[str, Any]: ...
def info(context: Context, path: FileName) -> dict[str, Any]:
    """HMatrixSystem.head, and about, largest_batch_bytes, tier_bytes."""

class HMatrixSystem:
    """A matrix file open for products; `how`: OpenOptions of penstock.hmatrix, sizes as numbers."""

    def __init__(self, context: Context, path: FileName, how: dict[str, Any], /) -> None: ...
    @property
    def head(self) -> dict[str, Any]: ...
    @property
    def about(self) -> str: ...
    @property
    def counts(self) -> dict[str, Any]: ...
    def multiply(self, x: Any, accuracy: float, /) -> Any:
        """x: (columns, n) float64, contiguous."""

    def product_seconds(self, products: int, accuracy: float, /) -> float: ...
    def solve(self, context: Context, b: Any, x0: Any, how: dict[str, Any], /) -> tuple[Any, dict[str, Any]]:
        """b, x0: (columns, n). `how`: SolveOptions, and method, tol, progress, checkpoint, checkpoint_sweeps."""
