// Deflate in a build without libdeflate.
#include "data/decode/codecs/missing.hpp"
#include "data/encode/step.hpp"

namespace penstock::data {

EncodeStepPtr make_deflating(const Values&) { refuse_without("libdeflate", "encode chunks"); }
EncodeStepPtr make_gzipping(const Values&) { refuse_without("libdeflate", "encode chunks"); }

}  // namespace penstock::data
