// What a filter left as it was, because its values say that there is nothing to pack.
#pragma once

#include "data/decode/stage.hpp"

namespace penstock::data {

class Unchanged final : public Stage {
  public:
    Undone undo(std::span<const std::byte> stored, std::span<std::byte>, StageState*) const override {
        return {stored};
    }
    std::uint64_t stored_bytes(std::uint64_t plain) const override { return plain; }
    bool keeps_size() const override { return true; }
};

}  // namespace penstock::data
