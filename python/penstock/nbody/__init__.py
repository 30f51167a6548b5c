"""A star cluster, to write snapshots and restarts of while it runs: bodies that pull each other, on host or GPU."""

from penstock._extras import left_out

try:
    from penstock.nbody._cluster import Cluster
except ImportError as failure:
    raise left_out("penstock.nbody._nbody", failure) from None

__all__ = ["Cluster"]
