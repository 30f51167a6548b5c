// Deflate in a build without libdeflate.
#include "data/decode/codecs/block.hpp"
#include "data/decode/codecs/missing.hpp"
#include "data/decode/makers.hpp"

namespace penstock::data {

StagePtr make_deflate(const Values&) { refuse_without("libdeflate"); }
StagePtr make_zlib(const Values&) { refuse_without("libdeflate"); }
StagePtr make_gzip(const Values&) { refuse_without("libdeflate"); }
std::unique_ptr<BlockDecoder> make_zlib_block() { refuse_without("libdeflate"); }

}  // namespace penstock::data
