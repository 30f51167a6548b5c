// Zstandard in a build without libzstd.
#include "data/decode/codecs/missing.hpp"
#include "data/encode/step.hpp"

namespace penstock::data {

EncodeStepPtr make_zstandard(const Values&) { refuse_without("libzstd", "encode chunks"); }

}  // namespace penstock::data
