"""Ranks of mpi4py that write a history together: history.py NAME FORMAT COMPRESSION STEPS COLUMNS ENDS [HOW].

ENDS are the rows at which the boxes of the ranks end, as 4,8,12. Rank 0 says after each step how many are published;
STEPS 0: for ever. HOW: "full", the last rank cannot make its files larger from step 3 on; "differs", it has another
variable; or "durable". Each rank says its rank and what it gets as an error."""

import os
import resource
import signal
import sys

import numpy as np
from mpi4py import MPI

import penstock

comm = MPI.COMM_WORLD
name, form, compression = sys.argv[1:4]
steps, columns = int(sys.argv[4]), int(sys.argv[5])
ends = [int(one) for one in sys.argv[6].split(",")]
how = sys.argv[7] if len(sys.argv) > 7 else ""
start, end = ends[comm.rank - 1] if comm.rank else 0, ends[comm.rank]
y, x = np.ogrid[start:end, :columns]
is_last = comm.rank == comm.size - 1


def write() -> None:
    options = {"format": form, "compression": compression, "durable": how == "durable"}
    with penstock.History(name, device="host", comm=comm, encode_threads=1, **options) as history:
        box = {"shape": (end - start, columns), "global_shape": (ends[-1], columns), "start": (start, 0)}
        history.define("T", ("y", "x"), **box)
        history.define("m", ("y", "x"), dtype="f8", source_dtype="f4", statistic="mean", keep_bits=40, **box)
        history.define("level", ("z",), shape=[3])
        if how == "differs" and is_last:
            history.define("more", ("z",), shape=[3])
        step = 0
        while step < steps or steps == 0:
            step += 1
            if how == "full" and step == 3 and is_last:
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
            field = (1000 * (step % 1000) + 100 * y + x % 97).astype("f4")
            for variable in ("T", "m", "m"):
                history.put(variable, field)
            history.put("level", np.array([step, 1, 2], "f4"))
            history.end_step(10.0 * step)
            if comm.rank == 0:
                print(history.facts().steps_published, flush=True)


try:
    write()
except penstock.Error as error:
    os.write(2, f"rank {comm.rank} has: {error}\n".encode())
    comm.Barrier()  # before "python -m mpi4py" ends the ranks that have not said it yet
    sys.exit(1)
