"""A selection of a dataset becomes a plan of byte ranges, boxes and decoding, and the plan is carried out."""
