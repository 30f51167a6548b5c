// The makers of stages: one for each filter that a Pipeline can undo. Each takes the values that the writer left.
//
// A maker of a filter that needs a library throws Error{unsupported} with the library's name in a build without it.
#pragma once

#include "data/decode/stage.hpp"

namespace penstock::data {

StagePtr make_shuffle(const Values& values);     // value 0: bytes of an element
StagePtr make_fletcher32(const Values& values);  // HDF5's: 4 bytes follow the data
StagePtr make_deflate(const Values& values);     // HDF5's: one zlib stream; what follows it does not count
StagePtr make_zlib(const Values& values);        // zlib streams, one after the other
StagePtr make_gzip(const Values& values);        // gzip members, one after the other

StagePtr make_zstd(const Values& values);        // frames, one after the other
StagePtr make_hdf5_lz4(const Values& values);    // in blocks, as HDF5 frames them
StagePtr make_sized_lz4(const Values& values);   // one block behind its size, as numcodecs frames it
StagePtr make_bz2(const Values& values);         // one stream
StagePtr make_lzf(const Values& values);         // h5py's
StagePtr make_bitshuffle(const Values& values);  // HDF5's filter 32008, with lz4 or zstd inside or without
StagePtr make_blosc(const Values& values);       // a buffer of blosc 1
StagePtr make_blosc2(const Values& values);      // HDF5's filter 32026: a frame of blosc 2 with one chunk
StagePtr make_crc32c(const Values& values);      // Zarr's: 4 bytes follow the data
// numcodecs': 4 bytes before the data where value 0 is not 0, else behind them
StagePtr make_adler32(const Values& values);
StagePtr make_crc32(const Values& values);
// numcodecs': bytes of a number, 1 for big-endian, 1 for floating point
StagePtr make_delta(const Values& values);

StagePtr make_scale_offset(const Values& values);  // HDF5's
StagePtr make_nbit(const Values& values);          // HDF5's
StagePtr make_szip(const Values& values);          // HDF5's
// No filter: bytes of an integer, 1 for big-endian, its bits, those below them, and 1 for signed.
StagePtr make_odd_integers(const Values& values);

}  // namespace penstock::data
