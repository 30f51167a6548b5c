// bzip2 in a build without libbz2.
#include "data/decode/codecs/missing.hpp"
#include "data/decode/makers.hpp"

namespace penstock::data {

StagePtr make_bz2(const Values&) { refuse_without("libbz2"); }

}  // namespace penstock::data
