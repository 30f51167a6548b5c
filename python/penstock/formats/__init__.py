"""Scientific file formats as metadata: where the bytes of a dataset lie. The engine moves them."""
