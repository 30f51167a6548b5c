// Zstandard in a build without libzstd.
#include "data/decode/codecs/block.hpp"
#include "data/decode/codecs/missing.hpp"
#include "data/decode/makers.hpp"

namespace penstock::data {

StagePtr make_zstd(const Values&) { refuse_without("libzstd"); }
std::unique_ptr<BlockDecoder> make_zstd_block() { refuse_without("libzstd"); }

}  // namespace penstock::data
