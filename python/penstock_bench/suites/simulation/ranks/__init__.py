"""One file of all ranks: a history, a snapshot, and a history of many small variables, whose file is to be laid out.

By Penstock, and by parallel HDF5 with independent and with collective calls: the same layout, the same values. The
programs are in `programs`, built on the spot by mpicc and h5pcc.
"""
