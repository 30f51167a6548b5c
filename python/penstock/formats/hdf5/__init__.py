"""HDF5: h5py reads the metadata, the mover the bytes."""
