"""netCDF-4: HDF5 files with dimensions."""
