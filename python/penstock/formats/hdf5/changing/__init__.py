"""Changing an existing HDF5 file in place: ordered, journalled, proved before the file is touched."""
