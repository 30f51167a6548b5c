"""Formats of one file without a library: NPY, raw, safetensors."""
