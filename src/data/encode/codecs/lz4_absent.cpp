// LZ4 in a build without liblz4.
#include "data/decode/codecs/missing.hpp"
#include "data/encode/step.hpp"

namespace penstock::data {

EncodeStepPtr make_hdf5_lz4_blocks(const Values&) { refuse_without("liblz4", "encode chunks"); }
EncodeStepPtr make_lz4_behind_size(const Values&) { refuse_without("liblz4", "encode chunks"); }

}  // namespace penstock::data
