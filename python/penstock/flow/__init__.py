"""A small flow model, to write fields of while it runs: a warm bubble that rises in a box of air, on host or GPU."""

from penstock.flow._model import FIELDS, HALO, FlowField, Model

__all__ = ["FIELDS", "HALO", "FlowField", "Model"]
