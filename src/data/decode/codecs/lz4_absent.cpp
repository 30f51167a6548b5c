// LZ4 in a build without liblz4.
#include "data/decode/codecs/block.hpp"
#include "data/decode/codecs/missing.hpp"
#include "data/decode/makers.hpp"

namespace penstock::data {

StagePtr make_hdf5_lz4(const Values&) { refuse_without("liblz4"); }
StagePtr make_sized_lz4(const Values&) { refuse_without("liblz4"); }
std::unique_ptr<BlockDecoder> make_lz4_block() { refuse_without("liblz4"); }

}  // namespace penstock::data
