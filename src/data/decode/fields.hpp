// Numbers in the headers of streams, read only where there are bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace penstock::data {

enum class ByteOrder : bool { little, big };

// Takes bytes from the front of a stream. A taker past the end gives zeros, and says so.
class Fields {
  public:
    Fields(std::span<const std::byte> bytes, ByteOrder order) : left_(bytes), order_(order) {}

    std::uint64_t number(std::size_t bytes) {
        const std::span<const std::byte> some = take(bytes);
        std::uint64_t value = 0;
        for (std::size_t i = 0; i < some.size(); ++i) {
            const std::size_t place = order_ == ByteOrder::big ? i : some.size() - 1 - i;
            value = value << 8 | std::to_integer<std::uint64_t>(some[place]);
        }
        return value;
    }
    std::uint32_t number_32() { return static_cast<std::uint32_t>(number(4)); }
    std::span<const std::byte> take(std::uint64_t bytes) {
        if (bytes > left_.size()) {
            short_ = true;
            return {};
        }
        const std::span<const std::byte> some = left_.first(bytes);
        left_ = left_.subspan(bytes);
        return some;
    }
    std::span<const std::byte> left() const noexcept { return left_; }
    bool ended_early() const noexcept { return short_; }

  private:
    std::span<const std::byte> left_;
    ByteOrder order_;
    bool short_ = false;
};

}  // namespace penstock::data
