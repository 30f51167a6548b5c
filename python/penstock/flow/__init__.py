"""A small flow model, to write fields of while it runs: a warm bubble that rises in a box of air, on host or GPU."""

from penstock._extras import left_out

try:
    from penstock.flow._model import FIELDS, HALO, FlowField, Model
except ImportError as failure:
    raise left_out("penstock.flow._flow", failure) from None

__all__ = ["FIELDS", "HALO", "FlowField", "Model"]
