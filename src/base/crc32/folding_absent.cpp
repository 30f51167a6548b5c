// See folding.hpp: CPUs whose multiplication is not used.
#include "base/crc32/folding.hpp"

namespace penstock::base {

bool can_fold() noexcept { return false; }
void fold(std::uint32_t, std::span<const std::byte>, std::span<std::byte, kFoldedBytes>) noexcept {}

}  // namespace penstock::base
