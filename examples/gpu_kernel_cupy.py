"""Your own kernel on an array in a file: CuPy compiles it, and its threads read elements as if they were in memory.

    python gpu_kernel_cupy.py [--megabytes 256] [--device cuda:0]

Needs a GPU and CuPy. The kernel finds the sum of random elements of a file four times larger than the cache.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import penstock as ps

SOURCE = r"""
#include <penstock/ondevice/stored_array.hpp>

// Blocks of 128 threads, eight at once: a miss would take every register there is, and few warps would be at work.
extern "C" __global__ void __launch_bounds__(128, 8)
add_up(const penstock::ondevice::StoredRef* ref, const unsigned long long* wanted, unsigned long long count,
       double* sum) {
    const penstock::ondevice::StoredArray<float> x(*ref);
    double mine = 0;
    for (unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        float value = 0;
        if (x.load(wanted[i], value) != penstock::ondevice::Status::ok) value = nanf("");
        mine += value;  // or: mine += x[wanted[i]], and rows.check() afterwards
    }
    atomicAdd(sum, mine);
}
"""


def need_cupy() -> Any:
    try:
        import cupy

        if cupy.cuda.runtime.getDeviceCount() == 0:
            raise RuntimeError("there is none")
    except ImportError:
        raise SystemExit("this example needs CuPy: pip install cupy-cuda12x, or cupy-cuda13x") from None
    except Exception as error:  # CuPy has several for a machine without a GPU
        raise SystemExit(f"this example needs an NVIDIA GPU: {error}") from None
    return cupy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=256)
    parser.add_argument("--elements", type=int, default=2_000_000, help="to add up")
    parser.add_argument("--device", default="cuda:0")
    options = parser.parse_args()
    cupy = need_cupy()
    values = np.random.default_rng(1).integers(0, 1000, options.megabytes << 18).astype("f4")
    wanted = np.random.default_rng(2).integers(0, values.size, options.elements)
    module = cupy.RawModule(code=SOURCE, options=("-std=c++17", f"-I{ps.get_include()}"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "values.bin"
        values.tofile(path)
        with ps.gpu.open(path, "float32", device=options.device, cache_bytes=values.nbytes // 4) as x:
            found, numbers = cupy.zeros(1), cupy.asarray(wanted, dtype="uint64")
            began = time.perf_counter()
            module.get_function("add_up")((1056,), (128,), (np.uint64(x.ref), numbers, np.uint64(wanted.size), found))
            total = float(found[0])  # waits for the kernel
            seconds = time.perf_counter() - began
            print(f"{wanted.size} elements of {x.size} in {seconds:.3f} s: {wanted.size / seconds / 1e6:.2f} M/s")
            x.check()
            if total != float(values[wanted].sum(dtype="f8")):
                raise SystemExit("the sum is wrong")
            stats = x.stats()
            print(f"the sum is right; {stats['hits']} hits, {stats['misses']} misses")


if __name__ == "__main__":
    main()
