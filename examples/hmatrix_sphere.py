"""The charge on a conducting sphere at 1 V, by finer and finer meshes, beside what is known exactly.

    python hmatrix_sphere.py [--finest 20480] [--picture sphere.png] [--dir .]

A sphere of radius R has the capacitance 4 pi eps0 R and an even charge. The error falls by four where the edges of
triangles are half as long: second order, for triangles are flat. The matrix of each mesh lies in a file meanwhile.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from pathlib import Path

import numpy as np

import penstock as ps

VACUUM = 8.8541878128e-12  # permittivity, F/m


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--finest", type=int, default=20480, help="triangles of the finest mesh")
    parser.add_argument("--picture", default="sphere.png")
    parser.add_argument("--dir", default=".", help="where the matrices lie meanwhile")
    options = parser.parse_args()
    if options.finest < 80:
        parser.error("--finest: use 80 or more")

    counts = [options.finest]
    while counts[0] >= 4 * 80 and len(counts) < 5:
        counts.insert(0, counts[0] // 4)
    print("triangles      C/(4 pi eps0)        error  order   stored   of doubles  sweeps  residual")
    before, solved = None, []
    with tempfile.TemporaryDirectory(dir=options.dir) as folder:
        for count in counts:
            sphere = ps.hmatrix.shape("sphere", count)
            store = Path(folder) / "sphere.hmat"
            with ps.hmatrix.assemble(sphere, store=store, eps=1e-6) as matrix:
                found = ps.hmatrix.solve(matrix, np.ones(sphere.unknowns), tol=1e-7)
                facts = matrix.facts
            radius = ps.hmatrix.capacitance(sphere, found.x)
            error, edge = radius - 1, math.sqrt(1 / sphere.unknowns)
            order = "" if before is None else f"{math.log(before[0] / error) / math.log(before[1] / edge):5.2f}"
            stored, smaller = facts["bytes_stored"] / 1e6, facts["bytes_stored"] / facts["bytes_fp64"]
            print(
                f"{sphere.unknowns:9d}  {radius:15.7f}m  {error:11.2e}  {order:>5}  {stored:5.1f} MB {smaller:11.3f}  "
                f"{found.sweeps:6d}   {found.relative_residual:.1e}"
            )
            before = (error, edge)
            solved.append((sphere, found.x, radius))
    sphere, charge, radius = solved[-1]
    print(f"capacitance {4 * math.pi * VACUUM * radius * 1e12:.3f} pF, exactly {4 * math.pi * VACUUM * 1e12:.3f} pF")
    label, title = "surface charge density at 1 V", "A conducting sphere"
    ps.hmatrix.picture(sphere, charge * VACUUM, options.picture, label=label, unit="C/m²", title=title, width=700)
    print(f"picture: {options.picture}")


if __name__ == "__main__":
    main()
