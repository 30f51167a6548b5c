"""Boundary-element systems as H-matrices that may be larger than memory: built, stored, multiplied, solved.

    import penstock as ps

    mesh = ps.hmatrix.shape("sphere", 5120)                       # or ps.hmatrix.read_mesh("dragon.ply")
    A = ps.hmatrix.assemble(mesh, eps=1e-5, store="sphere.hmat")  # or ps.hmatrix.open("sphere.hmat")
    y = A @ x
    charge = ps.hmatrix.solve(A, b, tol=1e-5, cache_bytes="1 GiB")
    print(charge.x, charge.relative_residual, ps.hmatrix.capacitance(mesh, charge.x))

The built-in problem is that of a conductor: the Laplace single layer with one unknown a triangle, collocation at
centroids with exact integrals (or Galerkin, by quadrature). A function of your own gives other entries. Products and
solves read the matrix from storage as far as it does not fit in `cache_bytes`; see docs/applications/hmatrix.md.
"""

from penstock._extras import left_out

try:
    from penstock.hmatrix._assemble import ENCODINGS, KERNELS, PLACES, assemble
    from penstock.hmatrix._matrix import HMatrix, info, open, verify
    from penstock.hmatrix._mesh import Mesh, MeshReport, capacitance, read_mesh, shape, shape_names
    from penstock.hmatrix._picture import WIDTHS, View, check_picture, picture
    from penstock.hmatrix._solve import METHODS, Solution, solve
except ImportError as failure:
    raise left_out("penstock.hmatrix._hmatrix", failure) from None

__all__ = [
    "ENCODINGS",
    "HMatrix",
    "KERNELS",
    "METHODS",
    "Mesh",
    "MeshReport",
    "PLACES",
    "Solution",
    "View",
    "WIDTHS",
    "assemble",
    "capacitance",
    "check_picture",
    "info",
    "open",
    "picture",
    "read_mesh",
    "shape",
    "shape_names",
    "solve",
    "verify",
]
